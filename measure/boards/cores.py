"""Checks whether the core behind a wire is the one in the board's file, as far as the wire and the memory tell."""

from __future__ import annotations

from contextlib import suppress

from ansor.codegen.image.board import Board
from ansor.errors import DeviceError
from ansor.measure.wire.gdb_registers import KNOWN
from ansor.measure.wire.wire import Wire, WireError

CPUID = 0xE000ED00  # of every Cortex-M core
ARM = 0x41
PARTS = {
    0xC20: "cortex_m0", 0xC60: "cortex_m0plus", 0xC21: "cortex_m1", 0xC23: "cortex_m3", 0xC24: "cortex_m4", 0xC27: "cortex_m7",
    0xD20: "cortex_m23", 0xD21: "cortex_m33", 0xD22: "cortex_m55", 0xD23: "cortex_m85", 0xD31: "cortex_m35p",
}  # fmt: skip
"""Part numbers of CPUID, from the manuals of the cores."""
PROCESSORS = {"thumb": ("cortex-m", "arm"), "riscv32": ("riscv32",), "riscv64": ("riscv64",)}
"""What a GDB server may call the core of a board, by `core.architecture`; other names of `arch=` mean another board."""


def other_core(wire: Wire, board: Board) -> str:
    """What was expected and what was found, if the core is not the one in the file; '' if it is, or if that is unknown."""
    architecture, name = board.core.architecture, board.core.mcpu.partition("+")[0]
    asked = f"{board.name} has {name} ({architecture})"
    bits, has = 64 if architecture == "riscv64" else 32, wire.abilities.bits
    if (found := _other_processor(wire, board)):
        return f"{asked}; the core behind {wire.name} is {found}: it is a different board, or core.architecture is wrong"
    if has and has != bits:
        return f"{asked}, with addresses of {bits} bits; the core behind {wire.name} has {has} bits: it is a different board, or core.architecture is wrong"
    if architecture != "thumb":
        return ""
    try:
        cpuid = int.from_bytes(wire.read(CPUID, 4), "little")
    except WireError as error:
        return f"{asked}; the board behind {wire.name} has no CPUID at {CPUID:#x}, which all Cortex-M cores have ({error}): it is a different board"
    found = _part(cpuid)
    if found == name or not found and name not in PARTS.values():
        return ""
    said = f"is {found}" if found else "is unknown"
    return f"{asked}; the core behind {wire.name} {said} (CPUID {cpuid:#010x}): it is a different board, or core.mcpu is wrong"


def check_core(wire: Wire, board: Board) -> None:
    """Raises DeviceError for a known core that is not the one in the board's file. An unknown core, or one that cannot be identified, is accepted."""
    if _other_processor(wire, board):
        raise DeviceError(f"the board {board.name} does not match its file: {other_core(wire, board)}")
    name = board.core.mcpu.partition("+")[0]
    if board.core.architecture != "thumb" or name not in PARTS.values():
        return
    seen = set[str]()
    for _ in range(2):  # a line may damage an answer
        with suppress(WireError):
            seen.add(_part(int.from_bytes(wire.read(CPUID, 4), "little")))
    if len(seen) == 1 and not seen & {"", name}:
        raise DeviceError(f"the board {board.name} does not match its file: {other_core(wire, board)}")


def _other_processor(wire: Wire, board: Board) -> str:
    """What the wire says its processor is, if the board cannot have it; '' otherwise."""
    found = wire.abilities.processor
    return found if found in KNOWN and found not in PROCESSORS[board.core.architecture] else ""


def _part(cpuid: int) -> str:
    """The name of a core, '' for an unknown one."""
    return PARTS.get(cpuid >> 4 & 0xFFF, "") if cpuid >> 24 == ARM else ""
