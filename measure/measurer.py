"""Builds and measures candidates.

    Candidate (text, task) --Builder--> Artifact --Device--> Measurement (costs with their unit, or a failure)

If building would disturb a device's measurements, a whole batch is built first, on all cores: on a small machine, compiling disturbs timing. For
other devices, building goes on while they run; several devices run in parallel, one job each at a time.
"""

import hashlib
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from statistics import median

from ansor.codegen.artifact import Artifact
from ansor.codegen.building import Toolchain
from ansor.codegen.source import CSource
from ansor.errors import DeviceError
from ansor.measure.build_pool import BuildPool
from ansor.measure.builder import Builder, Built
from ansor.measure.device import Device, Job
from ansor.measure.device_kinds import check_forms, open_devices
from ansor.measure.device_queue import DeviceQueue, JobResult
from ansor.measure.failure import PASSING, Failure
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.measure.turns import Say
from ansor.support.closing import Closing
from ansor.support.notices import warn
from ansor.targets.base import LOCAL, Target, parse_target
from ansor.targets.unit import SECONDS, Unit

REFERENCE_COMPILE_SECONDS = 120.0
ACCIDENTS = ("timeout", "memory", *PASSING)  # kinds of failures remembered only within a batch


@dataclass(frozen=True, slots=True)
class Candidate:
    """One program to measure. `best`: the best cost of its task so far, besides what the measurer saw itself."""

    task: MeasureTask
    source: CSource
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Durations:
    """How long a trial took. measured_by: see Observation."""

    build_seconds: float = 0.0
    run_seconds: float = 0.0
    measured_by: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a candidate: costs of one call (one per repeat), or a failure."""

    costs: tuple[float, ...] = ()
    failure: Failure | None = None
    cut_short: bool = False  # clearly slower than the best: `costs` is one coarse cost
    folded: bool = False  # the same text or machine code was measured before; this is its result
    took: Durations = Durations()
    timestamp: float = field(default_factory=time.time)  # seconds since 1970, at the end of the trial
    unit: Unit = SECONDS
    counters: tuple[tuple[str, float], ...] = ()  # anything else the device counted

    @property
    def cost(self) -> float:
        """Median cost of one call; infinite for a failure."""
        return median(self.costs) if self.costs else float("inf")

    @property
    def elapsed(self) -> float:
        """Seconds the trial took."""
        return self.took.build_seconds + self.took.run_seconds


Key = bytes
"""Identifies a candidate or its machine code."""

Memory = dict[Key, Measurement | None]
"""A batch's results so far, and None for programs that have begun. It is a copy, because other batches may forget results."""


