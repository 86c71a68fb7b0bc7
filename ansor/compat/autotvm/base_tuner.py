"""The base class of tuners, which propose configurations and receive their results. Source: AutoTVM 0.9, `autotvm.tuner`.

A tuner only proposes; `tune` is the loop that asks it for configurations, measures them, and reports the results to it.
"""

from __future__ import annotations

import logging
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ansor.compat.autotvm.callback import Callback
from ansor.compat.autotvm.measure import BatchTrouble, MeasureBatch, MeasureOption, create_measure_batch
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.autotvm.si_prefix import format_si_prefix
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.errors import ConfigError
from ansor.templates.space import ConfigEntity, ConfigSpace
from ansor.templates.task import Task

_logger = logging.getLogger("autotvm")


class HasSpace(Protocol):
    """The part of a task that a tuner needs."""

    @property
    def config_space(self) -> ConfigSpace: ...


class Tuner(ABC):
    """Proposes configurations of a task or space, each at most once.

    After `tune`: best_config, best_flops (operations a second), best_measure_pair, best_iter (the trial that found it, from 0). During `tune`: ttl, the
    number of remaining trials.
    """

    def __init__(self, task: HasSpace | ConfigSpace) -> None:
        space = task if isinstance(task, ConfigSpace) else getattr(task, "config_space", None)
        if not isinstance(space, ConfigSpace):
            raise ConfigError(f"asked for a tuner of {task!r:.80}; give autotvm.task.create(name, args, target), or a ConfigSpace")
        self.task = task
        self.space = space
        self.error_ct_threshold = 150
        self._forget()

    def _forget(self) -> None:
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self.n_trial = 0
        self.early_stopping: int | None = None
        self.ttl = 0

    @abstractmethod
    def has_next(self) -> bool:
        """Whether there is a configuration that `next_batch` has not returned yet."""

    @abstractmethod
    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """Up to `batch_size` configurations to measure; empty only if `has_next` is false or `batch_size` is 0."""

    @abstractmethod
    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Process measurements: one result per input. Tuners that do not learn ignore them."""

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500) -> None:  # noqa: B027  # most learn nothing
        """Start from the records of a log, if at least `min_seed_records` are usable. Tuners that do not learn ignore them."""

    def reset(self) -> None:
        """Reset to the initial state."""
        self._forget()

    def set_error_threshold(self, threshold: int) -> None:
        """After more than `threshold` failures in a row, the logger "autotvm" logs everything until the next success."""
        self.error_ct_threshold = threshold

    def tune(
        self, n_trial: int, measure_option: MeasureOption, early_stopping: int | None = None, callbacks: Sequence[Callback] = (), si_prefix: str = "G"
    ) -> None:  # fmt: skip
        """Measure up to `n_trial` configurations, in batches of the builder's size. Passes each batch to the tuner and then to every callback.

        early_stopping: stop after that many trials without improvement. si_prefix: unit of the logged speeds. If all trials fail, a warning names a
        file with their errors. Raises ConfigError for a tuner of a bare space, and for an unknown `si_prefix`; MachineTrouble if the machine runs
        out of a resource, after reporting earlier measurements.
        """
        format_si_prefix(0, si_prefix)
        task, level = self._measurable(), _logger.level
        self.n_trial, self.early_stopping = n_trial, early_stopping
        done, in_a_row, errors = 0, 0, list[str]()
        try:
            with create_measure_batch(task, measure_option) as measure_batch:
                while done < n_trial and self.has_next():
                    configs = self.next_batch(min(measure_batch.n_parallel, n_trial - done))
                    inputs = [MeasureInput(task.target, task, config) for config in configs]
                    inputs, results, trouble = _measured(measure_batch, inputs)
                    if trouble is not None and not inputs:
                        raise trouble
                    for number, (inp, result) in enumerate(zip(inputs, results, strict=True), done):
                        failed = self._judge(number, inp, result, si_prefix)
                        in_a_row = in_a_row + 1 if failed else 0
                        errors += [f"{inp.config}: {result.error_msg}"] if failed else []
                    done += len(results)
                    self.ttl = self._ends_at() - done
                    self.update(inputs, results)
                    for callback in callbacks:
                        callback(self, inputs, results)
                    if trouble is not None:
                        raise trouble
                    if self.ttl <= 0:
                        break
                    _logger.setLevel(logging.DEBUG if in_a_row > self.error_ct_threshold else level)
        finally:
            _logger.setLevel(level)
        if errors and len(errors) == done:
            _logger.warning("no configuration of task %s works: their errors are in %s", task.name, _written(errors))

    def _measurable(self) -> Task:
        if not isinstance(self.task, Task):
            raise ConfigError(f"asked to tune {type(self.task).__name__}, which has no programs; create the tuner from autotvm.task.create(name, args, target)")
        return self.task

    def _ends_at(self) -> int:
        """The number of trials after which tuning would currently end."""
        return self.n_trial if self.early_stopping is None else min(self.n_trial, self.best_iter + self.early_stopping)

    def _judge(self, number: int, inp: MeasureInput, result: MeasureResult, si_prefix: str) -> bool:
        """Keep the best measurement. Returns whether this one failed."""
        flops = inp.task.flop / result.mean_cost
        if flops > self.best_flops:
            self.best_config, self.best_flops, self.best_measure_pair, self.best_iter = inp.config, flops, (inp, result), number
        speeds = [format_si_prefix(speed, si_prefix) for speed in (flops, self.best_flops)]
        _logger.debug("No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s", number + 1, si_prefix, *speeds, result, inp.config)
        return result.error_no != MeasureErrorNo.NO_ERROR


def _measured(measure_batch: MeasureBatch, inputs: list[MeasureInput]) -> tuple[list[MeasureInput], list[MeasureResult], BatchTrouble | None]:
    """The inputs with known results, the results, and why some are missing."""
    try:
        return inputs, measure_batch(inputs), None
    except BatchTrouble as trouble:
        return [inp for inp, _ in trouble.measured], [result for _, result in trouble.measured], trouble


def _written(errors: Sequence[str]) -> Path:
    with tempfile.NamedTemporaryFile("w", prefix="ansor_tuning_errors_", suffix=".log", delete=False, encoding="utf-8") as file:
        file.write("\n".join(errors))
    return Path(file.name)
