"""Job -> built candidate -> measurement.

    Job (C text, task) --Builder--> Built (shared library) --Runner--> Measurement (seconds, or a failure)

By default a whole batch is built first, on all cores, and then run with nothing else going on: on a small machine
compiling and timing disturb each other.
"""

import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from statistics import median
from types import TracebackType
from typing import Self

from ansor.codegen.pool_library import SOURCE as POOL_SOURCE
from ansor.codegen.pool_library import pool_library
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiler, find_compiler
from ansor.measure.builder import Builder, Built
from ansor.measure.failure import Failure
from ansor.measure.harness import harness_library
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.runner import Runner
from ansor.measure.timing import TimingOptions
from ansor.measure.turns import Say
from ansor.support.notices import warn

REFERENCE_COMPILE_SECONDS = 120.0
ACCIDENTS = ("timeout", "memory", "machine")  # kinds of failures that are remembered within a batch only


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """What all candidates of a task share. `reference` computes the expected outputs in double precision: the same
    arguments with float64 for every float; None: outputs are not verified. `reduction` is the length of the longest
    reduction behind an output element; `ranges` gives (low, high) for arguments that must not get the default inputs;
    `threads`: of the target, which decide the clock; `files` holds the values of single arguments (NumPy's format);
    `rounding`: the dtype in which outputs were computed on the way, where that is a narrower one."""

    key: str
    reference: CSource | None = None
    reduction: int = 1
    ranges: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0
    threads: int = 1
    files: tuple[tuple[str, str], ...] = ()
    rounding: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One candidate to measure. `best_seconds`: the best time of its task so far, beside what the measurer saw itself."""

    task: MeasureTask
    source: CSource
    best_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What became of a job: seconds of one call (one for each repeat), or a failure."""

    seconds: tuple[float, ...] = ()
    failure: Failure | None = None
    cut_short: bool = False  # clearly slower than the best: `seconds` is one coarse time
    folded: bool = False  # the same text or machine code was measured before; this is its result
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    timestamp: float = field(default_factory=time.time)  # seconds since 1970, at the end of the trial

    @property
    def latency_s(self) -> float:
        """Median seconds of one call; infinite for a failure."""
        return median(self.seconds) if self.seconds else float("inf")

    @property
    def elapsed(self) -> float:
        """Seconds the trial took."""
        return self.build_seconds + self.run_seconds


_Key = bytes


