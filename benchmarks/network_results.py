"""Results of networks in `networks.py`, and their file, which has a line of JSON for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansor.measure.interleaved import Ratio


@dataclass(frozen=True)
class Settings:
    """The settings that a result depends on, besides the network. commit: of this package, "" in files from before it was noted."""

    target: str
    processor: str
    batch: int
    trials: int | None
    minutes: float | None
    turns: int
    commit: str = ""


@dataclass(frozen=True)
class Result:
    """A network's result. seconds: of a call, by side; ratios: seconds of each rival over ours; ready: seconds of the first and second `ansor.compile`; the
    other fields: see `networks.py`."""

    name: str
    settings: Settings
    seconds: Mapping[str, float]
    ratios: Mapping[str, Ratio]
    error: float
    own: float
    sum: float
    trials: int
    ready: tuple[float, ...] = ()
    limit: float = math.nan


def of_json(fields: dict[str, object]) -> Result:
    """Reads `asdict` back."""
    ratios = {side: Ratio(**one) for side, one in fields["ratios"].items()}  # type: ignore[attr-defined]  # as it was written
    return Result(**fields | {"settings": Settings(**fields["settings"]), "ratios": ratios, "ready": tuple(fields["ready"])})  # type: ignore[arg-type]  # as it was written


def load(path: Path) -> list[Result]:
    """Results in a file, oldest first."""
    return [of_json(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
