import pytest
from thread_gain import gains

from ansor.measure.interleaved import Times

NAMES = ("ours on one", "ours on all", "machine on one", "machine on all")


def test_a_gain_is_of_work_and_a_share_is_of_the_same_turn() -> None:
    """The machine's threads do the same work each. In the last turns it has one processor, and neither gains anything."""
    seconds = ((4.0, 4.0, 4.0, 4.0, 4.0), (2.5, 2.5, 2.5, 4.0, 4.0), (1.0, 1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 2.0, 2.0))
    found = gains("a", {name: Times(one) for name, one in zip(NAMES, seconds, strict=True)}, 2)
    assert found.ours.median == pytest.approx(1.6) and found.ours.low == pytest.approx(1.0)
    assert found.machine.median == pytest.approx(2.0) and found.share == pytest.approx(0.8) and found.seconds == 2.5
