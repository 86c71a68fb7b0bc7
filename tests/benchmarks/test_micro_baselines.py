"""What is compared with kernels for boards is right, and the search is ahead of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from micro_baselines import CONV, ROWS, Row, by_hand, counted, result_of

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]


@pytest.mark.parametrize("file", sorted({file for row in ROWS for file in (*row.files, row.geometry.reference)}))
def test_c_by_hand_computes_what_is_declared(file: str) -> None:
    row = next(row for row in reversed(ROWS) if file in (*row.files, row.geometry.reference))
    task = row.task()
    assert counted(task, by_hand(row, task, file)) > row.geometry.out


def test_a_convolution_with_requantisation_needs_no_more_instructions_than_one_by_hand() -> None:
    (row,) = (row for row in ROWS if (row.board, row.geometry) == ("mps2-an386", CONV))
    small: Row = replace(row, geometry=replace(CONV, height=8, width=8))
    result = result_of(small, 16, [0])
    assert max(result.tuned) <= result.by_hand <= min(result.plain, result.reference), str(result)
