"""Dispatch contexts for logs and tasks. Source: AutoTVM 0.9, `autotvm.task.dispatcher`."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.autotvm.record import load_from_file
from ansor.compat.common import target_keys as target_text
from ansor.errors import ConfigError, RecordError
from ansor.templates.config import Config
from ansor.templates.dispatch import DispatchContext, Workload
from ansor.templates.fallback import FallbackConfigEntity
from ansor.templates.task import Task

_logger = logging.getLogger("autotvm")

Pair: TypeAlias = tuple[MeasureInput, MeasureResult]
Records: TypeAlias = str | Path | Iterable[str | Path | Pair]
"""A log file, several, or pairs as from `load_from_file`."""


@dataclass(frozen=True)
class _BestConfig:
    """A configuration and its seconds; one set by a user beats all others."""

    cost: float
    config: Config


class ApplyHistoryBest(DispatchContext):
    """The configuration of a workload with the least mean cost on the target's model, or else on the first of its keys that has one.

    records: what `load` takes. n_lines: the maximum number of records to read. Failures are ignored, and the model "unknown" counts as none.
    """

    def __init__(self, records: Records | None, n_lines: int | None = None) -> None:
        self._best: dict[tuple[str, str, str], _BestConfig] = {}
        if records is not None:
            self.load(records, n_lines)

    def load(self, records: Records, n_lines: int | None = None) -> None:
        """Add these records. Raises RecordError if a file cannot be read."""
        for inp, result in islice(_pairs(records), n_lines):
            if not math.isinf(result.mean_cost):
                self._keep(inp.target, inp.task.workload, _BestConfig(result.mean_cost, inp.config))

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """Use this configuration for that workload from now on, regardless of logs. Its cost counts as 0."""
        self._keep(target, workload, _BestConfig(-math.inf, cfg))
        cfg.cost = 0.0

    def _keep(self, target: str, workload: Workload, known: _BestConfig) -> None:
        for name in target_text.names(target):
            place = (*name, repr(workload))
            if place not in self._best or known.cost < self._best[place].cost or known.cost == -math.inf:
                self._best[place] = known

    def _query_inside(self, target: str, workload: Workload | None) -> Config | None:
        known = next((self._best[place] for name in target_text.names(target) if (place := (*name, repr(workload))) in self._best), None)
        if known is None:
            return None
        known.config.cost = max(known.cost, 0.0)
        return known.config


apply_history_best = ApplyHistoryBest


class ApplyFixedConfig(DispatchContext):
    """The first configuration of each of these tasks, at a cost of 1e-6 s for the named schedules and 1e5 s for all others, to select those schedules."""

    def __init__(self, tasks: Sequence[Task], schedule_names: str | Sequence[str]) -> None:
        self._tasks = {repr(task.workload): task for task in tasks}
        self._names = {schedule_names} if isinstance(schedule_names, str) else set(schedule_names)
        self.workload: Workload | None = None

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        task = self._tasks.get(repr(workload))
        if task is None or workload is None:
            raise ConfigError(f"asked for the configuration of {workload}, which is not among the tasks {', '.join(self._tasks) or '(none)'}; add its task")
        self.workload = workload
        config = task.config_space.get(0)
        config.cost = 1e-6 if task.name in self._names else 1e5
        return config


class ApplyGraphBest(DispatchContext):
    """One record per query, in the order in which tuners of whole networks write them; afterwards the last configuration of the workload."""

    def __init__(self, records: Records) -> None:
        self._records = list(_pairs(records))
        self._counter = 0
        self._given: dict[tuple[str, str], Config] = {}

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """Use this configuration for that workload once the records are used up."""
        self._given[target, repr(workload)] = cfg

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        if self._counter < len(self._records):
            task, config = self._records[self._counter][0].task, self._records[self._counter][0].config
            if workload is not None and repr(task.workload) != repr(workload):
                raise RecordError(f"asked for a configuration of {workload}, but record {self._counter} is of {task.workload}; use the records of this network")
            self._counter += 1
            self.update(target, task.workload, config)
            return config
        key = (target, repr(workload))
        if key not in self._given:
            _logger.warning("no record of %s for target %s is left: using a fallback, which may be much slower", workload, target)
            self._given[key] = FallbackConfigEntity()
        return self._given[key]


def _pairs(records: Records) -> Iterator[Pair]:
    if isinstance(records, (str, Path)):
        yield from load_from_file(records)
        return
    for one in records:
        if isinstance(one, (str, Path)):
            yield from load_from_file(one)
        else:
            yield one
