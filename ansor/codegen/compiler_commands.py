"""Calls the embedded compiler without its driver, which takes longer to start than a candidate takes to compile.

The driver reports which clang and linker commands it runs. They are recorded once and then called directly: clang with several
files in one process, each compiled to its own object beside it, and the linker once for all objects.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from ansor.codegen.library_cache import kept_library
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiler, building, processor_kind, zig_caches
from ansor.errors import ToolchainError
from ansor.support import settings
from ansor.support.notices import log

SPEAKS = {"ZIG_VERBOSE_CC": "1", "ZIG_VERBOSE_LINK": "1"}
_OF_FOLDERS = ("-fdebug-compilation-dir=", "-fcoverage-compilation-dir=")  # of the caller
_NOTES = ("-MD", "-MV")  # dependency files
_PLAIN = "int main(void) { return 0; }\n"
_FEATURE = "-target-feature"
_OTHERS = ("-march", "-mfpu", "-Xclang")  # flags that may take features away
_PROBE = """
typedef signed char bytes __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
struct unaligned { char before; int value; } __attribute__((packed));
void kinds(bytes *a, floats *b, double *c, long long *d, const short *e, int *f, unsigned *g, struct unaligned *h, int n) {
  for (int i = 0; i < n; ++i) {
    a[i] = a[i] * a[i + 1] + a[i + 2];
    b[i] = b[i] * b[i + 1] + b[i + 2];
    c[i] = c[i] * c[i + 1] + c[i + 2] / __builtin_sqrt(c[i]);
    d[i] = d[i] / d[i + 1] + (d[i + 2] << i);
    f[i] += e[i] * e[i + 1] + __builtin_popcount(f[i + 1]) + __builtin_bswap32(f[i + 2]) + (f[i + 3] > 99 ? 99 : f[i + 3]) + f[i] / f[i + 4] % f[i + 5];
    g[i] = g[i] / g[i + 1] + g[i + 2] % g[i + 3] + (g[i] << 7 | g[i] >> 25) + __builtin_clz(g[i + 4]) + __builtin_ctz(g[i + 5]) + (1u << i);
    h[i].value += h[i + 1].value;
  }
}
"""
_OBJECTS = "OBJECTS"


@dataclass(frozen=True, slots=True)
class CompilerCommands:
    """compiling: a call of clang, without its C files. linking: a call of the linker, without its output, and with a placeholder for its objects."""

    compiling: tuple[str, ...]
    linking: tuple[str, ...]

    def compile_command(self, files: Sequence[Path]) -> tuple[str, ...]:
        """A command that makes an object beside each C file."""
        return (*self.compiling, *map(str, files))

    def link_command(self, objects: Sequence[Path], made: Path, *extra: str) -> tuple[str, ...]:
        """A command that links the objects into one file."""
        at = self.linking.index(_OBJECTS)
        return (*self.linking[:at], *map(str, objects), *self.linking[at + 1 :], *extra, "-o", str(made))


@lru_cache
def compiler_commands(compiler: Compiler, flags: tuple[str, ...], link_flags: tuple[str, ...], libraries: tuple[str, ...] = ()) -> CompilerCommands | None:
    """The commands behind `compiler flags -c` and `compiler link_flags OBJECT libraries`.

    None if the driver must be used: it is another one, or reports nothing useful.
    """
    if compiler.kind != "zig":
        return None
    here = (str(settings.cache_directory()), processor_kind())  # the processor behind "native"
    words = (compiler.version, *compiler.command, *here, *flags, "", *link_flags, "", *libraries)
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    with building.lock:
        try:
            kept = kept_library(f"calls-{key}", lambda place: _ask(compiler, flags, link_flags, libraries, place), ".json")
            found = json.loads(kept.read_text())
            return CompilerCommands(tuple(found["compiling"]), tuple(found["linking"]))
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            log.info("candidates are built through the C compiler's driver, which is slower: %s", error)
            return None


def _ask(compiler: Compiler, flags: Sequence[str], link_flags: Sequence[str], libraries: Sequence[str], place: Path) -> None:
    """Ask the driver, and write its calls to `place`. Raises ValueError for unexpected output."""
    with tempfile.TemporaryDirectory(prefix="cc-", dir=place.parent) as scratch:
        folder = Path(scratch)
        source, made, linked = (folder / name for name in ("plain.c", "plain.o", "plain.elf"))
        source.write_text(_PLAIN)
        driver = _words(_said((*compiler.command, *flags, "-c", str(source), "-o", str(made)), folder), "clang", compiler)
        clang = _without(driver, source, made, _NOTES, ("-o", "-MF"))
        front = _words(_said((*clang, "-###", str(source), "-o", str(made)), folder), "-cc1", compiler)
        link = _words(_said((*compiler.command, *link_flags, str(made), "-o", str(linked), *libraries), folder), "ld.lld", compiler)
        linking = [_OBJECTS if word == str(made) else word for word in _without(link, source, linked, (), ("-o",))]
        compiling = [word for word in _without(front, source, made, (), ("-o",)) if not word.startswith(_OF_FOLDERS)]
        if linking.count(_OBJECTS) != 1 or any(word.startswith(str(folder)) for word in (*compiling, *linking)):
            raise ValueError(f"{compiler.version} calls its linker with temporary files")
        if _only_adds(flags):
            compiling = _shorter(compiling, folder)
        found = CompilerCommands(tuple(compiling), (compiler.command[0], *linking))
    place.write_text(json.dumps(asdict(found)))


def _only_adds(flags: Sequence[str]) -> bool:
    """Whether flags for a board name a processor, and take no feature away from it."""
    if "-ffreestanding" not in flags or any(flag.startswith(_OTHERS) for flag in flags):
        return False
    names = [flag.removeprefix("-mcpu=") for flag in flags if flag.startswith("-mcpu=")]
    return bool(names) and not any("-" in one or "native" in one for one in names)


def _shorter(compiling: list[str], folder: Path) -> list[str]:
    """The command without the features that a processor does not have. LLVM compares the whole list for each function in many of its passes: a fourteenth
    of the time of a candidate for a board. The command as it is if predefined macros, or code for a sample of types and operators, differ."""
    missing = {at for at, word in enumerate(compiling[1:], 1) if compiling[at - 1] == _FEATURE and word.startswith("-")}
    shorter = [word for at, word in enumerate(compiling) if at not in missing and at + 1 not in missing]
    try:
        return shorter if _probed(compiling, folder) == _probed(shorter, folder) else compiling
    except (OSError, ValueError, subprocess.SubprocessError):
        return compiling


def _probed(compiling: Sequence[str], folder: Path) -> tuple[bytes, str]:
    """The object of the probe, and the predefined macros."""
    source, made = folder / "probe.c", folder / "probe.o"
    source.write_text(_PROBE)
    _said((*compiling, str(source), "-o", str(made)), folder)
    return made.read_bytes(), _said((*compiling, "-E", "-dM", str(source), "-o", "-"), folder)


def _said(command: Sequence[str], folder: Path) -> str:
    """The output of a call. Raises ValueError if it fails, ToolchainError if the compiler cannot be started."""
    environment = settings.environment_with({**zig_caches(folder / "local"), **SPEAKS})
    try:
        done = subprocess.run(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=FIRST_CALL_SECONDS, check=False,
        )  # fmt: skip
    except OSError as error:  # otherwise the cache would be blamed
        raise ToolchainError(f"C compiler {command[0]!r} could not be started: {error}; name another with --cc or $CC") from error
    if done.returncode:
        raise ValueError(f"{shlex.join(command[:3])} ended with code {done.returncode}: {done.stdout[-300:]}")
    return done.stdout


def _words(said: str, name: str, compiler: Compiler) -> list[str]:
    """The command of that name in a driver's output."""
    for line in said.splitlines():
        words = shlex.split(line)
        if name in words[:2] and (name == "ld.lld" or words[0] == compiler.command[0]):
            return words
    raise ValueError(f"{compiler.version} did not show how it calls {name}")


def _without(words: Sequence[str], source: Path, made: Path, single: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """The words without the files and the named flags: `pairs` take a word after them."""
    kept: list[str] = []
    for place, word in enumerate(words):
        follows = place > 0 and words[place - 1] in pairs
        if not follows and word not in pairs and word not in single and word not in (str(source), str(made)):
            kept.append(word)
    return kept
