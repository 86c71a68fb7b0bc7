"""What closes itself at the end of a `with` statement."""

from __future__ import annotations

import pytest

from ansor.support.closing import Closing


class Door(Closing):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_end_of_the_block_closes_it() -> None:
    with Door() as door:
        assert door.closed == 0
    assert door.closed == 1


def test_an_error_closes_it_and_goes_on() -> None:
    door = Door()
    with pytest.raises(ValueError, match="of the block"), door:
        raise ValueError("of the block")
    assert door.closed == 1
