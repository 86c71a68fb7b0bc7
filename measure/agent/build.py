"""Builds the agent once per system and keeps it in the cache folder."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from ansor.codegen.complaints import in_brief
from ansor.codegen.library_cache import kept_library
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, compile_files, find_compiler
from ansor.codegen.trial.program import link_flags
from ansor.errors import ToolchainError
from ansor.support.safe_files import PRIVATE_PROGRAM

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "agent.c"
SYSTEMS = {
    "aarch64": "aarch64-linux-musl",
    "armv7": "thumb-linux-musleabihf",  # Thumb code: a quarter smaller
    "riscv64": "riscv64-linux-musl",
    "x86-64": "x86_64-linux-musl",
}
"""The compiler's names of the systems the agent supports: Linux on these processors, with the C library linked statically."""

SAME = {"x86_64": "x86-64", "amd64": "x86-64", "arm64": "aarch64", "armv7l": "armv7", "armv8l": "armv7", "armhf": "armv7"}
"""Aliases, as reported by systems."""

FLAGS = (
    "-c", "-DSMALL", "-Os", "-g0", "-w", "-std=gnu11", "-fno-inline-functions", "-ffunction-sections", "-mllvm", "-enable-machine-outliner=always",
    "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-sanitize=all",
)  # fmt: skip
WITHOUT_UNWINDING = "SECTIONS { /DISCARD/ : { *(.eh_frame) } } INSERT AFTER .rodata;\n"
"""For the linker: no tables of the C library for unwinding, which nothing does; a tenth of the size."""


def system_named(name: str) -> str:
    """The key of `SYSTEMS` for a processor's name, as `uname -m` gives it. Raises ToolchainError for one the agent is not built for."""
    found = SAME.get(name.lower(), name.lower())
    if found not in SYSTEMS:
        raise ToolchainError(f"asked for an agent for {name!r}; it is built for {', '.join(SYSTEMS)} (Linux)")
    return found


def built_agent(system: str = "") -> Path:
    """The agent as a file, for a key of `SYSTEMS` or an alias; '' for this machine. The first build for a system takes half a minute.

    Raises ToolchainError when it cannot be built, and CacheError when it cannot be kept.
    """
    name = system_named(system or platform.machine())
    compiler = find_compiler("zig")
    texts = [path.read_text() for path in (SOURCE, *sorted(FOLDER.glob("*.h")))]
    words = (*texts, compiler.version, *FLAGS, *link_flags(compiler, SYSTEMS[name]), WITHOUT_UNWINDING)
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def build(place: Path) -> None:
        compiled = build_small(SOURCE, name, place)
        if not compiled.ok:
            raise ToolchainError(f"{compiler.version} cannot build the agent for {name}: {in_brief(compiled.text)}")

    return kept_library(f"agent-{name}-{key}", build, mode=PRIVATE_PROGRAM)


def build_small(source: Path, system: str, place: Path) -> Compiled:
    """Build a small program at `place`, for a key of `SYSTEMS`. It is linked as candidates are, so that the compiler's C library is built once for both."""
    compiler, triple = find_compiler("zig"), SYSTEMS[system]
    made, script = place.with_suffix(".o"), place.with_suffix(".ld")
    script.write_text(WITHOUT_UNWINDING)
    flags = ("-target", triple, *FLAGS)
    compiled = compile_files(compiler, [source], made, flags, libraries=(), timeout=FIRST_CALL_SECONDS)
    if compiled.ok:
        compiled = compile_files(compiler, [made], place, (*link_flags(compiler, triple), "-T", str(script)), timeout=FIRST_CALL_SECONDS)
        made.unlink()
    script.unlink()
    return compiled
