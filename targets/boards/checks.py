"""Checks the values in a board's file beyond their types. Errors missed here show late: a simulator that never ends, a linker's error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import combinations

from ansor.codegen.image.board import SYSTICK, Board
from ansor.codegen.image.harness import STARTS
from ansor.targets.unit import Unit

SEMIHOSTING = "semihosting"
WIDTHS = (8, 16, 32)
LINE = "the address where it begins, and the number of its interrupt"
WATCHDOGS = {"clint": "the addresses of mtime and mtimecmp", "cmsdk": LINE, "sse": LINE, "stm32": LINE}


CSRS = ("minstret", "mcycle", "instret", "cycle", "time", *(f"{mode}hpmcounter{number}" for mode in ("m", "") for number in range(3, 32)))
"""RISC-V counter registers, by their assembler names."""


def mistakes(board: Board) -> Iterator[str]:
    """A sentence for each mistake: what was found, and what to do."""
    yield from _of_core(board)
    yield from _of_counter(board)
    yield from _of_memories(board)
    yield from _of_run(board)
    yield from _of_devices(board)


def _of_core(board: Board) -> Iterator[str]:
    if board.core.architecture not in STARTS:
        yield f"the architecture {board.core.architecture!r} is unknown; choose one of {', '.join(STARTS)}"
    if "-" in board.core.mcpu.split("+")[0]:
        name, plus, features = board.core.mcpu.partition("+")
        meant = name.replace("-", "_") + plus + features
        yield f"core.mcpu is {board.core.mcpu!r}; the embedded compiler writes names of processors with '_': did you mean {meant!r}?"
    if not Unit.is_text(board.counter.unit):
        yield f"the counter's unit {board.counter.unit!r} is unknown; units are seconds, instructions, cycles:MODEL and ticks:RATE Hz"


def _of_counter(board: Board) -> Iterator[str]:
    """Check where the counter is read: a CSR on RISC-V, an address on Arm cores."""
    csr, register, architecture = board.counter.csr, board.counter.register, board.core.architecture
    if architecture == "thumb" and csr:
        yield f"counter.csr is {csr!r}, which only RISC-V cores have; give counter.register, the address of a timer"
    if architecture == "thumb" and not csr and not register:
        yield f"nothing counts: counter.register is missing; give the address of a timer, such as that of SysTick, which counts at {SYSTICK + 8:#x}"
    if board.counts_systick and (board.counter.bits, board.counter.down) != (24, True):
        yield f"counter.register is {register:#x}, that of SysTick, which has 24 bits and counts down; give counter.bits = 24 and counter.down = true"
    elif board.run.step and not csr and board.counter.bits < 32 and not board.counts_systick:
        yield f"counter.bits is {board.counter.bits}: an overflow of such a counter would go unnoticed; choose one of 32 bits, or SysTick at {SYSTICK + 8:#x}"
    if not architecture.startswith("riscv"):
        return
    known = f"those by name are {', '.join(CSRS[:5])}, mhpmcounter3 to mhpmcounter31 and hpmcounter3 to hpmcounter31; write others by number, such as '0x7e2'"
    if not csr:
        found = f"counter.register is {register:#x}, but RISC-V cores count" if register else "nothing counts: RISC-V cores do so"
        yield f"{found} in a control and status register here; give counter.csr: {known}"
    elif csr not in CSRS and not _is_number(csr):
        near = get_close_matches(csr.lower(), CSRS, 1, 0.7)
        meant = f"did you mean {near[0]!r}? " if near else ""
        yield f"counter.csr is {csr!r}, which is not a register that counts: {meant}{known}"


def _is_number(csr: str) -> bool:
    """Whether it is a CSR number, which has 12 bits."""
    return re.fullmatch("0x[0-9a-fA-F]{1,3}", csr) is not None


def _of_memories(board: Board) -> Iterator[str]:
    if all(one.flash for one in board.memories):
        yield "no memory is writable; give one without flash"
        return
    names = [one.name for one in board.memories]
    for one, other in combinations(board.memories, 2):
        if one.name == other.name:
            yield f"two memories are called {one.name!r}; give each a name of its own"
        elif one.start < other.end and other.start < one.end:
            yield f"the memories {one.name!r} and {other.name!r} overlap; give each its own addresses"
    for field, name in (("code", board.run.code), ("boot", board.run.boot)):
        if name and name not in names:
            yield f"run.{field} is {name!r}, which is not a memory; the memories are {', '.join(names)}"
    if board.core.guard & (board.core.guard - 1) or board.core.guard and board.stack_low % board.core.guard:
        yield f"the guard of {board.core.guard} bytes has to be a power of two, and the stack has to begin at a multiple of it"


def _of_run(board: Board) -> Iterator[str]:
    command, end = board.run.command, board.console.end
    if command and not any("IMAGE" in word for word in command):
        yield "run.command has no IMAGE, which stands for the program; add it where the simulator takes one"
    if isinstance(end, str) and end not in ("", SEMIHOSTING):
        yield f"console.end is {end!r}; give {SEMIHOSTING!r}, or the address and the value that end a simulator"
    if end == SEMIHOSTING and board.core.architecture != "thumb":
        yield f"console.end is {SEMIHOSTING!r}, which only Arm cores have here; give the address and the value that end the simulator"
    if end == SEMIHOSTING and command and not any(SEMIHOSTING in word for word in command):
        yield f"console.end is {SEMIHOSTING!r}, but run.command does not allow it; for QEMU add '-semihosting-config', 'enable=on,target=native'"
    if command and not end and not board.console.htif:
        yield "a simulator is started, but nothing ends it; give console.end"


def _of_devices(board: Board) -> Iterator[str]:
    """Check numbers that times and costs are divided by, and whether the harness supports the devices."""
    numbers = {"counter.hertz": board.counter.hertz, "counter.scale": board.counter.scale, "run.rate": board.run.rate, "watchdog.hertz": board.watchdog.hertz}
    for name, number in numbers.items():
        if not 0 < number < float("inf"):
            yield f"{name} is {number:g}; give a number above 0"
    if not 0 <= board.run.step < float("inf"):
        yield f"run.step is {board.run.step:g}; give the seconds that an instruction takes, 0 for a board with a real clock"
    if board.console.width not in WIDTHS:
        yield f"console.width is {board.console.width}; registers have {', '.join(map(str, WIDTHS))} bits"
    if board.console.htif and (board.console.data or board.console.end):
        yield "console.htif is true, which prints and ends by itself; leave console.data and console.end out, or console.htif"
    if not 0 < board.counter.bits <= 32 and board.counter.bits != 64:
        yield f"counter.bits is {board.counter.bits}; counters have 1 to 32 bits, or 64 in two words"
    yield from _in_memory(board)
    kind, registers = board.watchdog.kind, board.watchdog.registers
    known = {name: words for name, words in WATCHDOGS.items() if (name == "clint") == board.core.architecture.startswith("riscv")}
    if kind and kind not in known:
        yield f"watchdog.kind is {kind!r}; those of {board.core.architecture} are {', '.join(known)}, or leave the watchdog out"
    elif kind and len(registers) != 2:
        yield f"watchdog.registers has {len(registers)} numbers; {kind} takes two: {known[kind]}"


def _in_memory(board: Board) -> Iterator[str]:
    """Check for device addresses inside a memory, where reading or writing them has no visible effect."""
    watchdog, end = board.watchdog, board.console.end
    places = [("counter.register", board.counter.register), ("console.data", board.console.data), ("console.status", board.console.status)]
    places += [("console.end", end[0])] if isinstance(end, tuple) else []
    places += [("watchdog.registers", at) for at in watchdog.registers[: 2 if watchdog.kind == "clint" else 1]] if watchdog.kind else []
    for key, at in places:
        memory = next((one for one in board.memories if at and one.start <= at < one.end), None)
        if memory is not None:
            yield f"{key} is {at:#x}, which is in the memory {memory.name!r} ({memory.start:#x} to {memory.end:#x}); give the address of the device"
