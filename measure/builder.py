"""Builds candidates: several C texts per compiler call, with calls in parallel; a failing call is split up.

One call costs about 50 ms before it compiles anything, so eight candidates of 20 ms share one. When a call fails, its
candidates are built one by one, and only the culprit fails.
"""

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

from ansor.codegen.artifact import LIBRARY, Artifact
from ansor.codegen.building import Toolchain
from ansor.codegen.source import CSource
from ansor.errors import AnsorError
from ansor.measure.build_pool import BuildPool
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import KIND, is_trouble, settled
from ansor.measure.work_directory import WorkDirectory
from ansor.support.closing import Closing
from ansor.support.shortage import COMPILER_PAUSES, is_trouble_of_system

ALONE_TIMES, ALONE_TIMES_IN_TROUBLE = 3, 8
"""How often a text must fail, with a plain text building right after it, to count as its own failure. The second applies once others failed and then built."""

PLAIN = CSource("void plain(void) {}\n", "plain", ())  # builds wherever anything does


@dataclass(frozen=True, slots=True)
class Built:
    """The result for one text: an artifact in `folder`, or a failure."""

    source: CSource
    artifact: Artifact | None
    failure: Failure | None
    seconds: float  # its share of the compiler's wall time
    folder: Path


class Builder(Closing):
    """Parallel calls of a toolchain in a private work folder, all for one form. Use it in a `with` statement, or call `close`.

    jobs: calls at a time, by default one for each core; or a pool, shared with other builders and not closed here.
    `together`: the most texts per call; by default the toolchain's own number.
    Raises ToolchainError, here and while building, if the tool itself cannot be started.
    """

    def __init__(
        self, toolchain: Toolchain, form: str = LIBRARY, *, timeout: float = 15.0, jobs: int | BuildPool | None = None, together: int | None = None
    ) -> None:
        toolchain.prepare(form)
        self.toolchain = toolchain
        self._form = form
        self._timeout = timeout
        self._together = toolchain.together(form) if together is None else together
        self._cancelled = threading.Event()
        self._alone_times = ALONE_TIMES
        self._work = WorkDirectory()
        self._owns_pool = not isinstance(jobs, BuildPool)
        self._pool = jobs if isinstance(jobs, BuildPool) else BuildPool(jobs)
        self._under_way = set[Future[Sequence[Built]]]()

    def group_size(self, count: int) -> int:
        """The most of `count` texts that share a call of the compiler."""
        return max(1, min(self._together, -(-count // self._pool.jobs)))

    def submit(self, sources: Sequence[CSource], *, timeout: float | None = None, of: int = 0) -> list["Future[Sequence[Built]]"]:
        """Start building; the results of all futures together are in the order of `sources`. of: how many there are, if others follow."""
        size = self.group_size(max(of, len(sources)))
        groups = [sources[start : start + size] for start in range(0, len(sources), size)]
        futures: list[Future[Sequence[Built]]] = [self._pool.submit(self._build_group, group, timeout or self._timeout) for group in groups]
        self._under_way = {one for one in [*self._under_way, *futures] if not one.done()}
        return futures

    @property
    def has_free_job(self) -> bool:
        """Whether another build can start at once."""
        return self._pool.has_free_job

    def build(self, sources: Sequence[CSource], *, timeout: float | None = None) -> list[Built]:
        """Build, and wait for all."""
        futures = self.submit(sources, timeout=timeout)
        try:
            return [built for future in futures for built in future.result()]
        except BaseException:
            self.stop(futures)
            raise

    def stop(self, futures: Sequence["Future[Sequence[Built]]"]) -> None:
        """End the compiler calls of these futures and remove what they made."""
        for future in futures:
            future.cancel()
        self._cancelled.set()
        wait([future for future in futures if not future.cancelled()])
        self._cancelled.clear()
        for future in futures:
            if not future.cancelled() and future.exception() is None:
                self.release(future.result())

    def release(self, built: Sequence[Built]) -> None:
        """Remove the libraries of finished candidates (all of a `build` call, or of a future)."""
        for folder in {one.folder for one in built}:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End running compiler calls and remove the work folder."""
        self._cancelled.set()
        for future in self._under_way:
            future.cancel()
        wait([future for future in self._under_way if not future.cancelled()])
        if self._owns_pool:
            self._pool.close()
        self._work.close()

    def _build_group(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        """Build a group. Failures caused by the machine are retried after a pause, as long as anything builds in between; a plain text tells whether
        a failure is the text's own."""
        built = self._attempt(group, timeout)
        pauses = iter(COMPILER_PAUSES)
        alone, told = Counter[int](), set[int]()
        while troubled := [place for place in _troubled(built) if place not in told]:
            pause = next(pauses, None)
            if pause is None:
                return [_settled(one, plain_works=False) if place in troubled else one for place, one in enumerate(built)]
            if self._cancelled.wait(pause):
                return built
            for place in troubled:
                built[place] = self._attempt([group[place]], timeout)[0]
            left = [place for place in _troubled(built) if place not in told]
            if len(left) < len(troubled):
                self._alone_times = ALONE_TIMES_IN_TROUBLE
            elif _troubled(self._attempt([PLAIN], timeout)):
                continue
            else:
                alone.update(left)
            pauses = iter(COMPILER_PAUSES)
            told.update(place for place in left if alone[place] >= self._alone_times)
            for place in told.intersection(left):
                built[place] = _settled(built[place], plain_works=True)
        return built

    def _attempt(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        """One result per text. Raises ToolchainError if the compiler cannot be started, unless the machine is the cause."""
        try:
            return self._together_or_alone(group, timeout)
        except (OSError, AnsorError) as error:
            if not is_trouble_of_system(error):
                raise
            failure = Failure(KIND, str(error))
            return [Built(source, None, failure, 0.0, self._work.path / "none") for source in group]

    def _together_or_alone(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        folder = Path(tempfile.mkdtemp(dir=self._work.path))
        together = self._together
        if len(group) > 1 and together > 1:
            built = self._compile(group, folder / "together", timeout)
            if not any(one.failure for one in built):
                return built
        alone = [self._compile([source], folder / f"alone{index}", timeout)[0] for index, source in enumerate(group)]
        if len(group) > 1 and not any(one.failure for one in alone):
            self._together = 1  # these texts conflict in one file: do not combine texts again
        return alone

    def _compile(self, group: Sequence[CSource], stem: Path, timeout: float) -> list[Built]:
        made = self.toolchain.build(group, self._form, stem, timeout=timeout, cancelled=self._cancelled)
        failure = None if made.said.ok else Failure(made.said.kind, made.said.text)
        artifacts = made.artifacts or (None,) * len(group)
        return [Built(source, artifact, failure, made.said.seconds / len(group), stem.parent) for source, artifact in zip(group, artifacts, strict=True)]


def _settled(one: Built, plain_works: bool) -> Built:
    assert one.failure is not None
    return replace(one, failure=settled(one.failure, plain_works))


def _troubled(built: Sequence[Built]) -> list[int]:
    """The places of failures caused by the machine, not the program."""
    return [place for place, one in enumerate(built) if one.failure is not None and is_trouble(one.failure.kind, one.failure.text)]
