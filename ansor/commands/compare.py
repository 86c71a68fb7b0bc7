"""`ansor compare`: two record files side by side."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ansor.commands.as_json import say_json
from ansor.commands.common import make_console, say_skipped
from ansor.errors import RecordError
from ansor.measure.record import Loaded, Record, load
from ansor.support.text import counted
from ansor.targets.unit import Unit

Key = tuple[str, Unit]
"""A workload, and the unit of its costs: only equal keys can be compared."""


@dataclass(frozen=True)
class Pair:
    """The best programs of a workload in two files; None if a file has no valid trial of it. trials: of each file."""

    workload: str
    name: str
    unit: Unit
    costs: tuple[float | None, float | None]
    trials: tuple[int, int]

    @property
    def ratio(self) -> float | None:
        """How many times as fast the second program is."""
        first, second = self.costs
        return None if first is None or second is None else first / second

    def to_json(self) -> dict[str, object]:
        """The fields under their names in JSON."""
        costs, trials = list(self.costs), list(self.trials)
        return {"workload": self.workload, "name": self.name, "unit": self.unit.name, "costs": costs, "trials": trials, "ratio": self.ratio}


def run_compare(given: argparse.Namespace) -> int:
    """Print the best program of each workload in two files, and how many times as fast the second file's is. Returns 1 if they have none in common."""
    console, files = make_console(), (given.first, given.second)
    loaded = tuple(load(file) for file in files)
    for file, one in zip(files, loaded, strict=True):
        if not one.records:
            raise RecordError(f"asked to compare {file}, which holds no trials; name a file that `ansor tune` wrote")
    pairs = pairs_of(*loaded)
    mean = mean_of(pairs)
    if given.json:
        targets = [list(_targets(one)) for one in loaded]
        left_out = [one.skipped for one in loaded]
        workloads = [pair.to_json() for pair in pairs]
        say_json(console, {"files": files, "targets": targets, "left_out": left_out, "workloads": workloads, "mean_ratio": mean})
        return 0 if mean is not None else 1
    for letter, file, one in zip("AB", files, loaded, strict=True):
        console.print(f"{letter}: {file}, {len(one.records)} trials for {', '.join(_targets(one))}", soft_wrap=True, markup=False)
        say_skipped(one, console, file)
    _print(pairs, console)
    if mean is None:
        raise RecordError("no workload has a valid program in both files, so nothing is compared; tune the same workloads for both")
    over = counted(sum(pair.ratio is not None for pair in pairs), "workload")
    console.print(f"B is {mean:.2f} times as fast as A: geometric mean over {over}, not weighted by how often a network uses each", soft_wrap=True)
    return 0


def pairs_of(first: Loaded, second: Loaded) -> list[Pair]:
    """The workloads of both files, by the ratio of their programs' speeds: the greatest losses of the second file first, those in only one file last."""
    groups, names = (_by_key(first.records), _by_key(second.records)), {**first.names, **second.names}
    keys = dict.fromkeys((*groups[0], *groups[1]))
    pairs = [_pair(key, names, groups[0].get(key, []), groups[1].get(key, [])) for key in keys]
    return sorted(pairs, key=lambda pair: math.inf if pair.ratio is None else pair.ratio)


def mean_of(pairs: Sequence[Pair]) -> float | None:
    """The geometric mean of the ratios; None if no workload is in both files."""
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _by_key(records: Sequence[Record]) -> dict[Key, list[Record]]:
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault((record.workload, record.unit), []).append(record)
    return groups


def _pair(key: Key, names: Mapping[str, str], first: Sequence[Record], second: Sequence[Record]) -> Pair:
    workload, unit = key
    return Pair(workload, names.get(workload, workload[:8]), unit, (_best(first), _best(second)), (len(first), len(second)))


def _best(records: Sequence[Record]) -> float | None:
    return min((record.cost for record in records if record.failure is None and record.costs), default=None)


def _targets(loaded: Loaded) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.target for record in loaded.records))


def _print(pairs: Sequence[Pair], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("name", overflow="fold")
    for heading in ("A", "B", "A / B", "trials"):
        table.add_column(heading, justify="right", no_wrap=True)
    for pair in pairs:
        costs = ["-" if cost is None else pair.unit.text(cost) for cost in pair.costs]
        table.add_row(Text(pair.name), *costs, "" if pair.ratio is None else f"{pair.ratio:.2f}", " and ".join(map(str, pair.trials)))
    console.print(table)
