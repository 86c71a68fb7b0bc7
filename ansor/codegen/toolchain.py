"""Finds the C compiler and its flags, and calls it.

The default is the clang inside the `ziglang` wheel, so no system compiler is needed; `--cc`, a target option or `$CC` choose another.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ansor.codegen.compiler_runtime import link_attempts, misses_symbols
from ansor.codegen.complaints import errors_alone, in_brief
from ansor.codegen.library_cache import kept_library
from ansor.errors import CacheError, MachineTrouble, ToolchainError
from ansor.support import settings
from ansor.support.forked import Locked
from ansor.support.safe_files import naming
from ansor.support.shortage import COMPILER_PAUSES, is_shortage, sentence
from ansor.support.text import clip

T = TypeVar("T")

LIBRARY_FLAGS = ("-fPIC", "-shared")
BASE_FLAGS = (
    "-O3",
    "-std=gnu99",
    # Fast, but keeps NaN, infinities and the order of operations (no -ffast-math).
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
)
# How far back LLVM looks for an earlier load or store of the same place. Its default of 100 instructions is four fifths of the time of a long unrolled body
# (the transforms of Winograd's method: 2.3 s, 0.7 s with 10) and gives the same machine code. Short loops are not vectorised with a mask instead of a
# remainder: for AVX-512, clang 22 drops the mask when 64-bit integers are narrowed to bytes, and writes past the end. Vectors stay as wide as in the
# text: for Intel's processors, clang would split those of 64 bytes, and tiles made for the registers would not fit.
LLVM_FLAGS = ("-mllvm", "-memdep-block-scan-limit=10", "-mllvm", "-vectorizer-min-trip-count=0", "-mprefer-vector-width=512")
ROOM_BYTES = 64 * 1024  # less than a compiler needs besides its output
ASK_SECONDS = 60.0  # for a compiler's version and macros
# Exit codes of a killed process, and of a shell that ran it. The system kills when memory is short.
KILLED = {
    code: text
    for number, text in ((9, "the compiler was killed (SIGKILL)"), (25, "the compiler was stopped: file too large (SIGXFSZ)"))
    for code in (-number, 128 + number)
}
CHANGING = (
    "processor", "core id", "apicid", "initial apicid", "physical id", "siblings", "cpu cores", "cpu mhz", "bogomips", "microcode", "bugs", "hart", "clock",
    "timebase",
)  # fmt: skip
"""Fields of /proc/cpuinfo, in lower case, that differ between cores, moments and kernels."""
FIRST_CALL_SECONDS = 300.0  # zig builds its runtime, or a C library, for the first file that needs it: 5 s here, more on a small machine


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler that was found and started once: how to call it, and its version."""

    kind: str  # "zig" | "clang" | "gcc"
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return self.version

    def flags(self, mcpu: str = "native") -> tuple[str, ...]:
        """The flags for every shared library; `mcpu` as in `code_flags`."""
        return (*BASE_FLAGS[:2], *LIBRARY_FLAGS, *self.code_flags(mcpu)[2:])

    def code_flags(self, mcpu: str = "native") -> tuple[str, ...]:
        """The flags for code of any form; `mcpu` is "native", a processor's name, or "" for any processor."""
        if self.kind == "zig":
            # zig cc links its sanitizer runtime and traps unless told not to; in its names a dash removes a feature.
            return (*BASE_FLAGS, *LLVM_FLAGS, "-fno-sanitize=all", f"-mcpu={mcpu.replace('-', '_') or 'baseline'}")
        flags = (*BASE_FLAGS, *LLVM_FLAGS) if self.kind == "clang" else BASE_FLAGS
        return (*flags, f"-march={mcpu}") if mcpu else flags


@dataclass(frozen=True, slots=True)
class Compiled:
    """The outcome of one compiler call; `kind` is '' on success, else "compile" or "compile_timeout"."""

    kind: str
    text: str  # the tool's output
    seconds: float
    command: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.kind


def find_compiler(command: str = "") -> Compiler:
    """The compiler `command` names, else `$CC`, else the embedded one.

    `command` is a command line ("clang-19", "/opt/bin/gcc -m64") or "zig" for the embedded one.
    Raises ToolchainError if it cannot be started or is neither clang nor gcc, MachineTrouble if the machine lacks resources to start it.
    """
    return _find(command.strip() or settings.compiler_command() or "zig")


