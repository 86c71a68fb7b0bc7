"""Finds the program counter of a GDB server: in its own description (`target.xml`), or by the name of the architecture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ansor.measure.wire.wire import WireError

FILES, REGISTERS = 32, 4096
THUMB_BIT = 0x01000000
"""In a Cortex-M's xPSR: without it the core executes nothing."""

TAG = re.compile(r"<(architecture|feature|reg|xi:include)\b([^<>]*)>([^<>]*)")
ATTRIBUTE = re.compile(r"(?<![\w:])([\w:]+)\s*=\s*[\"']([^\"'<>]*)[\"']")  # anchored at the start of a name, so that long names take linear time


@dataclass(frozen=True, slots=True)
class Register:
    """Its number in the protocol, its bits, and its byte offset among all registers; -1 if unknown."""

    number: int
    bits: int
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Architecture:
    """What running code requires. status: a Cortex-M's xPSR. thumb: bit 0 of a code address is not part of the address."""

    name: str
    pc: Register
    status: Register | None = None

    @property
    def thumb(self) -> bool:
        """Whether it only runs Thumb code."""
        return self.status is not None

    @property
    def half_words(self) -> bool:
        """Whether an instruction may have two bytes."""
        return self.thumb or self.name.startswith("riscv")


KNOWN = {
    "riscv32": Architecture("riscv32", Register(32, 32, 128)),
    "riscv64": Architecture("riscv64", Register(32, 64, 256)),
    "cortex-m": Architecture("cortex-m", Register(15, 32, 60), Register(25, 32, 164)),
    "arm": Architecture("arm", Register(15, 32, 60)),
    "aarch64": Architecture("aarch64", Register(32, 64, 256)),
    "x86-64": Architecture("x86-64", Register(16, 64, 128)),
}
"""Architectures by their names for `arch=`. The offsets are for servers without a description."""

NAMES = (("riscv:rv32", "riscv32"), ("riscv:rv64", "riscv64"), ("aarch64", "aarch64"), ("i386:x86-64", "x86-64"), ("arm", "arm"))


def described(load: Callable[[str], str]) -> Architecture | None:
    """The architecture in a description whose files `load` returns; None if it names no program counter.

    Raises WireError if it has more than `FILES` files or `REGISTERS` registers."""
    found: dict[str, Register] = {}
    state = _State()
    _collect("target.xml", load, found, state)
    pc = found.get("pc") or found.get("rip")
    if pc is None:
        return None
    if pc.bits not in (16, 32, 64):
        raise WireError(f"the description of the processor says that its program counter has {pc.bits} bits; it can have 16, 32 or 64")
    layout = _with_offsets(found)
    status = layout.get("xpsr")
    status = status if status and status.bits == 32 else None
    name = next((ours for theirs, ours in NAMES if state.name.startswith(theirs)), state.name or "unnamed")
    return Architecture("cortex-m" if status else name, layout["pc" if "pc" in found else "rip"], status)


@dataclass(slots=True)
class _State:
    """State while reading a description."""

    name: str = ""
    files: int = 0
    number: int = 0


def _collect(file: str, load: Callable[[str], str], found: dict[str, Register], state: _State) -> None:
    """Collect the registers of a file and its includes."""
    state.files += 1
    if state.files > FILES:
        raise WireError(f"the description of the processor has more than {FILES} files")
    for tag, inside, after in TAG.findall(load(file)):
        values = dict(ATTRIBUTE.findall(inside))
        if tag == "architecture":
            state.name = state.name or after.strip()
        elif tag == "xi:include" and re.fullmatch(r"[\w.-]{1,100}", values.get("href", "")):
            _collect(values["href"], load, found, state)
        elif tag == "reg" and values.get("name"):
            state.number = _number(values.get("regnum", ""), state.number)
            found.setdefault(values["name"].lower(), Register(state.number, _number(values.get("bitsize", ""), 32)))
            state.number += 1
        if len(found) > REGISTERS:
            raise WireError(f"the description of the processor has more than {REGISTERS} registers")


def _number(text: str, default: int) -> int:
    """A small number in a description."""
    return int(text) if text.isdecimal() and len(text) < 6 else default


def _with_offsets(found: dict[str, Register]) -> dict[str, Register]:
    """Registers with their offsets, in the order of their numbers."""
    layout, offset = {}, 0
    for name, register in sorted(found.items(), key=lambda item: item[1].number):
        layout[name] = Register(register.number, register.bits, offset)
        offset += register.bits // 8
    return layout
