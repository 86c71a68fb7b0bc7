"""The result of a row, and the file of results: one JSON line for each row, so that a stopped run can continue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ansor.measure.interleaved import Ratio

OURS, EAGER = "ours", "eager"


@dataclass(frozen=True)
class Cell:
    """One side of a row.

    seconds: of one call, median over turns; ratio: seconds of this side over ours, turn by turn (None for ours); error: largest difference from double
    precision over the largest element; setup: seconds of compiling or tuning; problem: why there is no time, or why the time does not count.
    """

    seconds: float | None = None
    ratio: Ratio | None = None
    error: float | None = None
    setup: float = 0.0
    problem: str = ""

    @property
    def counts(self) -> bool:
        """True if it ran and its result was right."""
        return not self.problem and self.seconds is not None


@dataclass(frozen=True)
class Settings:
    """The settings that a row depends on, besides its operator. Rows with other settings are different rows."""

    target: str
    processor: str
    trials: int
    seed: int
    turns: int
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A finished row. flop: operations of one call; peak_gflops: measured on the target's threads; load: the machine's load at the start."""

    name: str
    settings: Settings
    flop: int
    peak_gflops: float
    load: float
    turns: int
    cells: Mapping[str, Cell]

    @property
    def ours(self) -> Cell:
        return self.cells[OURS]

    def gflops(self, side: str) -> float | None:
        """10^9 operations per second; None without a time."""
        cell = self.cells.get(side)
        return self.flop / cell.seconds / 1e9 if cell is not None and cell.counts and cell.seconds else None

    def share(self, side: str) -> float | None:
        """The share of the peak of fp32 arithmetic."""
        gflops = self.gflops(side)
        return None if gflops is None else gflops / self.peak_gflops

    def ratio(self, side: str) -> float | None:
        """How many times as fast as that side ours is; None unless both count."""
        cell = self.cells.get(side)
        return cell.ratio.median if cell is not None and cell.counts and self.ours.counts and cell.ratio is not None else None

    def best_ratio(self) -> float | None:
        """How many times as fast as the fastest correct other side ours is; None without one."""
        found = [ratio for side in self.cells if side != OURS and (ratio := self.ratio(side)) is not None]
        return min(found, default=None)


def to_line(result: Result) -> str:
    """One line of JSON."""
    return json.dumps(asdict(result))


def from_line(line: str) -> Result:
    """Reads `to_line` back. Raises ValueError, KeyError or TypeError for anything else."""
    fields = json.loads(line)
    cells = {side: Cell(**cell | {"ratio": cell["ratio"] and Ratio(**cell["ratio"])}) for side, cell in fields["cells"].items()}
    settings = Settings(**fields["settings"] | {"rivals": tuple(fields["settings"]["rivals"])})
    return Result(**fields | {"settings": settings, "cells": cells})


def load(path: Path) -> list[Result]:
    """The rows in a file, oldest first; empty without a file. An incomplete line from a stopped run is skipped."""
    return list(_loaded(path.read_text())) if path.exists() else []


def _loaded(text: str) -> Iterator[Result]:
    for line in text.splitlines():
        try:
            yield from_line(line)
        except (ValueError, KeyError, TypeError):
            continue


def append(path: Path, result: Result) -> None:
    """Add a row. An incomplete last line is terminated first, so that it does not damage the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and not path.read_text().endswith("\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if torn else "") + to_line(result) + "\n")


def done(results: list[Result], settings: Settings) -> dict[str, Result]:
    """The newest row of each name with exactly these settings."""
    return {result.name: result for result in results if result.settings == settings}


def newest(results: list[Result], target: str) -> dict[str, Result]:
    """The newest row of each name for a target, with any other settings."""
    return {result.name: result for result in results if result.settings.target == target}
