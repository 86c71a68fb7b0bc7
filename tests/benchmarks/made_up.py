"""Made-up results."""

from __future__ import annotations

from results import EAGER, OURS, Cell, Result, Settings

from ansor.measure.interleaved import Ratio

SETTINGS = Settings("cpu -threads=1", "some processor", 128, 0, 200, (EAGER, "inductor"))


def made_up(name: str, seconds: float = 1e-3, eager: float = 1.0, inductor: float | None = None, settings: Settings = SETTINGS, problem: str = "") -> Result:
    """A row in which ours takes `seconds`, and the others take that times a factor; inductor None: it failed."""
    cells = {OURS: Cell(seconds, None, 1e-7, 5.0, problem), EAGER: _other(seconds, eager)}
    cells["inductor"] = Cell(problem="failed: no reason") if inductor is None else _other(seconds, inductor)
    return Result(name, settings, 1_000_000, 100.0, 0.1, 200, cells)


def _other(seconds: float, ratio: float) -> Cell:
    return Cell(seconds * ratio, Ratio(ratio, 0.9 * ratio, 1.1 * ratio), 1e-7)
