"""Sizes of a VTA core, as powers of two, and what they imply: depths of the memories, widths of the fields of instructions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

from ansor.errors import ArgumentError, TargetError

WORD_BITS = 64
UOP_BITS = 32
UOP_BYTES = UOP_BITS // 8
NUMBER_BYTES = 1  # inputs, weights and outputs are int8
ACCUMULATOR_BYTES = 4  # sums are int32
ITERATION_BITS = 14
COMMON_BITS = 7  # the operation and four token flags
MODIFIER_BITS = 20  # of an ALU instruction: operation, whether there is an immediate, the immediate
SRAM_BITS = 16


class Memory(IntEnum):
    """The memories that LOADs write and STOREs read, by their number in an instruction. ACC8: the accumulators, loaded from int8 in DRAM."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC8 = 5


_SIZES = {
    Memory.UOP: "uop_bytes", Memory.WGT: "weight_bytes", Memory.INP: "input_bytes",
    **dict.fromkeys((Memory.ACC, Memory.OUT, Memory.ACC8), "accumulator_bytes"),
}  # fmt: skip


@dataclass(frozen=True)
class Configuration:
    """A VTA core; every size is a logarithm to the base 2. Raises TargetError if instructions do not fit into their words, or a memory is too small.

    batch: rows of an input. block: the core multiplies a row by a matrix of block x block. The others: bytes of each memory; OUT is as deep as ACC. In every
    core, inputs and weights are int8, and sums are int32.
    """

    batch: int = 0
    block: int = 4
    uop_bytes: int = 15
    input_bytes: int = 15
    weight_bytes: int = 18
    accumulator_bytes: int = 17

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 30:
                raise TargetError(f"{field.name} of a VTA core is {value!r}; it is a logarithm to the base 2: pass a whole number from 0 to 30")
        for name, bits, most in self._used():
            if bits > most:
                raise TargetError(f"{name} needs {bits} bits in this VTA core, but has {most}: make memories smaller, or the block larger")
        for memory in Memory:
            if self._log_depth(memory) < 1:
                name = _SIZES[memory]
                least = f"{name} is {getattr(self, name)}, and has to be at least {getattr(self, name) + 1 - self._log_depth(memory)}"
                raise TargetError(f"{memory.name} of this VTA core holds fewer than two elements of {self.element_bytes(memory)} bytes: {least}")

    def _used(self) -> tuple[tuple[str, int, int], ...]:
        uop, inp, wgt, acc = (self._log_depth(memory) for memory in (Memory.UOP, Memory.INP, Memory.WGT, Memory.ACC))
        return (
            ("a micro-op", acc + inp + wgt, UOP_BITS),
            ("the first word of GEMM and ALU", COMMON_BITS + 1 + 2 * uop + 1 + 2 * ITERATION_BITS, WORD_BITS),
            ("the second word of GEMM", 2 * (acc + inp + wgt), WORD_BITS),
            ("the second word of ALU", 2 * (acc + inp) + MODIFIER_BITS, WORD_BITS),
            ("the place in a memory", max(uop, inp, wgt, acc), SRAM_BITS),
        )

    def _log_depth(self, memory: Memory) -> int:
        row = self.batch + self.block
        return {
            Memory.UOP: self.uop_bytes - _log(UOP_BYTES),
            Memory.WGT: self.weight_bytes - 2 * self.block - _log(NUMBER_BYTES),
            Memory.INP: self.input_bytes - row - _log(NUMBER_BYTES),
        }.get(memory, self.accumulator_bytes - row - _log(ACCUMULATOR_BYTES))

    def index_bits(self, memory: Memory) -> int:
        """Bits of the index of an element."""
        return self._log_depth(memory)

    def depth(self, memory: Memory) -> int:
        """Elements that the memory holds."""
        return 1 << self._log_depth(memory)

    def element_bytes(self, memory: Memory) -> int:
        """Bytes of one element in DRAM, the unit of `dram_base`."""
        row = 1 << (self.batch + self.block)
        own = {Memory.UOP: UOP_BYTES, Memory.WGT: NUMBER_BYTES << 2 * self.block, Memory.ACC: ACCUMULATOR_BYTES * row}
        return own.get(memory, NUMBER_BYTES * row)

    def __str__(self) -> str:
        held = ", ".join(f"{memory.name} {self.depth(memory)} x {self.element_bytes(memory)} B" for memory in list(Memory)[:5])
        return f"VTA {1 << self.batch}x{1 << self.block}x{1 << self.block}: {held}"


def _log(size: int) -> int:
    return size.bit_length() - 1


DEFAULT = Configuration()
CORE_32 = Configuration(block=5)
CORE_64 = Configuration(block=6)


def check_core(given: object) -> None:
    """Raises ArgumentError unless the value is a Configuration."""
    if not isinstance(given, Configuration):
        raise ArgumentError(f"asked for {given!r:.80} as a VTA core; pass a Configuration, such as DEFAULT or CORE_32 of ansor.vta.configuration")