class Measurer(Closing):
    """Builds programs of one target and runs them on its devices. Use it in a `with` statement, or call `close`.

    devices: texts or devices, of one model; by default the target's own. toolchain: instead of the target's own. build_timeout: seconds per build. jobs:
    parallel builds, or a pool for them that several measurers share. overlap: build while devices run; by default if that disturbs none of them. `say` gets
    messages for the user, such as a notice of a long wait for another run that measures on this machine.

    Raises ToolchainError, here and while measuring, if the toolchain itself cannot be used, and DeviceError if a device cannot. What candidates do is
    returned as a value. So is a persistent failure of the machine, of the kind "machine": keep the other results, then raise MachineTrouble
    (`check_trouble`).
    """

    def __init__(
        self, target: str | Target = "cpu", devices: Sequence[str | Device] | str | Device | None = None, *, toolchain: Toolchain | None = None,
        timing: TimingOptions | None = None, build_timeout: float = 15.0, jobs: int | BuildPool | None = None, overlap: bool | None = None, say: Say = warn,
    ) -> None:  # fmt: skip
        self.target = parse_target(target)
        self.toolchain = toolchain or self.target.toolchain()
        self.timing = timing or TimingOptions()
        self.devices = open_devices(devices, self.target, say)
        try:
            check_forms(self.devices, self.toolchain, self.target)
        except DeviceError:
            for device in self.devices:
                device.close()
            raise
        self._overlap = not any(one.alone for one in self.devices) if overlap is None else overlap
        self.builder = Builder(self.toolchain, self.devices[0].form, timeout=build_timeout, jobs=jobs)
        self.queue = DeviceQueue(self.devices, say, threaded=self._overlap)
        self._best: dict[str, float] = {}
        self._seen: dict[Key, Measurement] = {}
        self._references: dict[str, Artifact | None] = {}
        self._coming: dict[str, Future[Sequence[Built]]] = {}  # builds of references, by task
        self._reference_failures: dict[str, Failure] = {}

    @property
    def unit(self) -> Unit:
        """The unit of costs."""
        return self.devices[0].unit

    @property
    def model(self) -> str:
        """The model of the devices."""
        return self.devices[0].model

    @property
    def is_here(self) -> bool:
        """Whether programs run only on this machine. The model does not tell: a farm's devices have a local model too."""
        return all(device.name == LOCAL for device in self.devices)

    @property
    def ahead(self) -> int:
        """How many candidates to keep in flight; 0: one batch at a time, since building would disturb a device."""
        return self.queue.ahead if self._overlap else 0

    def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
        """One measurement per candidate, in order, each yielded as soon as it is ready.

        Leaving early (an exception, Ctrl-C, closing the generator) ends compiler calls and the running candidate. Close the generator if
        you do not exhaust it: a Ctrl-C while Python collects a generator is lost.
        """
        self._build_references(batch)
        keys = [text_key(one) for one in batch]
        fresh = self.fresh(batch, keys)
        futures = self.builder.submit([one.source for one in fresh.values()])
        try:
            yield from self._measured(batch, keys, self._builds(futures))
        finally:
            self.queue.stop()
            self.builder.stop(futures)
            self.forget_accidents(self._seen)

    def close(self) -> None:
        """End runs and compiler calls, release the devices, and remove the work folder."""
        self.queue.close()
        self.builder.close()

    def _builds(self, futures: Sequence["Future[Sequence[Built]]"]) -> Iterator[Built]:
        builds = (built for future in futures for built in future.result())
        return builds if self._overlap else iter(list(builds))

    def _measured(self, batch: Sequence[Candidate], keys: Sequence[Key], builds: Iterator[Built]) -> Generator[Measurement, None, None]:
        """Submit jobs as long as devices can take them; yield results in the order of the batch, running each program once."""
        memory = self.remembered(keys)
        begun: deque[tuple[Key, Candidate, Trial]] = deque()
        for key, one in zip(keys, batch, strict=True):
            trial = Trial() if key in memory else self.begin_trial(one, next(builds), memory)
            memory.setdefault(key, None)
            begun.append((key, one, trial))
            while begun and (len(begun) > self.queue.ahead or begun[0][2].over):
                yield self.end_trial(*begun.popleft(), memory)
        while begun:
            yield self.end_trial(*begun.popleft(), memory)

    def remembered(self, keys: Iterable[Key]) -> Memory:
        """The known results of a batch when it begins."""
        return {key: self._seen[key] for key in keys if key in self._seen}

    def begin_trial(self, one: Candidate, built: Built, memory: Memory) -> "Trial":
        """Submit a built program, unless its machine code is known. memory: of its batch."""
        failure = built.failure or self._reference_failures.get(one.task.key)
        if failure is not None or built.artifact is None:
            return Trial(built, failure=failure)
        code = _key(one, built.artifact.digest) if built.artifact.digest else None
        if code is not None:
            known = code in memory or code in self._seen
            memory.setdefault(code, self._seen.get(code))
            if known:
                return Trial(built, code)
        job = Job(one.task, built.artifact, self._references[one.task.key], self.timing, self._known_best(one))
        return Trial(built, code, ran=self.queue.submit(job))

    def end_trial(self, key: Key, one: Candidate, trial: "Trial", memory: Memory) -> Measurement:
        """Wait for a trial's result. Trials of a batch end in its order. memory: of its batch."""
        seconds = 0.0 if trial.built is None else trial.built.seconds
        if trial.failure is not None:
            found = Measurement(failure=trial.failure, took=Durations(seconds), unit=self.unit)
        elif trial.ran is None:
            same = memory[key if trial.code is None else trial.code]
            assert same is not None, "a batch has the result of a program before the trials that repeat it end"
            found = replace(same, folded=True, took=Durations(seconds, measured_by=same.took.measured_by), timestamp=time.time())
        else:
            found = self._told(one, trial.ran.result(), seconds)
            if trial.code is not None:
                self._seen[trial.code] = memory[trial.code] = found
        self._seen.setdefault(key, found)
        memory[key] = memory.get(key) or found
        return found

    def _told(self, one: Candidate, ran: JobResult, build_seconds: float) -> Measurement:
        seen = ran.outcome
        took = Durations(build_seconds, ran.seconds, seen.measured_by)
        counters = tuple(sorted(seen.counters.items()))
        if isinstance(seen, Failure):
            return Measurement(failure=seen, took=took, unit=self.unit, counters=counters)
        self._best[one.task.key] = min(median(seen.costs), self._known_best(one) or float("inf"))
        return Measurement(seen.costs, None, seen.cut_short, took=took, unit=seen.unit, counters=counters)

    def _known_best(self, one: Candidate) -> float | None:
        return min((best for best in (one.best, self._best.get(one.task.key)) if best is not None), default=None)

    def fresh(self, batch: Sequence[Candidate], keys: Sequence[Key]) -> dict[Key, Candidate]:
        """Candidates not measured yet, each text once."""
        found: dict[Key, Candidate] = {}
        for key, one in zip(keys, batch, strict=True):
            if key not in self._seen:
                found.setdefault(key, one)
        return found

    def forget_accidents(self, among: Iterable[Key]) -> None:
        """Forget failures that may be the machine's fault (timeouts, out of memory, unreachable devices), so that a later batch may retry."""
        for key in list(among):
            seen = self._seen.get(key)
            if seen is not None and seen.failure is not None and seen.failure.kind in ACCIDENTS:
                del self._seen[key]

    def begin_references(self, batch: Sequence[Candidate]) -> "dict[str, Future[Sequence[Built]]]":
        """Begin building references that nobody builds yet. Returns the builds, by task, that must finish before the batch runs. See `keep_reference`."""
        for one in batch:
            key, source = one.task.key, one.task.reference
            if source is None:
                self._references[key] = None
            elif key not in self._references and key not in self._coming:
                (self._coming[key],) = self.builder.submit([source], timeout=REFERENCE_COMPILE_SECONDS)
        keys = {one.task.key for one in batch}
        return {key: build for key, build in self._coming.items() if key in keys}

    def keep_reference(self, key: str, build: "Future[Sequence[Built]]") -> None:
        """Keep a task's reference, whose build is done, until the end. Raises MachineTrouble, and what building raises."""
        if self._coming.pop(key, None) is None:
            return  # another batch kept it
        (built,) = build.result()
        check_trouble(built.failure)
        self._references[key] = built.artifact
        if built.failure is not None:
            self._reference_failures[key] = Failure("reference", f"the reference did not build: {built.failure}")

    def stop_references(self, builds: "Mapping[str, Future[Sequence[Built]]]") -> None:
        """Cancel these builds, unless they were kept."""
        left = [key for key in builds if self._coming.pop(key, None) is not None]
        self.builder.stop([builds[key] for key in left])

    def _build_references(self, batch: Sequence[Candidate]) -> None:
        """Build the references of new tasks."""
        builds = self.begin_references(batch)
        try:
            wait(builds.values())
            for key, build in builds.items():
                self.keep_reference(key, build)
        finally:
            self.stop_references(builds)


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate in flight: its build, the key of its code, and its run or why it does not run. Without either, the same program was seen before."""

    built: Built | None = None
    code: Key | None = None
    failure: Failure | None = None
    ran: "Future[JobResult] | None" = None

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.ran is None or self.ran.done()

    @property
    def raises(self) -> bool:
        """Whether its finished run raised an error."""
        return self.ran is not None and self.ran.exception() is not None


def _key(one: Candidate, code: str) -> Key:
    """Equal for candidates with necessarily equal results: the same code with the same buffers. A digest, because texts are long and many."""
    source = one.source
    about = repr((one.task.key, source.arguments, source.workspace_bytes, source.threads))
    return hashlib.sha256(f"{about}\0{code}".encode()).digest()


def text_key(one: Candidate) -> Key:
    """Equal for candidates with the same text, whatever their entry points are called."""
    return _key(one, one.source.text.replace(one.source.entry, "\0"))
