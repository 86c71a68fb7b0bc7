"""Comparisons of kernels in a network, as lines of a record file: which of two a network runs for a computation."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.errors import RecordError
from ansor.measure.record import Comparison, RecordFile, load, make_header, round_to
from ansor.measure.record_target import is_of, record_target
from ansor.run.states import Best
from ansor.support import kept_data
from ansor.support.notices import warn
from ansor.support.text import first_line
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.rivals import Rivals
    from ansor.graph.tasks import ExtractedGraph

Pair = tuple[str, str, str]
"""A workload key, what our program is compared with (`Comparison.library`), and our program's digest; for comparisons of whole networks, the key of the
network, one way to run it, and another."""

Result = tuple[Pair, "Rivals", bool]
"""A pair, its times in the network, and whether the network runs the other one."""


def program_digest(best: Best) -> str:
    """Identifies a program: its sketch and its row."""
    return hashlib.sha256(json.dumps([best.sketch.to_json(), [int(gene) for gene in best.row]]).encode()).hexdigest()[:16]


def network_key(extracted: ExtractedGraph) -> str:
    """Identifies a network: what its tasks are, and in which order they run."""
    order = [one.task for one in extracted.placed]
    return kept_data.name_of(([(task.key, task.weight) for task in extracted.tasks], order))[:16]


def recorded_choices(records: str | Path | None, target: Target) -> Mapping[Pair, bool]:
    """The latest choice of each pair that was compared for the target: whether the other one runs. Empty without a file."""
    if records is None or not Path(records).exists():
        return {}
    compared = load(records).comparisons
    here = {text for text in {one.target for one in compared} if is_of(text, target)}
    return {(one.workload, one.library, one.program): one.library_chosen for one in compared if one.target in here}


def record_choices(records: str | Path | None, target: Target, results: Iterable[Result], what: str) -> None:
    """Add comparisons to a file that exists. If it is read-only, the next run compares again. what: is compared, for the warning."""
    if records is None or not Path(records).exists():
        return
    try:
        with RecordFile(records, make_header(target.toolchain())) as file:
            for (workload, other, program), times, chosen in results:
                file.append_comparison(Comparison(workload, record_target(target), other, program, times.ours, times.other, chosen, round_to(time.time())))
    except RecordError as error:
        warn(f"the comparison {what} is not recorded: {first_line(error)}")
