"""Builds and runs programs of states, and reports results in TVM's terms. Source: TVM 0.9, `auto_scheduler.measure`.

Every program is compared with the declaration in double precision before it is timed: WRONG_ANSWER is a possible outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ansor.compat.auto_scheduler.callbacks import MeasureCallback
from ansor.compat.auto_scheduler.declared_task import DeclaredTask, recovered
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.common.outcome import ERRORS, MeasureErrorNo
from ansor.compat.common.runner import TimedRunner, check_build_func, farm_text
from ansor.errors import AnsorError
from ansor.manual.program import source_of
from ansor.measure.builder import Builder, Built
from ansor.measure.device import Device, Job
from ansor.measure.device_kinds import open_device
from ansor.measure.devices.local import LocalDevice
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import check_trouble
from ansor.targets.base import Target

FAILED_COST = 1e10
"""The seconds that TVM logs for a failure."""


@dataclass(frozen=True)
class BuildResult:
    """A built program, or why it was not built. `filename`: its library, which exists as long as this result does."""

    filename: str
    args: Sequence[object]
    error_no: MeasureErrorNo
    error_msg: str
    time_cost: float
    built: Built | None = field(default=None, repr=False)
    builder: Builder | None = field(default=None, repr=False)


class LocalBuilder:
    """Builds programs on this machine: `n_parallel` at a time (by default one per core), each in `timeout` seconds.

    Raises TargetError for a `build_func` other than "default": the C compiler that the target names builds the programs.
    """

    def __init__(self, timeout: float = 15, n_parallel: int | None = None, build_func: str | Callable[..., object] = "default") -> None:
        check_build_func(build_func)
        self.timeout, self.n_parallel, self.build_func = timeout, n_parallel, build_func

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """One result per input, in order. A program's errors are in its result."""
        return [self._built(recovered(one, rebuild_state=True)) for one in measure_inputs]

    def _built(self, inp: MeasureInput) -> BuildResult:
        task, started = inp.task, time.monotonic()
        assert isinstance(task, DeclaredTask) and isinstance(inp.state, State)
        args = task.compute_dag.tensors
        try:
            source = source_of(task.compute_dag.replay(inp.state, task.layout_rewrite_option).sketch, task.local_target)
        except AnsorError as error:
            return BuildResult("", args, MeasureErrorNo.INSTANTIATION_ERROR, str(error), time.monotonic() - started)
        builder = Builder(task.local_target.toolchain(), timeout=self.timeout, jobs=self.n_parallel)
        (built,) = builder.build([source])
        check_trouble(built.failure)
        number = MeasureErrorNo.NO_ERROR if built.failure is None else ERRORS[built.failure.kind]
        text = "" if built.failure is None else built.failure.text
        return BuildResult("" if built.artifact is None else str(built.artifact.path), args, number, text, time.monotonic() - started, built, builder)


class LocalRunner(TimedRunner):
    """Runs programs on this machine, one after another, each in its own process; `timeout` in seconds.

    Each of `repeat` costs is the mean of `number` calls, or of more until `min_repeat_ms` has passed; with enable_cpu_cache_flush, the cost of one call on
    cold caches.
    """

    def __init__(
        self, timeout: float = 10, number: int = 3, repeat: int = 1, min_repeat_ms: float = 100, cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False, device: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
        self.device = device
        if enable_cpu_cache_flush:
            self.number, self.min_repeat_ms = 1, 0

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], verbose: int = 1) -> list[MeasureResult]:
        """One result per input, in order. A program's errors are in its result."""
        return [self._run(recovered(inp), built) for inp, built in zip(measure_inputs, build_results, strict=True)]

    def _device(self, target: Target) -> Device:
        """The device that runs programs."""
        del target
        return LocalDevice()

    def _run(self, inp: MeasureInput, result: BuildResult) -> MeasureResult:
        if result.built is None or result.builder is None or result.error_no != MeasureErrorNo.NO_ERROR:
            return failed(result.error_no, result.error_msg, result.time_cost)
        assert isinstance(inp.task, DeclaredTask)
        task, artifact = inp.task.local.measure_task, result.built.artifact
        assert task.reference is not None and artifact is not None
        (reference,) = result.builder.build([task.reference], timeout=120)
        check_trouble(reference.failure)
        if reference.failure is not None:
            return failed(MeasureErrorNo.UNKNOWN_ERROR, f"the reference does not build: {reference.failure.text}", result.time_cost)
        started = time.monotonic()
        with closing(self._device(inp.task.local_target)) as device:
            seen = device.run(Job(task, artifact, reference.artifact, self.timing))
        elapsed = result.time_cost + time.monotonic() - started
        if isinstance(seen, Failure):
            check_trouble(seen)
            return measured((), seen, elapsed)
        return measured(seen.costs, None, elapsed)


