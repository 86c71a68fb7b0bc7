"""Times that are taken in turns."""

from __future__ import annotations

from ansor.measure.interleaved import FEWEST_TURNS, Ratio, Times, interleaved, ratio


def test_the_ratio_is_that_of_single_turns() -> None:
    ours, theirs = Times((1.0, 2.0, 10.0)), Times((2.0, 4.0, 5.0))
    assert ratio(ours, theirs) == Ratio(2.0, 0.5, 2.0)
    assert ours.median == 2.0 and str(Ratio(2.0, 0.5, 2.25)) == "2.00 (0.50 .. 2.25)"


def test_everyone_has_as_many_turns() -> None:
    found = interleaved({"a": lambda: None, "b": lambda: None}, 7)
    assert {name: len(one.seconds) for name, one in found.items()} == {"a": 7, "b": 7}


def test_beyond_the_limit_there_are_the_fewest_turns() -> None:
    found = interleaved({"a": lambda: None}, 50, limit=0.0)
    assert len(found["a"].seconds) == FEWEST_TURNS
