"""The elements that every loop of a program touches, for AutoTVM's loop features. Source: AutoTVM 0.9, `touch_extractor`.

A touch is one access of one statement, named by its buffer and the number of earlier accesses to it: `A_0`, `C_0` (written), `C_1` (read to accumulate).
The initialisation in a reduction's first iteration is not a separate statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

from ansor.ir.linear import Atom, Linear, Opaque, Var, atom_variables
from ansor.ir.loops import Access, Buffer, For, IndexValue, Loops, Store, stores
from ansor.te.expr import Binary, Expr, is_float

ANNOTATIONS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "unroll", "vectorize", "parallel", "serial", "vthread")
"""The annotations of a loop, in the order of the one-hot feature. Processors have four of them."""

_LEVELS = {"parallel": 1, **{f"threadIdx.{axis}": 1 for axis in "xyz"}, **{f"blockIdx.{axis}": 2 for axis in "xyz"}}
"""Annotation -> 1 for loops distributed over threads, 2 for loops distributed over blocks of threads."""

_ARITHMETIC = {"add": "add", "sub": "add", "mul": "mul", "div": "div"}
_COMBINERS = {"sum": "add", "prod": "mul"}


@dataclass
class Touch:
    """How a loop and the loops inside it touch the elements of one access.

    stride: elements between two iterations of this loop, 0 if the access does not move; mod: always -1, for none; count: distinct elements; reuse: how often
    each is touched; thread_count, thread_reuse: the count and reuse of all threads together divided by those of one thread, 0 for loops not distributed.
    """

    stride: int
    mod: int = -1
    count: int = 1
    reuse: int = 1
    thread_count: int = 0
    thread_reuse: int = 0


@dataclass
class LoopTouches:
    """A loop.

    length: its iterations; nest_level: its depth, from 1; topdown: iterations of it and the loops around it; bottomup: of it and the loops inside it;
    arithmetic: operations directly in it.
    """

    var: Var
    length: int
    nest_level: int
    annotation: str
    topdown: int
    bottomup: int = -1
    arithmetic: Counter[str] = field(default_factory=Counter)
    touches: dict[str, Touch] = field(default_factory=dict)


def loop_touches(loops: Loops, threads: Mapping[tuple[str, str], str] = MappingProxyType({})) -> list[LoopTouches]:
    """Every loop, in order of appearance, including any loops of one iteration. Touches are in order of name.

    threads: (stage, loop) -> the threads that the loop is bound to.
    """
    bound = {f"{stage}_{loop}": tag for (stage, loop), tag in threads.items()}
    found: dict[Var, LoopTouches] = {}
    named = Counter[str]()
    for path, store in stores(loops.body):
        around = [found.setdefault(loop.var, _loop(path[: place + 1], bound)) for place, loop in enumerate(path)]
        nodes = list(_nodes_of(store))
        if around:
            around[-1].arithmetic.update(_operations(store, nodes))
        written = [(store.buffer, store.index)] * (1 if store.combiner is None else 2)
        for buffer, index in (*written, *((node.buffer, node.index) for node in nodes if isinstance(node, Access))):
            _touch(around, f"{buffer.name}_{named[buffer.name]}", _strides(buffer, index))
            named[buffer.name] += 1
    for loop in found.values():
        loop.touches = dict(sorted(loop.touches.items()))
        loop.bottomup = max((touch.count * touch.reuse for touch in loop.touches.values()), default=-1)
    return list(found.values())


def _loop(path: Sequence[For], bound: Mapping[str, str]) -> LoopTouches:
    """The last loop of a path, without its touches."""
    own, lengths = path[-1], [int(loop.var.extent) for loop in path]
    return LoopTouches(own.var, lengths[-1], len(path), bound.get(own.var.name, _annotation(own)), prod(lengths))


def _touch(around: Sequence[LoopTouches], name: str, strides: Mapping[Var, int]) -> None:
    """Add one access to the loops around it. Iterations of a loop count for the loop itself and all loops around it."""
    count, reuse = 1, 1
    shares: dict[int, tuple[int, int]] = {}  # level -> count and reuse of one thread, or of one block of threads
    for place, loop in reversed(list(enumerate(around))):
        stride, level = strides.get(loop.var, 0), _LEVELS.get(loop.annotation, 0)
        if stride:
            count *= loop.length
        else:
            reuse *= loop.length
        one_count, one_reuse = shares.get(level, (0, 0))
        loop.touches[name] = Touch(stride, -1, count, reuse, count // one_count if one_count else 0, reuse // one_reuse if one_reuse else 0)
        if place and _LEVELS.get(around[place - 1].annotation) == level + 1:
            shares[level + 1] = count, reuse


def _operations(store: Store, nodes: Sequence[Expr]) -> list[str]:
    """The floating-point operations of one iteration."""
    found = [(_ARITHMETIC.get(node.op), node.dtype) for node in nodes if isinstance(node, Binary)]
    found.append((_COMBINERS.get(store.combiner or ""), store.buffer.dtype))
    return [kind for kind, dtype in found if kind is not None and is_float(dtype)]


def _nodes_of(store: Store) -> Iterator[Expr]:
    """The expressions of a statement, including those inside indices."""
    yield from _nodes(store.value)
    yield from _nodes_in(store.index)


def _nodes(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Access):
        yield from _nodes_in(expr.index)
    elif isinstance(expr, IndexValue):
        yield from _nodes_in((expr.value,))
    for child in expr.children:
        yield from _nodes(child)


def _nodes_in(index: tuple[Linear, ...]) -> Iterator[Expr]:
    for one in index:
        for value in _read_by(one):
            yield from _nodes(value)


def _annotation(loop: For) -> str:
    if loop.parallel:
        return "parallel"
    if loop.vectorized:
        return "vectorize"
    return "unroll" if loop.unrolled else "serial"


def _strides(buffer: Buffer, index: tuple[Linear, ...]) -> dict[Var, int]:
    """Elements between two iterations of each loop in an index. For a loop inside a quotient or remainder, its factor there."""
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
