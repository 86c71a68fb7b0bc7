"""Builds and runs programs of configurations on this machine. Source: AutoTVM 0.9, `autotvm.measure.measure_methods`.

Every program is compared with its declaration in double precision before timing: WRONG_ANSWER is a possible outcome.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ansor.codegen.artifact import LIBRARY, PROGRAM, Artifact
from ansor.codegen.source import CSource
from ansor.compat.autotvm.measured import Failed, MeasureInput, MeasureResult, Unmeasured
from ansor.compat.common.local_target import measured_target
from ansor.compat.common.outcome import ERRORS, MeasureErrorNo
from ansor.compat.common.runner import TimedRunner, check_build_func, farm_text
from ansor.errors import AnsorError, ConfigError, MachineTrouble, TargetError, ToolchainError
from ansor.ir.dag import Dag
from ansor.manual.program import source_of
from ansor.measure import builder as builders
from ansor.measure.device import Device, Job
from ansor.measure.device_kinds import open_devices
from ansor.measure.device_queue import DeviceQueue, JobResult
from ansor.measure.devices.local import LocalDevice
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measure_task import MeasureTask
from ansor.measure.measurer import REFERENCE_COMPILE_SECONDS
from ansor.measure.reference import measure_task
from ansor.measure.timing import TimingOptions
from ansor.support import settings
from ansor.targets.base import Target
from ansor.templates.task import Task


@dataclass(frozen=True)
class BuildResult:
    """A built program, or the reason why it was not built. filename: its library, kept until it has run; arg_info: shapes and dtypes of its arguments."""

    filename: str = ""
    arg_info: tuple[tuple[tuple[int, ...], str], ...] = ()
    error_no: MeasureErrorNo = MeasureErrorNo.NO_ERROR
    error_msg: str = ""
    time_cost: float = 0.0
    dag: Dag | None = field(default=None, repr=False)
    built: builders.Built | None = field(default=None, repr=False)
    release: Callable[[], None] = field(default=lambda: None, repr=False)


class LocalBuilder:
    """Builds programs: `n_parallel` at a time (by default one per core), each in `timeout` seconds.

    build_kwargs, do_fork and runtime are accepted but ignored: programs are C, which compilers build in separate processes.
    Raises TargetError for a `build_func` other than "default".
    """

    def __init__(
        self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Mapping[str, object] | None = None,
        build_func: str | Callable[..., object] = "default", do_fork: bool = False, runtime: object = None,
    ) -> None:  # fmt: skip
        check_build_func(build_func)
        self.timeout, self.n_parallel = timeout, n_parallel or settings.jobs()
        self._builder: builders.Builder | None = None

    def set_task(self, task: Task) -> None:
        """Create a folder for the task's programs. Raises TargetError if the target is not a processor, ToolchainError without a compiler."""
        self.close()
        self._target = measured_target(task.target)
        self._builder = builders.Builder(self._target.toolchain(), LIBRARY if self._target.is_local else PROGRAM, timeout=self.timeout, jobs=self.n_parallel)

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        """One result per input, in order. Inputs that cannot be instantiated are not compiled."""
        made = [self._made(inp) for inp in measure_inputs]
        assert self._builder is not None, "set_task comes first"
        # One by one: programs compiled together share a library, which can only be removed as a whole.
        futures = [None if source is None else self._builder.submit([source])[0] for source, _ in made]
        return [result if future is None else self._built(result, future.result()[0]) for (_, result), future in zip(made, futures, strict=True)]

    def close(self) -> None:
        """End compiler calls and remove the folder."""
        if self._builder is not None:
            self._builder.close()
            self._builder = None

    def _made(self, inp: MeasureInput) -> tuple[CSource | None, BuildResult]:
        started = time.monotonic()
        try:
            schedule, args = inp.task.instantiate(inp.config)
            inp.config.check()
            sketch = schedule.sketch(args)
            source = source_of(sketch, self._target)
        except AnsorError as error:
            return None, BuildResult(error_no=MeasureErrorNo.INSTANTIATION_ERROR, error_msg=str(error), time_cost=time.monotonic() - started)
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in args)
        return source, BuildResult(arg_info=shapes, time_cost=time.monotonic() - started, dag=sketch.dag)

    def _built(self, result: BuildResult, built: builders.Built) -> BuildResult:
        spent = result.time_cost + built.seconds
        if built.failure is not None:
            return replace(result, error_no=ERRORS[built.failure.kind], error_msg=built.failure.text, time_cost=spent, built=built)
        assert self._builder is not None
        builder = self._builder
        filename = "" if built.artifact is None else str(built.artifact.path)
        return replace(result, filename=filename, time_cost=spent, built=built, release=lambda: builder.release([built]))


