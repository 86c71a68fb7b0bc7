"""Loop nests: what a schedule lowers to.

`Loops` is a tree of `For`s with `Store`s as leaves. The same tree stands for one program (extents are ints) and for a population of programs that
share a structure (extents are int64 arrays of shape [n]).

A reducing store initialises itself: where all its `reduce_vars` are 0, the old value is the combiner's identity, elsewhere the stored value.
So no separate initialisation nest is needed, and a generator may keep the value in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.ir.columns import Flag, Int, product
from ansor.ir.intrinsics import Intrinsic
from ansor.ir.linear import Linear, Var
from ansor.ir.printer import linear_text, number_text, value_text
from ansor.te.expr import INDEX, Expr, Number

COMBINERS = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory for one tensor. `shape` is the stored shape, in elements, row-major.

    scope: `input`, `constant`, `output` (arguments), `workspace` (whole intermediate), `local` (a region inside a loop).
    pack: for a constant stored in loop order, per logical dimension, the stride of each stored dimension; starts: per logical dimension, the first index.
    copies: the number of copies, used in turn.
    """

    name: str
    shape: tuple[Int, ...]
    dtype: str
    scope: str
    pack: tuple[tuple[Int, ...], ...] = ()
    starts: tuple[Int, ...] = ()
    copies: Int = 1

    @property
    def strides(self) -> tuple[Int, ...]:
        """Elements between neighbours, per stored dimension."""
        return tuple(product(self.shape[d + 1 :]) for d in range(len(self.shape)))

    @property
    def size(self) -> Int:
        """Number of elements of one copy."""
        return product(self.shape)

    def __str__(self) -> str:
        packed = " packed" if self.pack else ""
        times = f"{number_text(self.copies)} x " if not isinstance(self.copies, int) or self.copies != 1 else ""
        return f"{times}{self.name}: {self.dtype}[{', '.join(map(number_text, self.shape))}] {self.scope}{packed}"


@dataclass(frozen=True, eq=False, slots=True)
class Access(Expr):
    """One element of a buffer, as a value."""

    buffer: Buffer
    index: tuple[Linear, ...]
    dtype: str

    def text(self, parts: Sequence[str]) -> str:
        return f"{self.buffer.name}[{', '.join(map(linear_text, self.index))}]"


@dataclass(frozen=True, eq=False, slots=True)
class IndexValue(Expr):
    """An index used as a value (in a condition, or cast to a number)."""

    value: Linear
    dtype: str = INDEX

    def text(self, parts: Sequence[str]) -> str:
        return f"({linear_text(self.value)})"


@dataclass(frozen=True, eq=False)
class Guard:
    """Run only where `low <= value < high`; a bound that always holds is None."""

    value: Linear
    low: Int | None
    high: Int | None
    needed: Flag = True

    def __str__(self) -> str:
        low = f"{number_text(self.low)} <= " if self.low is not None else ""
        high = f" < {number_text(self.high)}" if self.high is not None else ""
        return f"{low}{linear_text(self.value)}{high}"


@dataclass(frozen=True, eq=False)
class Store:
    """`buffer[index] = value`, or `combiner(buffer[index], value)` for a reduction."""

    stage: str
    buffer: Buffer
    index: tuple[Linear, ...]
    value: Expr
    combiner: str | None = None
    identity: Number = 0
    reduce_vars: tuple[Var, ...] = ()
    guards: tuple[Guard, ...] = ()

    def lines(self, depth: int = 0) -> list[str]:
        """As text, indented."""
        where = f"if {' and '.join(map(str, self.guards))}: " if self.guards else ""
        target = f"{self.buffer.name}[{', '.join(map(linear_text, self.index))}]"
        return [f"{'  ' * depth}{where}{target} {COMBINERS[self.combiner] if self.combiner else '='} {value_text(self.value)}"]


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """How a loop runs. A parallel loop is collapsed with the parallel loops directly inside it. unroll_limit: most copies of its body, in tiles."""

    parallel: Flag = False
    vectorized: Flag = False
    unrolled: Flag = False
    unroll_limit: Int = 0


ONE_BY_ONE = Runs()


@dataclass(frozen=True, eq=False)
class For:
    """One loop.

    intrinsic: the instruction that runs this innermost reduction loop and the lanes of the vectorised loop around it at once.
    """

    var: Var
    kind: str
    stage: str
    body: tuple[Node, ...]
    runs: Runs = ONE_BY_ONE
    locals: tuple[Buffer, ...] = ()
    intrinsic: Intrinsic | None = None

    @property
    def parallel(self) -> Flag:
        """Whether its iterations are distributed over threads."""
        return self.runs.parallel

    @property
    def vectorized(self) -> Flag:
        """Whether its iterations are vector lanes."""
        return self.runs.vectorized

    @property
    def unrolled(self) -> Flag:
        """Whether it is written out."""
        return self.runs.unrolled

    def lines(self, depth: int = 0) -> list[str]:
        """The nest as text, indented."""
        indent = "  " * depth
        flags = [word for word, flag in (("parallel", self.parallel), ("vectorized", self.vectorized), ("unrolled", self.unrolled)) if np.any(flag)]
        head = f"{indent}{' '.join([*flags, 'for'])} {self.var.name} in {number_text(self.var.extent)}"
        head += f"  (unroll up to {number_text(self.runs.unroll_limit)})" if np.any(self.runs.unroll_limit) and self.kind == "reduce" else ""
        head += f"  ({self.intrinsic})" if self.intrinsic else ""
        return [head, *(f"{indent}  {buffer}" for buffer in self.locals), *(line for inner in self.body for line in inner.lines(depth + 1))]


Node = For | Store


@dataclass(frozen=True, eq=False)
class Loops:
    """A whole program: arguments in declaration order, whole intermediates, and the nests in order."""

    name: str
    arguments: tuple[Buffer, ...]
    intermediates: tuple[Buffer, ...]
    body: tuple[Node, ...]
    logical_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([*map(str, (*self.arguments, *self.intermediates)), *(line for node in self.body for line in node.lines())])


def stores(nodes: tuple[Node, ...], path: tuple[For, ...] = ()) -> Iterator[tuple[tuple[For, ...], Store]]:
    """Every store with the loops around it, outermost first, in program order."""
    for node in nodes:
        if isinstance(node, Store):
            yield path, node
        else:
            yield from stores(node.body, (*path, node))
