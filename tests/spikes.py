"""The RISC-V simulator Spike, with its remote bitbang port, for tests."""

from __future__ import annotations

import atexit
import importlib.util
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from ansor.codegen.toolchain import find_compiler
from ansor.support import settings
from tests.emulators import need_micro

MEMORY = 0x80000000
SIZE = 0x4000000
START_SECONDS = 30.0
SCRIPT = "ENTRY(_start) SECTIONS { . = 0x80000000; .text : { *(.text*) } .data : { *(.data*) *(.bss*) } /DISCARD/ : { *(.comment) *(.riscv.attributes) } }"
LOOP = ".globl _start\n_start: j _start\n"


def spike() -> str:
    """The path of the program; '' if it is not installed."""
    found = importlib.util.find_spec("riscv")
    inside = Path(str(found.origin)).parent / "data" / "bin" / "spike" if found and found.origin else None
    return str(inside) if inside and inside.exists() else shutil.which("spike") or ""


def need_spike() -> None:
    """Skip a test if it is missing; fail it in CI."""
    need_micro()
    if not spike():
        text = "not installed: spike (pip install --pre spike)"
        if os.environ.get("CI") == "true" and sys.platform == "linux" and platform.machine() == "x86_64":
            pytest.fail(text)
        pytest.skip(text)


@cache
def assembled(text: str, bits: int = 64) -> Path:
    """A program for MEMORY, as an ELF file."""
    folder = Path(tempfile.mkdtemp(prefix="ansor-spike-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, script, program = folder / "a.S", folder / "a.ld", folder / "a.elf"
    source.write_text(text)
    script.write_text(SCRIPT)
    machine = ("-target", f"riscv{bits}-freestanding-none", f"-mcpu=generic_rv{bits}+m+a+c")
    command = [*find_compiler().command, *machine, "-nostdlib", "-static", f"-Wl,-T,{script}", "-o", str(program), str(source)]
    caches = {"ZIG_LOCAL_CACHE_DIR": str(folder), "ZIG_GLOBAL_CACHE_DIR": str(settings.cache_part("zig"))}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env={**os.environ, **caches})
    assert done.returncode == 0, done.stderr
    return program


@contextmanager
def running_spike(bits: int = 64, options: tuple[str, ...] = ()) -> Iterator[str]:
    """Start a halted simulator; yields the text of its wire."""
    command = [spike(), "--rbb-port=0", "--halted", f"--isa=rv{bits}imac_zicsr_zicntr", f"-m0x{MEMORY:x}:0x{SIZE:x}", *options, str(assembled(LOOP, bits))]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = f"bitbang://127.0.0.1:{_port(process)}"
        threading.Thread(target=_read_on, args=(process,), daemon=True).start()
        yield text
    finally:
        process.kill()
        process.wait(10)


def _read_on(process: subprocess.Popen[bytes]) -> None:
    """Read its output: it blocks if nothing does."""
    assert process.stdout
    with process.stdout as said:
        while said.read1():  # type: ignore[attr-defined]
            pass


def _port(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout
    said, deadline = b"", time.monotonic() + START_SECONDS
    while not (found := re.search(rb"connection on port (\d+)", said)):
        left = deadline - time.monotonic()
        assert left > 0 and select.select([process.stdout], [], [], left)[0], f"Spike does not start: {said!r}"
        part = process.stdout.read1()  # type: ignore[attr-defined]
        assert part, f"Spike ended: {said!r}"
        said += part
    return int(found[1])


def code(text: str, bits: int = 64) -> tuple[bytes, dict[str, int]]:
    """A program as bytes for MEMORY, and the addresses of its symbols."""
    from elftools.elf.elffile import ELFFile

    with assembled(text, bits).open("rb") as file:
        program = ELFFile(file)
        loaded = [(part["p_paddr"], part.data()) for part in program.iter_segments() if part["p_type"] == "PT_LOAD" and part["p_filesz"]]
        symbols = {one.name: int(one["st_value"]) for one in program.get_section_by_name(".symtab").iter_symbols()}
    image = bytearray(max(address + len(data) for address, data in loaded) - MEMORY)
    for address, data in loaded:
        image[address - MEMORY : address - MEMORY + len(data)] = data
    return bytes(image), symbols
