"""Instructions of VTA as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ansor.vta.configuration import Memory


class Opcode(IntEnum):
    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class AluOp(IntEnum):
    """SHR is arithmetic; a negative operand shifts left."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class Module(IntEnum):
    """The three modules that run instructions, each its own in order."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


@dataclass(frozen=True)
class Tokens:
    """What an instruction waits for, and posts when it is done. The order of the modules is load, compute, store: `prev` and `next` are neighbours in it."""

    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False


@dataclass(frozen=True)
class Uop:
    """A micro-op: the elements that it works on, before the loops of its instruction are added. ALU instructions ignore `wgt`; their `src` is in ACC."""

    dst: int
    src: int = 0
    wgt: int = 0


@dataclass(frozen=True)
class Load:
    """Rows of DRAM into one of the memories, densely: y_size rows of x_size elements, x_stride elements apart, with zeros around them.

    sram_base, dram_base: the first element, counted in elements of the memory. Paddings are in elements: rows above and below, columns left and right.
    With no rows or columns it does nothing but carry tokens.
    """

    memory: Memory
    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0
    y_pad_0: int = 0
    y_pad_1: int = 0
    x_pad_0: int = 0
    x_pad_1: int = 0
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Store:
    """Elements of OUT to rows of DRAM; fields as those of `Load`."""

    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Gemm:
    """For o < iter_out, i < iter_in and each micro-op of [uop_bgn, uop_end): ACC[dst] += INP[src] x WGT[wgt] transposed; with `reset`, ACC[dst] = 0.

    Each index is that of the micro-op + o * (its `_out`) + i * (its `_in`). The low 8 bits go to OUT[dst], too.
    """

    uop_bgn: int
    uop_end: int
    iter_out: int = 1
    iter_in: int = 1
    dst_out: int = 0
    dst_in: int = 0
    src_out: int = 0
    src_in: int = 0
    wgt_out: int = 0
    wgt_in: int = 0
    reset: bool = False
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Alu:
    """Loops as those of `Gemm`: ACC[dst] = operation(ACC[dst], immediate), or ACC[src] where `immediate` is None; the low 8 bits go to OUT[dst], too."""

    operation: AluOp
    uop_bgn: int
    uop_end: int
    immediate: int | None = None
    iter_out: int = 1
    iter_in: int = 1
    dst_out: int = 0
    dst_in: int = 0
    src_out: int = 0
    src_in: int = 0
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Finish:
    """The end of what the device runs at once."""

    tokens: Tokens = Tokens()


Instruction = Load | Store | Gemm | Alu | Finish


def module_of(instruction: Instruction) -> Module:
    """Which module runs it: micro-ops and accumulators are loaded by compute."""
    if isinstance(instruction, Store):
        return Module.STORE
    return Module.LOAD if isinstance(instruction, Load) and instruction.memory in (Memory.INP, Memory.WGT) else Module.COMPUTE
