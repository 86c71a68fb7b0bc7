"""The positions of the fields of instructions, for any configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from ansor.vta.configuration import COMMON_BITS, ITERATION_BITS, SRAM_BITS, Configuration, Memory
from ansor.vta.instructions import Opcode


@dataclass(frozen=True)
class Field:
    """`bits` bits of word `word` (0 or 1), from bit `low` on."""

    name: str
    word: int
    low: int
    bits: int
    signed: bool = False

    @cached_property
    def least(self) -> int:
        return -(1 << self.bits - 1) if self.signed else 0

    @cached_property
    def most(self) -> int:
        return (1 << self.bits - self.signed) - 1

    @cached_property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def of(self, words: tuple[int, int]) -> int:
        """Its value in an instruction."""
        value = words[self.word] >> self.low & self.mask
        return value - (1 << self.bits) if self.signed and value > self.most else value

    def placed(self, value: int) -> int:
        """The value as bits of its word."""
        return (value & self.mask) << self.low


Widths = tuple[tuple[str, int], ...]
FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
_COMMON: Widths = (("opcode", 3), *((name, 1) for name in FLAGS))
_MEMORY: tuple[Widths, Widths] = (
    (("memory", 3), ("sram_base", SRAM_BITS), ("dram_base", 32)),
    (("y_size", 16), ("x_size", 16), ("x_stride", 16), ("y_pad_0", 4), ("y_pad_1", 4), ("x_pad_0", 4), ("x_pad_1", 4)),
)


@cache
def instruction_fields(configuration: Configuration, opcode: Opcode) -> tuple[Field, ...]:
    """All fields of instructions of this kind, the fields common to all kinds first."""
    common = _word(0, 0, _COMMON)
    if opcode == Opcode.FINISH:
        return common
    first, second = _MEMORY if opcode in (Opcode.LOAD, Opcode.STORE) else _loops(configuration, opcode)
    return (*common, *_word(0, COMMON_BITS, first), *_word(1, 0, second))


def _loops(configuration: Configuration, opcode: Opcode) -> tuple[Widths, Widths]:
    uop, inp, wgt, acc = (configuration.index_bits(memory) for memory in (Memory.UOP, Memory.INP, Memory.WGT, Memory.ACC))
    first = (("reset", 1), ("uop_bgn", uop), ("uop_end", uop + 1), ("iter_out", ITERATION_BITS), ("iter_in", ITERATION_BITS))
    factors = (("dst_out", acc), ("dst_in", acc), ("src_out", inp), ("src_in", inp))
    last = (("wgt_out", wgt), ("wgt_in", wgt)) if opcode == Opcode.GEMM else (("operation", 3), ("use_imm", 1), ("immediate", 16))
    return first, (*factors, *last)


@cache
def unused_bits(configuration: Configuration, opcode: Opcode) -> tuple[int, int]:
    """Bits of word 0 and word 1 that are in no field."""
    fields, every = instruction_fields(configuration, opcode), (1 << 64) - 1
    first, second = (every & ~sum(field.mask << field.low for field in fields if field.word == word) for word in (0, 1))
    return first, second


@cache
def uop_fields(configuration: Configuration) -> tuple[Field, ...]:
    """Fields of a micro-op."""
    names = (("dst", Memory.ACC), ("src", Memory.INP), ("wgt", Memory.WGT))
    return _word(0, 0, tuple((name, configuration.index_bits(memory)) for name, memory in names))


def _word(word: int, low: int, widths: Widths) -> tuple[Field, ...]:
    found = []
    for name, bits in widths:
        found.append(Field(name, word, low, bits, signed=name == "immediate"))
        low += bits
    return tuple(found)
