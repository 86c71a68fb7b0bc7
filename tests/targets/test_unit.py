import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import UnitError
from ansor.targets.unit import INSTRUCTIONS, SECONDS, Unit, common_unit, cycles, ticks


@pytest.mark.parametrize("unit", [SECONDS, INSTRUCTIONS, cycles("vta 16x16"), cycles("a:b"), ticks(25e6), ticks(1_000_000), ticks(1 / 3)])
def test_units_read_back(unit: Unit) -> None:
    assert Unit.from_text(unit.to_text()) == unit


@given(st.text() | st.sampled_from(["seconds:", "seconds:1", "cycles", "cycles:", "ticks:25 MHz", "ticks:0.0 Hz", "ticks:inf Hz", "ticks:nan Hz", "Seconds"]))
def test_other_texts_are_refused(text: str) -> None:
    if text in ("seconds", "instructions") or text.startswith("cycles:") and len(text) > 7:
        return
    with pytest.raises(UnitError, match="asked for the unit"):
        Unit.from_text(text)


def test_costs_are_said_in_their_unit() -> None:
    assert SECONDS.text(0.001234) == "1.234 ms" and INSTRUCTIONS.text(1.83e6) == "1.83 M instructions" and cycles("x").text(12) == "12 cycles"
    assert SECONDS.rate(2e9, 0.5) == "4 GFLOP/s" and INSTRUCTIONS.rate(6e6, 2e6) == "3 operations per instruction" and INSTRUCTIONS.rate(1, 0) == "n/a"
    assert str(ticks(1e6)) == "ticks (1000000 Hz)" and str(ticks(1 / 3)) == "ticks (0.333333333333333 Hz)" and str(cycles("x")) == "cycles (x)"


def test_costs_of_two_units_do_not_compare() -> None:
    assert common_unit([SECONDS, SECONDS]) == SECONDS
    for units in ([SECONDS, INSTRUCTIONS], [cycles("a"), cycles("b")], []):
        with pytest.raises(UnitError, match="asked to compare costs in"):
            common_unit(units)
