"""The table of networks on a VTA core, for a small one."""

from __future__ import annotations

import pytest

from ansor.offload.build import build
from ansor.vta.runtime.simulators import CycleDriver
from benchmarks.vta_networks import HEADINGS, row
from tests.offload.networks import residual

pytestmark = pytest.mark.compiler


def test_a_row() -> None:
    placed = build(residual())
    rows = [row(placed, CycleDriver(), wait) for wait in (False, True)]
    assert [len(one) + 2 for one in rows] == [len(HEADINGS)] * 2
    assert [one[:3] for one in rows] == [["5", "1", "2"], ["5", "5", rows[1][2]]] and int(rows[1][2]) > 5
    assert rows[0][3:8] == rows[1][3:8] and all(one[-1] == "every byte" and int(one[-2]) > 10_000 for one in rows)