class SupportsSubmit(Protocol):
    """An executor of calls, such as `concurrent.futures.ThreadPoolExecutor`."""

    def submit(self, fn: Callable[..., MeasureResult], /, *args: object, **kwargs: object) -> Future[MeasureResult]:
        """Start a call and return its future."""
        ...


class LocalRunner(TimedRunner):
    """Runs programs one after another, each in its own process; `timeout` in seconds.

    Each of `repeat` costs is the mean of `number` calls, or of more until `min_repeat_ms` has passed; with enable_cpu_cache_flush, of one call on cold
    caches. If there are more than two costs, the largest and the smallest are dropped. A program over three times slower than the best so far is timed once.

    `ref_input`: arrays for the arguments, in order, including outputs, which are ignored; by default inputs are generated.
    `executor`: if set, receives `submit(run_one, build_result, ref_input=...)` for each program; programs still run one at a time.
    Raises TargetError for a module_loader, ConfigError for numbers out of range.
    """

    def __init__(
        self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: float = 0, cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False, module_loader: object = None,
    ) -> None:  # fmt: skip
        if module_loader is not None:
            raise TargetError(f"asked to load programs with {module_loader!r}; programs are loaded on this machine: omit module_loader")
        if number < 1 or repeat < 1 or timeout <= 0:
            found = f"number={number}, repeat={repeat}, timeout={timeout}"
            raise ConfigError(f"asked for a LocalRunner with {found}; give number and repeat of at least 1, and a timeout above 0")
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
        self.ref_input: Sequence[ArrayLike] | None = None
        self.executor: SupportsSubmit | None = None
        self._turn = Lock()
        self._session: _Session | None = None

    def set_task(self, task: Task) -> None:
        """Start a process for the task's programs. Raises TargetError if the target is not a processor, ToolchainError without a compiler."""
        self.close()
        target = measured_target(task.target)
        self._session = _Session(target, self._devices(target), self.timing)

    def _devices(self, target: Target) -> Sequence[Device]:
        """The devices that run programs."""
        if not target.is_local:
            raise TargetError(f"asked to measure programs for {target} on this machine, which cannot run them: give autotvm.RPCRunner(key, host, port)")
        return [LocalDevice()]

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]) -> list[MeasureResult]:
        """One result per input, in order: `Unmeasured` if the machine is at fault."""
        if self.executor is not None:
            waiting = [self.executor.submit(self.run_one, build, ref_input=self.ref_input) for build in build_results]
            return [future.result() for future in waiting]
        return self._run(build_results, self.ref_input)

    def run_one(self, build_result: BuildResult, ref_input: Sequence[ArrayLike] | None = None) -> MeasureResult:
        """The result of one program, for executors. Calls from several threads run one at a time."""
        with self._turn:
            return self._run([build_result], ref_input)[0]

    def _run(self, build_results: Sequence[BuildResult], ref_input: Sequence[ArrayLike] | None) -> list[MeasureResult]:
        assert self._session is not None, "set_task comes first"
        self._session.give(ref_input)
        return list(self._session.run(build_results))

    def close(self) -> None:
        """End the process."""
        if self._session is not None:
            self._session.close()
            self._session = None


class RPCRunner(LocalRunner):
    """Runs programs on the devices with this key, in the farm whose scheduler (TVM's tracker) is at host:port.

    n_parallel: programs in flight, by default two per device. priority: ignored, since the farm serves its clients in turn. For the other arguments see
    `LocalRunner`. Programs are built for the target: `llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72` for ARM boards, other targets for machines of
    this kind. Costs are in the device's unit: seconds, or instructions on emulators. Raises ConfigError for numbers out of range; `set_task` raises
    DeviceError if no scheduler answers or no device has the key.
    """

    def __init__(
        self, key: str, host: str, port: int, priority: int = 1, timeout: float = 10, n_parallel: int | None = None, number: int = 4, repeat: int = 3,
        min_repeat_ms: float = 0, cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, module_loader: object = None,
    ) -> None:  # fmt: skip
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, module_loader)
        self.key, self.host, self.port, self.priority, self.n_parallel = key, host, port, priority, n_parallel

    def _devices(self, target: Target) -> Sequence[Device]:
        return open_devices(farm_text(self.key, self.host, self.port, self.n_parallel), target)


_Run = tuple[MeasureTask, "Future[JobResult]"]
"""What the programs of a declaration share, and the future result of one of them."""


def _unmeasured(build: BuildResult, trouble: MachineTrouble) -> Unmeasured:
    return Unmeasured(MeasureErrorNo.UNKNOWN_ERROR, str(trouble), build.time_cost, time.time())


