"""Passes one after the other."""

from ansor.ir.passes import Pass, run, shown, traced

DOUBLE = Pass[int]("double", "twice as much", lambda number: 2 * number, str)
NEXT = Pass[int]("next", "one more", lambda number: number + 1, str)


def test_passes_run_in_order_and_each_can_be_shown() -> None:
    assert run((DOUBLE, NEXT), 3) == 7
    assert [(one.name, one.shown(value)) for one, value in traced((DOUBLE, NEXT), 3)] == [("double", "6"), ("next", "7")]
    assert str(DOUBLE) == "double     twice as much"
    assert list(map(str, shown((DOUBLE, NEXT), 3))) == ["-- double: twice as much\n6", "-- next: one more\n7"]