class RPCRunner(LocalRunner):
    """Runs programs on the devices with this key, in the farm whose scheduler (TVM's tracker) is at host:port.

    n_parallel: programs in flight at a time. priority: no effect, since the farm serves its clients in turn. For the other arguments see `LocalRunner`.
    Programs are built for this machine, so the devices must be of the same kind. Running raises DeviceError if no scheduler answers, or no device has the key.
    """

    def __init__(
        self, key: str, host: str, port: int, priority: int = 1, n_parallel: int = 1, timeout: float = 10, number: int = 3, repeat: int = 1,
        min_repeat_ms: float = 0, cooldown_interval: float = 0.0, enable_cpu_cache_flush: bool = False, device: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device)
        self.key, self.host, self.port, self.priority, self.n_parallel = key, host, port, priority, n_parallel

    @property
    def devices(self) -> str:
        """The devices as text, as `open_device` takes it."""
        return farm_text(self.key, self.host, self.port, self.n_parallel)

    def _device(self, target: Target) -> Device:
        return open_device(self.devices, target)


class LocalRPCMeasureContext:
    """`runner` is a LocalRunner: unlike TVM, this needs no local server, since every program runs in its own process."""

    def __init__(
        self, priority: int = 1, n_parallel: int = 1, timeout: float = 10, number: int = 3, repeat: int = 1, min_repeat_ms: float = 0,
        cooldown_interval: float = 0.0, enable_cpu_cache_flush: bool = False, device: int = 0,
    ) -> None:  # fmt: skip
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device)


def measured(seconds: Sequence[float], failure: Failure | None, elapsed: float, timestamp: float | None = None) -> MeasureResult:
    """Convert one of our measurements to TVM's terms."""
    if failure is not None or not seconds:
        failure = failure or Failure("exit", "no time was measured")
        return failed(ERRORS[failure.kind], failure.text, elapsed, timestamp)
    return MeasureResult(tuple(seconds), MeasureErrorNo.NO_ERROR, "", elapsed, time.time() if timestamp is None else timestamp)


def failed(error_no: MeasureErrorNo, error_msg: str, elapsed: float, timestamp: float | None = None) -> MeasureResult:
    """A failure, as TVM logs it."""
    return MeasureResult((FAILED_COST,), error_no, error_msg, elapsed, time.time() if timestamp is None else timestamp)


class ProgramMeasurer:
    """Builds and runs programs and calls the callbacks. `best_flops`, `best_state`, `best_ct`: by workload key; `ct`: programs so far, `error_ct`: failures."""

    def __init__(self, builder: LocalBuilder, runner: LocalRunner, callbacks: Sequence[MeasureCallback] = (), verbose: int = 1) -> None:
        self.builder, self.runner, self.callbacks, self.verbose = builder, runner, list(callbacks), verbose
        self.ct = self.error_ct = 0
        self.best_flops: dict[str, float] = {}
        self.best_ct: dict[str, int] = {}
        self.best_state: dict[str, State] = {}

    def measure(self, task: Any, policy: object, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """One result per input, in order. Raises MachineTrouble if the machine fails; callbacks have then received the measurements made before."""
        built = self.builder.build(inputs, self.verbose)
        results: list[MeasureResult] = []
        try:
            for inp, one in zip(inputs, built, strict=True):  # one by one, so that a failing machine loses no finished result
                results += self.runner.run([inp], [one], self.verbose)
        finally:
            if results:
                self._tell(task, policy, inputs[: len(results)], results)
        return results

    def _tell(self, task: DeclaredTask, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results, strict=True):
            self.ct += 1
            self.error_ct += result.error_no != MeasureErrorNo.NO_ERROR
            flops = task.compute_dag.flop_ct / result.mean_cost
            if flops > self.best_flops.get(task.workload_key, 0.0) and isinstance(inp.state, State):
                self.best_flops[task.workload_key], self.best_ct[task.workload_key], self.best_state[task.workload_key] = flops, self.ct, inp.state
        for callback in self.callbacks:
            callback.callback(policy, inputs, results)
