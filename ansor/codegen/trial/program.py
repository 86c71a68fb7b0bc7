"""The objects of the trial program, which make a candidate a program; built once per system and kept in the cache folder."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from ansor.codegen.compiler_runtime import NO_CHECKS
from ansor.codegen.complaints import in_brief
from ansor.codegen.library_cache import kept_library
from ansor.codegen.pool_library import SOURCE as POOL_SOURCE
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiler, building, compile_files
from ansor.errors import ToolchainError

FOLDER = Path(__file__).parent
SOURCES = (FOLDER / "trial.c", FOLDER / "posix.c")
# A product and a sum always round twice: the same bits on every machine.
FLAGS = ("-c", "-Os", "-g0", "-std=gnu99", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections", "-fdata-sections", f"-I{FOLDER}")
STATIC = ("-static", "-s", "-Wl,--gc-sections")
SHARED = ("-shared", "-fPIC")
PLAIN = "#include <math.h>\nvolatile double x = 0.5;\nint main(void) { return tanh(x) > 1; }\n"


def triple_here() -> str:
    """The compiler's triple of this machine, for static programs."""
    return f"{platform.machine()}-linux-musl"


def machine_flags(compiler: Compiler, triple: str) -> tuple[str, ...]:
    """Flags for the target system. A compiler other than the embedded one builds for its own system."""
    return ("-target", triple) if compiler.kind == "zig" else ()


def trial_objects(compiler: Compiler, triple: str, *, pool: bool = False) -> list[Path]:
    """The objects of the trial program for a system, with a thread pool for candidates that need one.

    They run on every processor of the system. Raises ToolchainError if they do not build, and CacheError if they cannot be kept.
    """
    sources = (*SOURCES, POOL_SOURCE) if pool else SOURCES
    return [_object(compiler, triple, source) for source in sources]


def link_flags(compiler: Compiler, triple: str) -> tuple[str, ...]:
    """Flags for linking a program. The embedded compiler builds a C library for each processor, instruction set and level of optimisation, so all programs for
    a system are linked with these flags. On 32-bit ARM that is Thumb code, which is smaller, and calls ARM code and is called by it."""
    if compiler.kind != "zig":
        return STATIC
    machine, dash, rest = triple.partition("-")
    return (*machine_flags(compiler, f"{'thumb' if machine == 'arm' else machine}{dash}{rest}"), "-mcpu=baseline", NO_CHECKS, *STATIC)


def prepare_program(compiler: Compiler, triple: str, flags: Sequence[str]) -> None:
    """Make the slow first call for a system, in which the embedded compiler builds the C library. `flags`: of candidates.

    Raises ToolchainError if the compiler cannot build for that system or processor.
    """
    words, linking = (compiler.version, *compiler.command), link_flags(compiler, triple)
    objects = trial_objects(compiler, triple)
    _kept(("plain", triple), (*words, *flags), ".o", lambda place: _built(compiler, PLAIN, place, (*flags, "-c"), triple))
    _kept(("ready", triple), (*words, *linking, *map(str, objects)), ".program", lambda place: _built(compiler, PLAIN, place, linking, triple))


def _object(compiler: Compiler, triple: str, source: Path) -> Path:
    flags = (*FLAGS, *machine_flags(compiler, triple), *(("-fno-sanitize=all", "-mcpu=baseline") if compiler.kind == "zig" else ()))
    texts = [path.read_text() for path in (source, *sorted(FOLDER.glob("*.h")))]
    words = (*texts, compiler.version, *compiler.command, *flags)
    return _kept((source.stem, triple), words, ".o", lambda place: _built(compiler, source, place, flags, triple))


def _built(compiler: Compiler, source: Path | str, place: Path, flags: Sequence[str], triple: str) -> None:
    made = compile_files(compiler, [source], place, flags, timeout=FIRST_CALL_SECONDS)
    if not made.ok:
        said = f"C compiler {compiler.version!r} cannot build programs for {triple}: {in_brief(made.text)}"
        raise ToolchainError(f"{said}; name another processor, or another compiler with --cc or $CC")


def _kept(name: Sequence[str], words: Sequence[str], suffix: str, build: Callable[[Path], None]) -> Path:
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    with building.lock:
        return kept_library("-".join([*name, key]), build, suffix)
