"""What every loop of a program touches: the numbers behind AutoTVM's loop features. Source: AutoTVM 0.9, `touch_extractor`.

A touch is one access of one statement, named by its buffer and the number of earlier accesses to it: `A_0`, `C_0` (written), `C_1` (read to accumulate).
The initialisation in a reduction's first iteration is not a separate statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ansor.ir.linear import Atom, Linear, Opaque, Var, atom_variables
from ansor.ir.loops import Access, Buffer, For, IndexValue, Loops, Node, Store
from ansor.te.expr import Binary, Expr, is_float

ANNOTATIONS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "unroll", "vectorize", "parallel", "serial", "vthread")
"""How a loop runs, in the order of its one-hot feature. Processors have four of them."""

_LEVELS = {"parallel": 1, **{f"threadIdx.{axis}": 1 for axis in "xyz"}, **{f"blockIdx.{axis}": 2 for axis in "xyz"}}
"""Loops distributed over threads, and over blocks of threads."""

_ARITHMETIC = {"add": "add", "sub": "add", "mul": "mul", "div": "div"}
_COMBINERS = {"sum": "add", "prod": "mul"}


@dataclass
class Touch:
    """How a loop and those inside it walk over the elements of one access.

    stride: elements from one iteration of this loop to the next, 0 if it does not move; mod: always -1, for none; count: distinct elements; reuse: how often
    each is touched; thread_count, thread_reuse: what all threads of a loop that is shared out together have of one thread's, 0 for other loops.
    """

    stride: int
    mod: int = -1
    count: int = 1
    reuse: int = 1
    thread_count: int = 0
    thread_reuse: int = 0


@dataclass
class LoopTouches:
    """A loop: its iterations, its depth from 1, iterations of it and the loops around it, of it and those inside it, arithmetic directly in it, touches."""

    var: Var
    length: int
    nest_level: int
    annotation: str
    topdown: int
    bottomup: int = -1
    arithmetic: Counter[str] = field(default_factory=Counter)
    touches: dict[str, Touch] = field(default_factory=dict)


def loop_touches(loops: Loops, threads: Mapping[tuple[str, str], str] = MappingProxyType({})) -> list[LoopTouches]:
    """Every loop, in order of appearance, loops of one iteration included if they are there. Touches are in order of name.

    threads: (stage, loop) -> what the loop is bound to.
    """
    walk = _Walk({f"{stage}_{loop}": tag for (stage, loop), tag in threads.items()})
    for node in loops.body:
        walk.node(node)
    for loop in walk.found:
        loop.touches = dict(sorted(loop.touches.items()))
    return walk.found


class _Walk:
    def __init__(self, threads: Mapping[str, str]) -> None:
        self._threads = threads
        self.found: list[LoopTouches] = []
        self._stack: list[LoopTouches] = []
        self._named: Counter[str] = Counter()

    def node(self, node: Node) -> None:
        if isinstance(node, Store):
            self._store(node)
            return
        length = int(node.var.extent)
        outside = self._stack[-1].topdown if self._stack else 1
        loop = LoopTouches(node.var, length, len(self._stack) + 1, self._threads.get(node.var.name, _annotation(node)), outside * length)
        self.found.append(loop)
        self._stack.append(loop)
        for inner in node.body:
            self.node(inner)
        self._leave(loop)

    def _leave(self, loop: LoopTouches) -> None:
        """Finish a loop: its iterations count in itself and in all loops around it."""
        for name, touch in loop.touches.items():
            for around in self._stack:
                if touch.stride:
                    around.touches[name].count *= loop.length
                else:
                    around.touches[name].reuse *= loop.length
        self._stack.pop()
        loop.bottomup = max((touch.count * touch.reuse for touch in loop.touches.values()), default=-1)
        above = _LEVELS.get(loop.annotation, 0) + 1
        if self._stack and _LEVELS.get(self._stack[-1].annotation) == above:
            self._one_thread(loop, above)
        for touch in loop.touches.values():
            touch.thread_count = touch.count // touch.thread_count if touch.thread_count else 0
            touch.thread_reuse = touch.reuse // touch.thread_reuse if touch.thread_reuse else 0

    def _one_thread(self, loop: LoopTouches, level: int) -> None:
        """For the outermost loop over threads, or over blocks of them, record what a single thread or block touches."""
        for around in self._stack:
            if _LEVELS.get(around.annotation) == level:
                for name, touch in loop.touches.items():
                    around.touches[name].thread_count, around.touches[name].thread_reuse = touch.count, touch.reuse

    def _store(self, store: Store) -> None:
        self._touch(store.buffer, store.index)
        if store.combiner is not None:
            self._touch(store.buffer, store.index)
            self._operation(_COMBINERS.get(store.combiner), store.buffer.dtype)
        self._value(store.value)
        for index in store.index:
            self._index(index)

    def _value(self, expr: Expr) -> None:
        if isinstance(expr, Access):
            self._touch(expr.buffer, expr.index)
            for index in expr.index:
                self._index(index)
        elif isinstance(expr, IndexValue):
            self._index(expr.value)
        elif isinstance(expr, Binary):
            self._operation(_ARITHMETIC.get(expr.op), expr.dtype)
        for child in expr.children:
            self._value(child)

    def _index(self, index: Linear) -> None:
        """Record the touches of the values that an index reads."""
        for value in _read_by(index):
            self._value(value)

    def _operation(self, kind: str | None, dtype: str) -> None:
        if kind is not None and is_float(dtype) and self._stack:
            self._stack[-1].arithmetic[kind] += 1

    def _touch(self, buffer: Buffer, index: tuple[Linear, ...]) -> None:
        name = f"{buffer.name}_{self._named[buffer.name]}"
        self._named[buffer.name] += 1
        strides = _strides(buffer, index)
        for loop in self._stack:
            loop.touches[name] = Touch(strides.get(loop.var, 0))


def _annotation(loop: For) -> str:
    if loop.parallel:
        return "parallel"
    if loop.vectorized:
        return "vectorize"
    return "unroll" if loop.unrolled else "serial"


def _strides(buffer: Buffer, index: tuple[Linear, ...]) -> dict[Var, int]:
    """Elements between iterations of each loop in an index. Inside a quotient or remainder a loop counts with its factor there."""
    flat = sum((value * stride for value, stride in zip(index, buffer.strides, strict=True)), Linear())
    strides: dict[Var, int] = {}
    for atom, stride in flat.terms:
        for var in atom_variables(atom):
            strides.setdefault(var, int(stride) if isinstance(atom, Var) else _inside(atom, var))
    return strides


def _inside(atom: Atom, var: Var) -> int:
    """The factor of a loop inside quotients and remainders."""
    if isinstance(atom, Opaque | Var):
        return 1
    for inner, coefficient in atom.value.terms:
        if inner is var:
            return int(coefficient)
        if any(found is var for found in atom_variables(inner)):
            return _inside(inner, var)
    return 1


def _read_by(index: Linear) -> Iterator[Expr]:
    """The values that an index reads."""
    for atom, _ in index.terms:
        if isinstance(atom, Opaque):
            yield atom.value
        elif not isinstance(atom, Var):
            yield from _read_by(atom.value)
