"""Faults between a board and this machine, by random schedules: `benchmarks/board_faults.py` runs a thousand of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.measure.boards.schedules import PROGRAMS, run_schedules
from tests.spikes import need_spike

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
SECONDS = 20.0  # on a busy machine: fewer schedules then


@pytest.mark.parametrize(("wire", "schedules"), [("gdb", 50), ("bitbang", 10)])
def test_nothing_wrong_is_believed_and_links_come_back(wire: str, schedules: int, tmp_path: Path) -> None:
    """Right programs have their cost, others their kind of failure, or the link was lost; without faults the next program is right."""
    need_spike()
    found = run_schedules(wire, schedules, 11, tmp_path, time.monotonic() + SECONDS)
    assert not found.wrong and not found.lost and found.kinds, found
    if found.kinds.total() > 2 * len(PROGRAMS) ** 2:
        assert found.again and all((program, program) in found.kinds for program in PROGRAMS)
