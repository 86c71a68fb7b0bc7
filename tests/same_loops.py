"""Compares one row of a lowered population with the same row lowered alone: every number, exactly."""

from __future__ import annotations

import numpy as np

from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Remainder, Var
from ansor.ir.loops import Access, Buffer, For, Guard, IndexValue, Loops, Node, Store
from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr
from ansor.te.tensor import Read

Described = object
"""Nested tuples of names and numbers: a program as plain data."""


def described(loops: Loops, row: int | None = None) -> Described:
    """Program `row` of a population, or the only one there is."""
    return _Describer(row).program(loops)


class _Describer:
    def __init__(self, row: int | None) -> None:
        self.row = row

    def program(self, loops: Loops) -> Described:
        buffers = tuple(self.buffer(b) for b in (*loops.arguments, *loops.intermediates))
        return buffers, tuple(self.node(node) for node in loops.body)

    def number(self, value: object) -> int:
        """The row's entry of an array, or the number that all rows share."""
        array = np.asarray(value)
        return int(array[self.row] if array.ndim and self.row is not None else array)

    def buffer(self, buffer: Buffer) -> Described:
        pack = tuple(tuple(map(self.number, strides)) for strides in buffer.pack)
        return buffer.name, tuple(map(self.number, buffer.shape)), buffer.dtype, buffer.scope, pack

    def node(self, node: Node) -> Described:
        if isinstance(node, Store):
            return self.store(node)
        flags = (*map(self.number, (node.parallel, node.vectorized, node.unrolled, node.runs.unroll_limit)), str(node.intrinsic))
        return (*self.loop(node), flags, tuple(map(self.buffer, node.locals)), tuple(map(self.node, node.body)))

    def loop(self, loop: For) -> tuple[Described, ...]:
        return loop.var.name, self.number(loop.var.extent), loop.kind, loop.stage

    def store(self, store: Store) -> Described:
        guards = tuple(self.guard(guard) for guard in store.guards if self.number(guard.needed))
        reduced = tuple(var.name for var in store.reduce_vars)
        return store.stage, self.buffer(store.buffer), tuple(map(self.linear, store.index)), self.value(store.value), store.combiner, reduced, guards

    def guard(self, guard: Guard) -> Described:
        low, high = (None if bound is None else self.number(bound) for bound in (guard.low, guard.high))
        return self.linear(guard.value), low, high

    def linear(self, linear: Linear) -> Described:
        return tuple((self.atom(atom), self.number(c)) for atom, c in linear.terms), self.number(linear.const)

    def atom(self, atom: Atom) -> Described:
        if isinstance(atom, Var):
            return atom.name, self.number(atom.extent)
        if isinstance(atom, Quotient | Remainder):
            return type(atom).__name__, self.linear(atom.value), self.number(atom.divisor)
        assert isinstance(atom, Opaque)
        return "opaque", self.value(atom.value)

    def value(self, expr: Expr) -> Described:
        assert not isinstance(expr, Axis | Read), "lowering leaves no axes and no tensors"
        if isinstance(expr, Access):
            return self.buffer(expr.buffer), tuple(map(self.linear, expr.index))
        if isinstance(expr, IndexValue):
            return self.linear(expr.value)
        own = expr.value if isinstance(expr, Const) else expr.op if isinstance(expr, Binary) else expr.name if isinstance(expr, Call) else ""
        dtype = expr.dtype if isinstance(expr, Cast | Const) else ""
        return type(expr).__name__, own, dtype, tuple(map(self.value, expr.children))
