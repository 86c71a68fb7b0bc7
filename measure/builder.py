"""Builds candidates: several C texts for each compiler call, calls side by side, and a failing call taken apart.

One call costs about 50 ms before it compiles anything, so eight candidates of 20 ms share one. When a call fails, its
candidates are built one by one, and only the culprit fails.
"""

import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiled, Compiler, compile_shared, prepare
from ansor.errors import AnsorError
from ansor.measure.failure import Failure
from ansor.measure.identity import code_digests
from ansor.measure.machine_trouble import KIND, is_trouble, settled
from ansor.measure.work_directory import WorkDirectory
from ansor.support import settings
from ansor.support.shortage import PAUSES, is_trouble_of_system

TOGETHER = 8  # candidates in one compiler call
PLAIN = CSource("void plain(void) {}\n", "plain", ())  # builds wherever anything does
# Names of file-scope functions and variables, which candidates in one file must not share.
_STATIC = re.compile(r"^static\b[^;{}()=]*?\b(\w+)\s*(?:\(|=|;|\[)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate as a shared library; `symbol` is its entry point there, `digest` its machine code ('' if not known)."""

    source: CSource
    library: Path
    symbol: str
    digest: str
    failure: Failure | None
    seconds: float  # its share of the compiler's wall time


class Builder:
    """Compiler calls side by side in a private work folder. Use it in a `with` statement, or call `close`.

    Raises ToolchainError, here and while building, when the compiler itself cannot be started.
    """

    def __init__(
        self,
        compiler: Compiler,
        *,
        mcpu: str = "native",
        flags: Sequence[str] = (),
        timeout: float = 15.0,
        jobs: int | None = None,
        together: int = TOGETHER,
    ) -> None:
        prepare(compiler, mcpu)
        self.compiler = compiler
        self._mcpu = mcpu
        self._flags = tuple(flags)
        self._timeout = timeout
        self._jobs = jobs or settings.jobs()
        self._together = together
        self._cancelled = threading.Event()
        self._work = WorkDirectory()
        self._pool = ThreadPoolExecutor(self._jobs, thread_name_prefix="ansor-build")

    def submit(self, sources: Sequence[CSource], *, timeout: float | None = None) -> list["Future[Sequence[Built]]"]:
        """Start building; the results of all futures together are in the order of `sources`."""
        size = max(1, min(self._together, -(-len(sources) // self._jobs)))
        groups = [sources[start : start + size] for start in range(0, len(sources), size)]
        return [self._pool.submit(self._build_group, group, timeout or self._timeout) for group in groups]

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
        """Remove the libraries of candidates that are done with (all of a `build` call, or of a future)."""
        for folder in {one.library.parent for one in built}:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End running compiler calls and remove the work folder."""
        self._cancelled.set()
        self._pool.shutdown(cancel_futures=True)
        self._work.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _build_group(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        """Build; what fails for the machine's sake is tried again after a pause, and when it stays, a plain text tells whose failure it is."""
        built = self._attempt(group, timeout)
        for pause in PAUSES:
            troubled = _troubled(built)
            if not troubled or self._cancelled.wait(pause):
                return built
            for place in troubled:
                built[place] = self._attempt([group[place]], timeout)[0]
        troubled = _troubled(built)
        plain_works = bool(troubled) and not _troubled(self._attempt([PLAIN], timeout))
        for place in troubled:
            failure = built[place].failure
            assert failure is not None
            built[place] = replace(built[place], failure=settled(failure, plain_works))
        return built

    def _attempt(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        """One result for each text. Raises ToolchainError for a compiler that cannot be started, unless the machine is why."""
        try:
            return self._together_or_alone(group, timeout)
        except (OSError, AnsorError) as error:
            if not is_trouble_of_system(error):
                raise
            failure = Failure(KIND, str(error))
            return [Built(source, self._work.path / "none" / "none.so", "", "", failure, 0.0) for source in group]

    def _together_or_alone(self, group: Sequence[CSource], timeout: float) -> list[Built]:
        folder = Path(tempfile.mkdtemp(dir=self._work.path))
        together = self._together
        if len(group) > 1 and together > 1:
            built = self._compile(group, folder / "together", timeout)
            if not any(one.failure for one in built):
                return built
        alone = [self._compile([source], folder / f"alone{index}", timeout)[0] for index, source in enumerate(group)]
        if len(group) > 1 and not any(one.failure for one in alone):
            self._together = 1  # these texts do not get on in one file: do not try again
        return alone

    def _compile(self, group: Sequence[CSource], stem: Path, timeout: float) -> list[Built]:
        if len(group) == 1:
            symbols, text = [group[0].entry], group[0].text
        else:
            symbols = [f"ansor_candidate_{index}" for index in range(len(group))]
            text = "\n".join(_apart(source, symbol) for source, symbol in zip(group, symbols, strict=True))
        made, library = stem.with_suffix(".o"), stem.with_suffix(".so")
        compiled = self._call(["-c", "-g0", "-ffunction-sections"], text, made, timeout)
        digests: dict[str, str] = {}
        seconds = compiled.seconds
        if compiled.ok:
            digests = code_digests(made, symbols)
            compiled = self._call([], made, library, timeout)
            seconds += compiled.seconds
            made.unlink()
        failure = None if compiled.ok else Failure(compiled.kind, compiled.text)
        return [
            Built(source, library, symbol, digests.get(symbol, ""), failure, seconds / len(group))
            for source, symbol in zip(group, symbols, strict=True)
        ]

    def _call(self, flags: Sequence[str], source: Path | str, output: Path, timeout: float) -> Compiled:
        return compile_shared(
            self.compiler, [source], output, mcpu=self._mcpu, flags=[*self._flags, *flags], timeout=timeout,
            cancelled=self._cancelled,
        )  # fmt: skip


def _troubled(built: Sequence[Built]) -> list[int]:
    """The places of those that the machine failed rather than the program."""
    return [place for place, one in enumerate(built) if one.failure is not None and is_trouble(one.failure.kind, one.failure.text)]


def _apart(source: CSource, symbol: str) -> str:
    """The text of a candidate, with its file-scope names made its own."""
    names = dict.fromkeys(_STATIC.findall(source.text))
    renamed = {source.entry: symbol, **{name: f"{symbol}_{name}" for name in names if name != source.entry}}
    defines = [f"#define {old} {new}" for old, new in renamed.items() if old != new]
    undefines = [f"#undef {old}" for old in renamed]
    return "\n".join([*defines, f'#line 1 "{source.entry}.c"', source.text, *undefines, ""])