@lru_cache
def _find(text: str) -> Compiler:
    command = shlex.split(text)
    if Path(command[0]).name == "zig" and command[1:] in ([], ["cc"]):
        zig = _embedded_zig() if command[0] == "zig" else command[0]
        return Compiler("zig", (zig, "cc"), f"zig cc {_ask(text, [zig, 'version'])}")
    if shutil.which(command[0]) is None:
        raise ToolchainError(
            f"C compiler {text!r} was asked for, but there is no program {command[0]!r} on the PATH; "
            f"name another one with --cc or $CC, or leave both out to use the embedded one"
        )
    macros = _ask(text, [*command, "-dM", "-E", "-x", "c", os.devnull])
    if "__GNUC__" not in macros:  # clang defines it too
        raise ToolchainError(f"{text!r} is not a C compiler that ansor can use: neither clang nor gcc; name another with --cc or $CC")
    version = _ask(text, [*command, "--version"]).splitlines()[0]
    if "ziglang" in command:
        return Compiler("zig", tuple(command), version)
    return Compiler("clang" if "__clang__" in macros else "gcc", tuple(command), version)


def _embedded_zig() -> str:
    found = importlib.util.find_spec("ziglang")
    for folder in (found.submodule_search_locations or ()) if found else ():
        # The program itself rather than `python -m ziglang`: saves an interpreter start in every call.
        zig = Path(folder) / ("zig.exe" if sys.platform == "win32" else "zig")
        if zig.exists():
            return str(zig)
    zig_on_path = shutil.which("zig")
    if zig_on_path is None:
        raise ToolchainError(
            "no C compiler: the ziglang package is not installed and no zig is on the PATH; "
            "`pip install ziglang`, or name a clang or gcc with --cc or $CC"
        )
    return zig_on_path


def _ask(text: str, command: list[str]) -> str:
    return _tried_again(lambda: _asked(text, command))


def _asked(text: str, command: list[str]) -> str:
    try:
        # A session of its own: a script may hang in a program it started, which must be killed with it.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        _check_shortage(str(error))
        raise ToolchainError(f"C compiler {text!r} could not be started: {error}; name another with --cc or $CC") from error
    try:
        answer, complaint = process.communicate(timeout=ASK_SECONDS)
    except subprocess.TimeoutExpired as error:
        hung = f"C compiler {text!r} hangs: no answer from {shlex.join(command)} in {ASK_SECONDS:g} s"
        raise ToolchainError(f"{hung}; name another with --cc or $CC") from error
    finally:
        _end(process)
    if process.returncode or not answer.strip():
        _check_shortage(KILLED.get(process.returncode, complaint))
        said = " ".join(clip(complaint or answer, 300).split()) or "nothing"
        raise ToolchainError(f"{text!r} is not a C compiler that ansor can use: {shlex.join(command)} said {said}; name another with --cc or $CC")
    return answer.strip()


def _tried_again(attempt: Callable[[], T]) -> T:
    """The result of `attempt`, retried after a pause if the machine caused its failure. Raises MachineTrouble if that persists."""
    for pause in COMPILER_PAUSES:
        try:
            return attempt()
        except MachineTrouble:
            time.sleep(pause)
    return attempt()


def _check_shortage(said: str) -> None:
    """Raises MachineTrouble if another compiler would fare no better."""
    if is_shortage(said):
        raise MachineTrouble(sentence(said))


def _check_room(folder: Path) -> None:
    """Raises CacheError if too little space is left to build anything: compilers report that in many ways, or not at all."""
    free = shutil.disk_usage(folder).free
    if free < ROOM_BYTES:
        cache = settings.writable_cache()
        raise CacheError(f"no space in the cache folder {cache}: {free // 1024} kB are free; free some space, or set ANSOR_CACHE to another folder")


@lru_cache
def processor_name() -> str:
    """The model name of this machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model", "cpu model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@lru_cache
def processor_kind() -> str:
    """Identifies what code for "native" depends on, for cache keys: the processor, its instructions, and the C library. On cloud machines one name stands for
    several kinds of processors, and they may share a home folder, also with containers that have an older C library."""
    try:
        block = re.split(r"\n\s*\n", Path("/proc/cpuinfo").read_text(errors="replace"))[0]
    except OSError:
        block = ""
    lines = [line for line in block.splitlines() if line.partition(":")[0].strip().lower() not in CHANGING]
    return hashlib.sha256("\n".join((platform.machine(), _c_library(), processor_name(), *lines)).encode()).hexdigest()


def _c_library() -> str:
    """The C library's name of itself; '' for one without, such as musl."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""


def compile_shared(
    compiler: Compiler,
    sources: Sequence[Path | str],
    output: Path,
    *,
    mcpu: str = "native",
    flags: Sequence[str] = (),
    timeout: float = 60.0,
    cancelled: threading.Event | None = None,
) -> Compiled:
    """Build C files (`Path`) or C texts (`str`) into one shared library at `output`, as `compile_files` does."""
    return compile_files(compiler, sources, output, (*compiler.flags(mcpu), *flags), timeout=timeout, cancelled=cancelled)


