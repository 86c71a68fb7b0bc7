"""Measures configurations: a builder, a runner, and both combined in one function. Source: AutoTVM 0.9, `autotvm.measure`.

    MeasureInput --Builder--> BuildResult --Runner--> MeasureResult
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ansor.compat.autotvm.local_measure import BuildResult, LocalBuilder, LocalRunner
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult, Unmeasured
from ansor.errors import ConfigError, MachineTrouble, MeasureError
from ansor.support.closing import Closing
from ansor.templates.task import Task


class Builder(Protocol):
    """Builds programs of configurations. n_parallel: how many at a time, which is also a tuner's batch size."""

    @property
    def n_parallel(self) -> int: ...

    def set_task(self, task: Task) -> None:
        """Prepare for the configurations of a task."""
        return

    def build(self, measure_inputs: Sequence[MeasureInput]) -> Sequence[BuildResult]:
        """One result per input, in order; errors of a configuration are in its result."""
        ...

    def close(self) -> None:
        """Release what `set_task` and `build` acquired."""
        return


class Runner(Protocol):
    """Measures programs."""

    def set_task(self, task: Task) -> None:
        """Prepare for the programs of a task."""
        return

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]) -> Sequence[MeasureResult]:
        """One result per input, in order; errors of a program are in its result."""
        ...

    def close(self) -> None:
        """Release what `set_task` and `run` acquired."""
        return


@dataclass(frozen=True)
class MeasureOption:
    """The builder and the runner."""

    builder: Builder
    runner: Runner


def measure_option(builder: Builder | str = "local", runner: Runner | str = "local") -> MeasureOption:
    """The option of `Tuner.tune`; "local" is `LocalBuilder()` or `LocalRunner()`. Raises ConfigError for anything else."""
    for asked, method in ((builder, "build"), (runner, "run")):
        if asked != "local" and not hasattr(asked, method):
            raise ConfigError(f"asked to measure by {asked!r}; give 'local', or a builder and a runner such as LocalBuilder() and LocalRunner()")
    return MeasureOption(LocalBuilder() if isinstance(builder, str) else builder, LocalRunner() if isinstance(runner, str) else runner)


class BatchTrouble(MachineTrouble):
    """The machine failed during a batch. `measured`: the inputs that have results, with these results."""

    def __init__(self, text: str, measured: Sequence[tuple[MeasureInput, MeasureResult]]) -> None:
        super().__init__(text)
        self.measured = tuple(measured)


class MeasureBatch(Closing):
    """Measures the inputs of one task when called with them. Use it in a `with` statement, or call `close`. n_parallel: the best number of inputs at a time."""

    def __init__(self, task: Task, option: MeasureOption) -> None:
        if not isinstance(option, MeasureOption):
            raise ConfigError(f"asked to measure by {option!r:.80}; give autotvm.measure_option(builder, runner)")
        self._option = option
        self.n_parallel = option.builder.n_parallel
        try:
            option.builder.set_task(task)
            option.runner.set_task(task)
        except BaseException:
            self.close()
            raise

    def __call__(self, measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """One result per input, in order. Raises MeasureError if the builder or the runner returns another number, BatchTrouble if the machine is at fault."""
        built = self._option.builder.build(measure_inputs)
        results = list(self._option.runner.run(measure_inputs, built))
        if len(results) != len(measure_inputs):
            asked = f"asked {type(self._option.runner).__name__} to measure {len(measure_inputs)} programs"
            raise MeasureError(f"{asked}; found {len(results)} results: give one for each")
        troubles = [result.error_msg for result in results if isinstance(result, Unmeasured)]
        if troubles:
            measured = [(inp, result) for inp, result in zip(measure_inputs, results, strict=True) if not isinstance(result, Unmeasured)]
            raise BatchTrouble(troubles[0], measured)
        return results

    def close(self) -> None:
        """Release processes and files."""
        self._option.runner.close()
        self._option.builder.close()


def create_measure_batch(task: Task, option: MeasureOption) -> MeasureBatch:
    """A function that measures inputs of this task."""
    return MeasureBatch(task, option)