class Measurer:
    """Builds and runs candidates. Use it in a `with` statement, or call `close`.

    `say` is told when another run measures on this machine, and this one waits for long.
    Raises ToolchainError, here and while measuring, when the compiler itself cannot be used; what candidates do is a value. So is trouble of the machine
    that stays when it is tried again, a failure of the kind "machine": who gets one raises MachineTrouble (`check_trouble`) after keeping the others.
    """

    def __init__(
        self,
        compiler: Compiler | None = None,
        *,
        mcpu: str = "native",
        flags: Sequence[str] = (),
        timing: TimingOptions | None = None,
        build_timeout: float = 15.0,
        jobs: int | None = None,
        overlap: bool = False,
        say: Say = warn,
    ) -> None:
        self.compiler = compiler or find_compiler()
        self.timing = timing or TimingOptions()
        self._overlap = overlap
        self._builder = Builder(self.compiler, mcpu=mcpu, flags=flags, timeout=build_timeout, jobs=jobs)
        pool = pool_library(self.compiler) if POOL_SOURCE.exists() else None
        self._runner = Runner(harness_library(self.compiler), pool, self.timing, say)
        self._best: dict[str, float] = {}
        self._seen: dict[_Key, Measurement] = {}
        self._reference_failures: dict[str, Failure] = {}

    def measure(self, batch: Sequence[Job]) -> Generator[Measurement, None, None]:
        """One measurement for each job, in order, each given as soon as it is there.

        Leaving early (an exception, Ctrl-C, closing the generator) ends compiler calls and the running candidate. Who does not exhaust it closes it:
        a Ctrl-C that comes while Python clears a generator away is lost.
        """
        self._define_tasks(batch)
        fresh: dict[_Key, Job] = {}
        keys = [_text_key(job) for job in batch]
        for key, job in zip(keys, batch, strict=True):
            if key not in self._seen:
                fresh.setdefault(key, job)
        futures = self._builder.submit([job.source for job in fresh.values()])
        try:
            builds = _all(futures)
            if not self._overlap:
                builds = iter(list(builds))
            for key, job in zip(keys, batch, strict=True):
                if key in self._seen:
                    yield replace(self._seen[key], folded=True, build_seconds=0.0, run_seconds=0.0, timestamp=time.time())
                    continue
                self._seen[key] = self._measure_built(job, next(builds))
                yield self._seen[key]
        finally:
            self._builder.stop(futures)
            self._forget_accidents()

    def noise_floor(self) -> float:
        """Relative spread of a fixed kernel on this machine now; differences below it mean nothing."""
        return self._runner.noise_floor()

    def close(self) -> None:
        """End the worker process and compiler calls, remove the work folder."""
        self._runner.close()
        self._builder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _measure_built(self, job: Job, built: Built) -> Measurement:
        if built.failure is not None:
            return Measurement(failure=built.failure, build_seconds=built.seconds)
        code_key = _key(job, built.digest)
        if built.digest and code_key in self._seen:
            same = self._seen[code_key]
            return replace(same, folded=True, build_seconds=built.seconds, run_seconds=0.0, timestamp=time.time())
        measurement = self._run(job, built)
        if built.digest:
            self._seen[code_key] = measurement
        return measurement

    def _forget_accidents(self) -> None:
        """Late or short of memory: that may be the machine's fault, so that a later batch may try again."""
        self._seen = {key: seen for key, seen in self._seen.items() if seen.failure is None or seen.failure.kind not in ACCIDENTS}

    def _run(self, job: Job, built: Built) -> Measurement:
        task = job.task.key
        if task in self._reference_failures:
            return Measurement(failure=self._reference_failures[task], build_seconds=built.seconds)
        known = [best for best in (job.best_seconds, self._best.get(task)) if best is not None]
        callable_source = replace(job.source, entry=built.symbol)
        run = self._runner.run(task, callable_source, built.library, best_seconds=min(known, default=None))
        if run.seconds:
            self._best[task] = min([median(run.seconds), *known])
        return Measurement(run.seconds, run.failure, run.cut_short, False, built.seconds, run.elapsed)

    def _define_tasks(self, batch: Sequence[Job]) -> None:
        """Build the references of tasks that are new; they stay until the end."""
        new = {job.task.key: job for job in batch if not self._runner.knows(job.task.key)}
        references = [job.task.reference for job in new.values() if job.task.reference is not None]
        built = iter(self._builder.build(references, timeout=REFERENCE_COMPILE_SECONDS))
        for key, job in new.items():
            task = job.task
            one = next(built) if task.reference is not None else None
            check_trouble(one.failure if one is not None else None)
            if one is not None and one.failure is not None:
                self._reference_failures[key] = Failure("reference", f"the reference did not build: {one.failure}")
                one = None
            self._runner.define(
                key, job.source, reduction=task.reduction, seed=task.seed, threads=task.threads,
                ranges={name: (low, high) for name, low, high in task.ranges}, files=dict(task.files), rounding=task.rounding,
                reference=None if one is None else replace(one.source, entry=one.symbol),
                reference_library=None if one is None else one.library,
            )  # fmt: skip


def _all(futures: Sequence["Future[Sequence[Built]]"]) -> Iterator[Built]:
    for future in futures:
        yield from future.result()


def _key(job: Job, code: str) -> _Key:
    """Equal for jobs that must have equal results: the same code with the same buffers. A digest, because texts are long and many."""
    source = job.source
    about = repr((job.task.key, source.arguments, source.workspace_bytes, source.threads))
    return hashlib.sha256(f"{about}\0{code}".encode()).digest()


def _text_key(job: Job) -> _Key:
    return _key(job, job.source.text.replace(job.source.entry, "\0"))