def compile_files(
    compiler: Compiler,
    sources: Sequence[Path | str],
    output: Path,
    flags: Sequence[str],
    *,
    libraries: Sequence[str] = ("-lm",),
    timeout: float = 60.0,
    cancelled: threading.Event | None = None,
) -> Compiled:
    """Build C files (`Path`) or C texts (`str`) with these flags into `output`; failure is a value too.

    Nothing else is left in the folder of `output`. `timeout` is in seconds of wall time; setting `cancelled` ends the
    call within a fraction of a second. Raises ToolchainError if the compiler cannot be started at all.
    """
    with tempfile.TemporaryDirectory(prefix="cc-", dir=output.parent) as scratch:
        files = [_as_file(source, Path(scratch) / f"source{index}.c") for index, source in enumerate(sources)]
        partial = Path(scratch) / "output.so"
        environment = settings.environment_with(zig_caches(Path(scratch)) if compiler.kind == "zig" else {})
        for one in link_attempts(compiler.kind, flags):
            command = (*compiler.command, *one, *map(str, files), "-o", str(partial), *libraries)
            compiled = call_tool(command, environment, timeout, cancelled)
            if compiled.ok or not misses_symbols(compiled.text):
                break
        if compiled.ok:
            os.replace(partial, output)
    return compiled


def _as_file(source: Path | str, place: Path) -> Path:
    if isinstance(source, Path):
        return source
    with naming(place):
        place.write_text(source)
    return place


def zig_caches(local: Path) -> dict[str, str]:
    """Variables for the embedded compiler's caches: what it builds once goes to the cache folder, all else to `local`."""
    return {"ZIG_LOCAL_CACHE_DIR": str(local), "ZIG_GLOBAL_CACHE_DIR": str(settings.cache_part("zig"))}


def call_tool(command: tuple[str, ...], environment: dict[str, str], timeout: float, cancelled: threading.Event | None = None) -> Compiled:
    """One call of a compiler or linker; failure is a value. Raises ToolchainError if it cannot be started."""
    started = time.monotonic()
    try:
        # A session of its own: zig and clang start helpers, which must all be killed when time is up.
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ToolchainError(f"C compiler {command[0]!r} could not be started: {error}; name another with --cc or $CC") from error
    try:
        text = _wait(process, started + timeout, cancelled)
    finally:
        _end(process)
    seconds = time.monotonic() - started
    if text is None:
        return Compiled("compile_timeout", f"stopped after {seconds:.1f} s: {clip(shlex.join(command), 400)}", seconds, command)
    kind = "compile" if process.returncode else ""
    said = [part for part in (KILLED.get(process.returncode, ""), errors_alone(text.strip()) if kind else text.strip()) if part]
    if kind and not said:
        said = [f"the compiler ended with code {process.returncode} and no output"]
    return Compiled(kind, clip("; ".join(said), 4000), seconds, command)


def _wait(process: "subprocess.Popen[str]", deadline: float, cancelled: threading.Event | None) -> str | None:
    """The process's output, or None if its time was up."""
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or (cancelled is not None and cancelled.is_set()):
            return None
        try:
            return process.communicate(timeout=min(remaining, 0.25))[0]
        except subprocess.TimeoutExpired:
            continue


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill a process and its children, unless it ended by itself and closed its pipes. Never waits for a pipe that another process still holds."""
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    if process.returncode is not None and all(pipe.closed for pipe in pipes):
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    for pipe in pipes:
        pipe.close()


building = Locked()
"""Held while building something for the cache."""


def cached_library(compiler: Compiler, name: str, text: str, *, mcpu: str = "native", flags: Sequence[str] = ()) -> Path:
    """A helper library of ours, built once for this kind of machine and kept in the cache folder; safe between processes.

    One that is damaged, or could have been written by others, is rebuilt. Raises ToolchainError with the compiler's text if it does not build,
    MachineTrouble if the machine is the cause, and CacheError if it cannot be kept.
    """
    words = (text, compiler.version, *compiler.command, *compiler.flags(mcpu), *flags, processor_kind())
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def build(place: Path) -> None:
        compiled = compile_shared(compiler, [text], place, mcpu=mcpu, flags=flags, timeout=FIRST_CALL_SECONDS)
        if not compiled.ok:
            _check_room(place.parent)
            _check_shortage(compiled.text)
            said = f"C compiler {compiler.version!r} cannot build our helper {name!r}: {in_brief(compiled.text)}"
            raise ToolchainError(f"{said}; name another with --cc or $CC")

    with building.lock:
        return kept_library(f"{name}-{key}", lambda place: _tried_again(lambda: build(place)))


def prepare(compiler: Compiler, mcpu: str = "native", flags: Sequence[str] = ()) -> None:
    """Make the compiler's slow first call for a processor, so that it does not count against a candidate's time limit.

    Raises ToolchainError if it cannot build for that processor.
    """
    cached_library(compiler, "ready", "int ansor_ready;", mcpu=mcpu, flags=flags)
