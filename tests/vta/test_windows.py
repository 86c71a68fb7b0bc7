"""The limit on padding allows the programs whose LOADs the code generator makes, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.errors import AnsorError
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Sketch
from ansor.targets.base import parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.vta.limits import limits_of
from ansor.vta.work import work_of
from tests.vta_declarations import channels_last, conv2d, depthwise, grouped, pool

TARGET = parse_target("vta")
CORE = configuration_of(TARGET)
WINDOWS = {
    "1x1": conv2d((1, 16, 8, 8), 16, 1, pad=1),
    "1x1, strided": conv2d((1, 20, 5, 6), 33, 1, pad=2, stride=2),
    "wide": conv2d((1, 16, 4, 4), 16, 3, pad=4),
    "depthwise": depthwise((1, 20, 6, 6), 3, stride=2, pad=3),
    "pool": pool((1, 20, 6, 6), 2, stride=3, pad=3, number=5),
    "groups": grouped((1, 32, 6, 6), 32, 4, 1, pad=1),
    "channels last": channels_last((1, 9, 7, 64), 32, 3, pad=1),
    "as usual": conv2d((1, 32, 7, 7), 32, 3, pad=1),
}


def _generated(task: SearchTask, sketch: Sketch, row: list[int]) -> bool:
    try:
        return bool(task.source(sketch, row).text)
    except AnsorError:
        return False


def _others_hold(sketch: Sketch, rows: np.ndarray) -> np.ndarray:
    """Rows that all limits but the one on padding allow."""
    loops, flags = sketch.lower_rows(rows), np.ones(len(rows), bool)
    for limit in limits_of(CORE):
        flags &= limit.name == "padding" or np.broadcast_to(limit.holds(loops, TARGET), len(rows))
    return flags


@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_allowed_is_what_can_be_made(name: str) -> None:
    tensors: list[Tensor] = WINDOWS[name]
    rng, task, seen = np.random.default_rng(1), SearchTask(tensors=tensors, target=TARGET), set[bool]()
    for space in (space for space in task.spaces if len(space.sizes)):
        rows = rng.integers(0, space.sizes, (60, len(space.sizes)))
        rows = rows[_others_hold(space.sketch, rows)][:12]
        loops = space.sketch.lower_rows(rows)
        movable = np.broadcast_to(work_of(loops, CORE).movable, len(rows)).tolist()
        assert np.array_equal(movable, np.broadcast_to(legal_rows(loops, TARGET, len(rows)), len(rows)))
        for row, allowed in zip(rows.tolist(), movable, strict=True):
            assert _generated(task, space.sketch, row) == allowed == bool(work_of(space.sketch.lower_row(row), CORE).movable), (space.sketch, row)
            seen.add(allowed)
    assert seen == ({True} if name == "as usual" else {True, False})
