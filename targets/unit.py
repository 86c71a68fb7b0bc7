"""Units of cost. A cost means nothing without its unit, and costs of two units are never compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansor.errors import UnitError
from ansor.support.text import format_count, format_seconds


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of cost.

    name: plural, for messages. detail: what else the number depends on (the model of a simulator, the rate of a timer), '' for nothing.
    scale: seconds per unit, 0 if unknown.
    """

    name: str
    detail: str = ""
    scale: float = 0.0

    def __str__(self) -> str:
        detail = f"{float(self.detail.removesuffix(' Hz')):.15g} Hz" if self.name == "ticks" and _is_rate(self.detail) else self.detail
        return f"{self.name} ({detail})" if detail else self.name

    def to_text(self) -> str:
        """The text that `from_text` reads back: the name, and the detail after a colon."""
        return f"{self.name}:{self.detail}" if self.detail else self.name

    @staticmethod
    def is_text(text: str) -> bool:
        """Whether the text names a unit."""
        name, colon, detail = text.partition(":")
        return name in NAMES and bool(detail) == bool(colon) == (name in DETAILED) and (name != "ticks" or _is_rate(detail))

    @staticmethod
    def from_text(text: str) -> Unit:
        """The unit of that text. Raises UnitError for another text."""
        if not Unit.is_text(text):
            raise UnitError(f"asked for the unit {text!r:.80}; units are seconds, instructions, cycles:MODEL and ticks:RATE Hz")
        name, _, detail = text.partition(":")
        if name == "ticks":
            return ticks(float(detail.removesuffix(" Hz")))
        return cycles(detail) if name == "cycles" else {"seconds": SECONDS, "instructions": INSTRUCTIONS}[name]

    def text(self, cost: float) -> str:
        """A cost for display: '1.234 ms', '1.83 M instructions'."""
        return format_seconds(cost) if self == SECONDS else f"{format_count(cost)} {self.name}"

    def rate(self, operations: float, cost: float) -> str:
        """Operations per cost: '83.2 GFLOP/s', '3.4 operations per instruction'; 'n/a' without a cost."""
        if not cost > 0:
            return "n/a"
        return f"{operations / cost / 1e9:.3g} GFLOP/s" if self == SECONDS else f"{operations / cost:.3g} operations per {self.name.removesuffix('s')}"


def _is_rate(detail: str) -> bool:
    try:
        return detail.endswith(" Hz") and 0 < float(detail.removesuffix(" Hz")) < float("inf")
    except ValueError:
        return False


NAMES = ("seconds", "instructions", "cycles", "ticks")
DETAILED = ("cycles", "ticks")
SECONDS = Unit("seconds", scale=1.0)
INSTRUCTIONS = Unit("instructions")


def cycles(model: str) -> Unit:
    """Cycles of a machine, or of a model of one."""
    return Unit("cycles", model)


def ticks(hertz: float) -> Unit:
    """Ticks of a timer at that rate."""
    return Unit("ticks", f"{float(hertz)!r} Hz", 1.0 / hertz)


def common_unit(units: Iterable[Unit]) -> Unit:
    """The common unit. Raises UnitError for several units, or none."""
    found = list(dict.fromkeys(units))
    if len(found) != 1:
        raise UnitError(f"asked to compare costs in {' and '.join(map(str, found)) or 'no unit'}; measure all of them on one kind of device")
    return found[0]
