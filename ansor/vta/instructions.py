"""The instructions of VTA."""

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
    """The three modules of a core. Each runs its own instructions in order."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


@dataclass(frozen=True)
class Tokens:
    """The tokens that an instruction waits for, and posts when it is done. `prev` and `next` are neighbours in the order load, compute, store."""

    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False


@dataclass(frozen=True)
class Uop:
    """A micro-op: the indices of its elements, to which the loops of its instruction add. ALU instructions ignore `wgt`; their `src` is in ACC."""

    dst: int
    src: int = 0
    wgt: int = 0


@dataclass(frozen=True)
class Rows:
    """A region of DRAM: y_size rows of x_size elements, which begin x_stride elements apart."""

    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.y_size * self.x_size


@dataclass(frozen=True)
class Padding:
    """Zeros around a region: y_0, y_1 rows above and below, x_0, x_1 elements left and right of each row."""

    y_0: int = 0
    y_1: int = 0
    x_0: int = 0
    x_1: int = 0


@dataclass(frozen=True)
class UopRange:
    """The micro-ops [begin, end) of the memory UOP."""

    begin: int
    end: int


@dataclass(frozen=True)
class Loop:
    """How often micro-ops are repeated, and what each repetition adds to their indices."""

    iterations: int = 1
    dst: int = 0
    src: int = 0
    wgt: int = 0


@dataclass(frozen=True)
class Load:
    """Rows of DRAM into one of the memories, densely, with zeros around them.

    sram_base, dram_base: the first element, counted in elements of the memory. Without rows or columns it only carries tokens.
    """

    memory: Memory
    sram_base: int = 0
    dram_base: int = 0
    rows: Rows = Rows()
    padding: Padding = Padding()
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Store:
    """Elements of OUT to rows of DRAM; fields as in `Load`."""

    sram_base: int = 0
    dram_base: int = 0
    rows: Rows = Rows()
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Gemm:
    """For o < outer.iterations, i < inner.iterations and each of `uops`: ACC[dst] += INP[src] x WGT[wgt] transposed; with `reset`, ACC[dst] = 0.

    Each index is the micro-op's + o * the step of `outer` + i * the step of `inner`. The low 8 bits go to OUT[dst], too.
    """

    uops: UopRange
    outer: Loop = Loop()
    inner: Loop = Loop()
    reset: bool = False
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Alu:
    """With the loops of `Gemm`, and `wgt` 0: ACC[dst] = operation(ACC[dst], immediate), or operation(ACC[dst], ACC[src]) if `immediate` is None.

    The low 8 bits go to OUT[dst], too.
    """

    operation: AluOp
    uops: UopRange
    immediate: int | None = None
    outer: Loop = Loop()
    inner: Loop = Loop()
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Finish:
    """The end of a program. The device runs a program as a whole."""

    tokens: Tokens = Tokens()


Instruction = Load | Store | Gemm | Alu | Finish


def module_of(instruction: Instruction) -> Module:
    """The module that runs an instruction. Compute loads micro-ops and accumulators itself."""
    if isinstance(instruction, Store):
        return Module.STORE
    return Module.LOAD if isinstance(instruction, Load) and instruction.memory in (Memory.INP, Memory.WGT) else Module.COMPUTE