class _Session:
    """Runs the programs of one task. Builds a reference before the first program of each declaration."""

    def __init__(self, target: Target, devices: Sequence[Device], timing: TimingOptions) -> None:
        self._target = target
        self._builder = builders.Builder(self._target.toolchain(), devices[0].form, timeout=REFERENCE_COMPILE_SECONDS)
        self._queue, self._timing = DeviceQueue(devices), timing
        self._ref_input: Sequence[ArrayLike] | None = None
        self._number = 0  # counts the sets of arrays: devices cache arrays by task, so a new set needs a new task
        self._folder = tempfile.TemporaryDirectory(prefix="ansor-ref-input-")
        self._tasks: dict[str, tuple[MeasureTask, Artifact]] = {}
        self._best: dict[str, float] = {}

    def give(self, ref_input: Sequence[ArrayLike] | None) -> None:
        """Set the arguments of later programs."""
        if ref_input is not self._ref_input:
            self._ref_input, self._number = ref_input, self._number + 1

    def run(self, builds: Sequence[BuildResult]) -> Iterator[MeasureResult]:
        """Run, verify and time programs, as many at a time as devices take, and remove their libraries. One result for each, in order."""
        waiting: deque[tuple[BuildResult, MeasureResult | _Run]] = deque()
        for build in builds:
            waiting.append((build, self._begun(build)))
            if len(waiting) > self._queue.ahead:
                yield self._ended(*waiting.popleft())
        while waiting:
            yield self._ended(*waiting.popleft())

    def _begun(self, build: BuildResult) -> MeasureResult | _Run:
        """Submit a program to a device. Returns its result instead if it cannot run."""
        try:
            if build.built is not None:
                check_trouble(build.built.failure)
            if build.built is None or build.built.artifact is None or build.dag is None or build.error_no != MeasureErrorNo.NO_ERROR:
                return Failed(build.error_no, build.error_msg, build.time_cost, time.time())
            task, reference = self._defined(build.dag)
            return task, self._queue.submit(Job(task, build.built.artifact, reference, self._timing, self._best.get(task.key)))
        except MachineTrouble as trouble:  # raised later, since the rest of the batch has results
            return _unmeasured(build, trouble)

    def _ended(self, build: BuildResult, begun: MeasureResult | _Run) -> MeasureResult:
        try:
            return begun if isinstance(begun, MeasureResult) else self._told(build, begun[0], begun[1].result())
        except MachineTrouble as trouble:
            return _unmeasured(build, trouble)
        finally:
            build.release()

    def _told(self, build: BuildResult, task: MeasureTask, ran: JobResult) -> MeasureResult:
        seen, elapsed = ran.outcome, build.time_cost + ran.seconds
        if isinstance(seen, Failure):
            check_trouble(seen)
            return Failed(ERRORS[seen.kind], seen.text, elapsed, time.time())
        self._best[task.key] = min(self._best.get(task.key, np.inf), float(np.median(seen.costs)))
        costs = tuple(sorted(seen.costs)[1:-1]) if len(seen.costs) > 2 else seen.costs
        return MeasureResult(costs, MeasureErrorNo.NO_ERROR, elapsed, time.time())

    def close(self) -> None:
        self._queue.close()
        self._builder.close()
        self._folder.cleanup()

    def _defined(self, dag: Dag) -> tuple[MeasureTask, Artifact]:
        """What the programs of a declaration share, and its reference."""
        key = f"{dag.key} {','.join(tensor.name for tensor in dag.tensors)} {self._number}"
        if key in self._tasks:
            return self._tasks[key]
        task = replace(measure_task(dag, self._target), key=key, files=self._files(dag))
        assert task.reference is not None
        (reference,) = self._builder.build([task.reference])
        check_trouble(reference.failure)
        if reference.artifact is None:
            raise ToolchainError(f"asked to verify programs of {dag.outputs[0].name}, but their reference does not build: {reference.failure}")
        self._tasks[key] = task, reference.artifact
        return self._tasks[key]

    def _files(self, dag: Dag) -> tuple[tuple[str, str], ...]:
        """The given inputs, saved as files."""
        if self._ref_input is None:
            return ()
        given = [np.asarray(array) for array in self._ref_input]
        wanted, found = [(tensor.shape, tensor.dtype) for tensor in dag.tensors], [(array.shape, str(array.dtype)) for array in given]
        if wanted != found:
            raise ConfigError(f"asked to measure with ref_input of {found}, but programs take {wanted}; give arrays of these shapes and dtypes")
        files = []
        for number, (tensor, array) in enumerate(zip(dag.tensors, given, strict=True)):
            if tensor.is_placeholder:
                path = Path(self._folder.name) / f"{self._number}-{number}.npy"
                np.save(path, array)
                files.append((tensor.name, str(path)))
        return tuple(files)
