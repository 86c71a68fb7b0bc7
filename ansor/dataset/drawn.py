"""Declarations drawn at random. They teach a cost model loops that no library of operators has: odd operands, windows, axis orders and reductions.

A seed always gives the same declaration. Sizes are those of real work: millions of operations, and tensors of some kilobytes to some megabytes. Record files
name a declaration by its seed only, so any change here makes earlier records useless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ansor import te
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor

LEAST_OPERATIONS, MOST_OPERATIONS = 1e6, 1.5e8
MOST_ELEMENTS = 4 << 20
"""The most elements of one tensor."""

EXTENTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 96, 100, 112, 128, 160, 192, 224, 256, 320, 384, 512, 768, 1024)
WINDOWS = (2, 3, 3, 3, 4, 5, 5, 7, 9)
MOST_DIMENSIONS = 64

Choice = TypeVar("Choice")
Binary = Callable[[Expr, Expr], Expr]
Unary = Callable[[Expr], Expr]
Reducer = Callable[[Expr, Sequence[Axis]], Expr]


def summed(value: Expr, axes: Sequence[Axis]) -> Expr:
    """The sum over axes."""
    return te.sum(value, axis=axes)


def largest(value: Expr, axes: Sequence[Axis]) -> Expr:
    """The maximum over axes."""
    return te.max(value, axis=axes)


def smallest(value: Expr, axes: Sequence[Axis]) -> Expr:
    """The minimum over axes."""
    return te.min(value, axis=axes)


BINARY: tuple[tuple[int, Binary], ...] = (
    (12, lambda a, b: a * b),
    (1, lambda a, b: te.abs(a - b)),
    (1, lambda a, b: (a - b) * (a - b)),
    (1, lambda a, b: a + b),
    (1, te.maximum),
    (1, te.minimum),
    (1, lambda a, b: te.maximum(a, 0.0) * b),
    (1, lambda a, b: te.select(a > b, a, 0.0)),
    (1, lambda a, b: te.sqrt(a * a + b * b)),
    (1, lambda a, b: te.exp(te.minimum(a, 0.0)) * b),
)
"""How operands are combined, with weights."""

UNARY: tuple[tuple[int, Unary], ...] = (
    (6, lambda a: a),
    (2, lambda a: te.maximum(a, 0.0)),
    (1, lambda a: a * 0.5 + 1.0),
    (1, te.sigmoid),
    (1, te.tanh),
    (1, lambda a: te.exp(te.minimum(a, 1.0))),
    (1, lambda a: te.sqrt(te.abs(a) + 1.0)),
    (1, lambda a: 1.0 / (te.abs(a) + 1.0)),
)
"""Functions of one element, with weights."""


class Drawing:
    """The random numbers of one declaration, and its inputs so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 20261126])
        self.inputs: list[Tensor] = []

    def among(self, weighted: Sequence[tuple[int, Choice]]) -> Choice:
        """One of several, with probabilities proportional to their weights."""
        weights = np.array([weight for weight, _ in weighted], np.float64)
        return weighted[int(self.rng.choice(len(weighted), p=weights / weights.sum()))][1]

    def chance(self, percent: int) -> bool:
        """True with this probability."""
        return bool(self.rng.integers(100) < percent)

    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def placeholder(self, shape: tuple[int, ...], constant: int = 30) -> Tensor:
        """Another input, constant with a probability in percent."""
        made = te.placeholder(shape, name=f"x{len(self.inputs)}", constant=self.chance(constant))
        self.inputs.append(made)
        return made

    def extents(self, count: int, product: float) -> list[int]:
        """Extents of `count` axes, with about this product."""
        shares = self.rng.dirichlet(np.full(count, 2.0))
        found = [_nearest(product**share) for share in shares.tolist()]
        return [int(one) for one in self.rng.permutation(found)]


def _nearest(size: float) -> int:
    return min(EXTENTS, key=lambda one: abs(math.log(one / max(size, 1.0))))


def drawn(seed: int) -> list[Tensor]:
    """The declaration of a seed: its inputs and its result."""
    from ansor.ir.dag import Dag

    drawing = Drawing(seed)
    while True:
        drawing.inputs.clear()
        result = drawing.among(FORMS)(drawing)
        tensors = [*drawing.inputs, result]
        if all(math.prod(one.shape) <= MOST_ELEMENTS for one in tensors) and LEAST_OPERATIONS / 4 <= Dag(tensors).flop <= MOST_OPERATIONS:
            return tensors


def _products(drawing: Drawing) -> Tensor:
    """A reduction of up to three operands."""
    return _finished(drawing, _reduced(drawing, 0))


def _windows(drawing: Drawing) -> Tensor:
    """A reduction over windows."""
    return _finished(drawing, _reduced(drawing, drawing.whole(1, 3)))


def _chained(drawing: Drawing) -> Tensor:
    """A reduction that reads another one."""
    first = _reduced(drawing, drawing.among(((3, 0), (1, 1))))
    drawing.rng.random()  # unused, like one below; without it, seeds would not give the declarations that were recorded
    return _finished(drawing, _weighted(drawing, _finished(drawing, first)))


def _statistics(drawing: Drawing) -> Tensor:
    """Each element normalised by statistics over some axes."""
    rank = drawing.whole(2, 4)
    shape = tuple(drawing.extents(rank, drawing.rng.choice([2e5, 5e5, 1e6])))
    over: set[int] = set(drawing.rng.permutation(rank)[: drawing.whole(1, rank - 1)].tolist())
    data, apply = drawing.placeholder(shape, 0), drawing.among(UNARY)
    kept = [place for place in range(rank) if place not in over]
    scale: float = 1.0 / math.prod(shape[place] for place in over)

    def statistic(name: str, of: Callable[[Expr, tuple[Axis, ...]], Expr], reduce: Reducer) -> Tensor:
        axes = {place: te.reduce_axis(shape[place], f"{name}{place}") for place in over}

        def at(*places: Axis) -> Expr:
            outer = dict(zip(kept, places, strict=True))
            index = tuple(axes[place] if place in axes else outer[place] for place in range(rank))
            return reduce(of(data[index], places), list(axes.values()))

        return te.compute(tuple(shape[place] for place in kept), at, name=name)

    first = statistic("first", lambda value, places: apply(value), drawing.among(((3, summed), (1, largest))))

    def deviation(value: Expr, places: tuple[Axis, ...]) -> Expr:
        return value - first[places] * scale

    second = statistic("second", lambda value, places: deviation(value, places) * deviation(value, places), summed) if drawing.chance(60) else first

    def made(*places: Axis) -> Expr:
        outer = tuple(places[place] for place in kept)
        return deviation(data[places], outer) * te.rsqrt(te.abs(second[outer]) * scale + 1e-3)

    return _finished(drawing, te.compute(shape, made, name="made"))


def _gathered(drawing: Drawing) -> Tensor:
    """Rows of a table, chosen by another tensor and combined with others."""
    rows, chosen, width = drawing.whole(100, 20000), drawing.whole(1, 64), int(drawing.rng.choice([16, 32, 48, 64, 96, 128]))
    outer = drawing.extents(1, 3e6 / (chosen * width))[0]
    table = drawing.placeholder((rows, width), 50)
    which = te.placeholder((outer, chosen), "int32", name=f"x{len(drawing.inputs)}")
    drawing.inputs.append(which)
    weights = drawing.placeholder((outer, chosen), 0)
    by_row = drawing.chance(50)
    other = drawing.placeholder((outer, width), 0)
    last = te.reduce_axis(chosen if by_row else width, "r")
    if by_row and chosen != width:
        result = te.compute((outer, width), lambda i, j: te.max(table[which[i, last], j] * weights[i, last] + other[i, j], axis=last), name="y")
    else:
        result = te.compute((outer, chosen), lambda i, j: te.sum(table[which[i, j], last] * other[i, last] * weights[i, j], axis=last), name="y")
    return _finished(drawing, result)


def _neighbours(drawing: Drawing) -> Tensor:
    """Scaled neighbours of each element, combined without a reduction."""
    rank = drawing.whole(1, 3)
    shape = tuple(drawing.extents(rank, drawing.rng.choice([1e5, 5e5, 1e6])))
    reach = tuple(drawing.whole(0, 4) if drawing.chance(70) else 0 for _ in shape)
    data = drawing.placeholder(tuple(one + more for one, more in zip(shape, reach, strict=True)), 0)
    apply, combine = drawing.among(UNARY), drawing.among(BINARY)
    taps = [tuple(drawing.whole(0, more) for more in reach) for _ in range(drawing.whole(3, 9))]
    same = list(range(rank))
    order = drawing.rng.permutation(rank).tolist() if drawing.chance(30) else same

    def at(*places: Axis) -> Expr:
        values = [data[tuple(place + step for place, step in zip(places, tap, strict=True))] * float(1 + number) for number, tap in enumerate(taps)]
        total = values[0]
        for value in values[1:]:
            total = combine(total, value) if drawing.chance(20) else total + value
        return apply(total)

    result = te.compute(shape, at, name="near")
    if order != same:
        near = result
        result = te.compute(tuple(shape[place] for place in order), lambda *places: near[tuple(places[order.index(place)] for place in same)] + 1.0, name="y")
    return _finished(drawing, result)


FORMS: tuple[tuple[int, Callable[[Drawing], Tensor]], ...] = (
    (8, _products),
    (6, _windows),
    (3, _chained),
    (3, _statistics),
    (1, _gathered),
    (2, _neighbours),
)
"""The forms of declarations, with weights."""


@dataclass(frozen=True)
class Read:
    """How an operand is read: by which outer and which reduced axes, and in which order of dimensions."""

    outer: frozenset[int]
    reduced: frozenset[int]
    order: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """The axes of a reduction. moved: stride and dilation of each window; windows are the last reduced axes, and move along the first outer ones."""

    outer: tuple[int, ...]
    reduced: tuple[Axis, ...]
    moved: tuple[tuple[int, int], ...]

    def index(self, outer: Sequence[Axis], read: Read) -> tuple[Expr, ...]:
        """The index of an operand."""
        return tuple(index for index, _ in self._dimensions(outer, read))

    def shape(self, read: Read) -> tuple[int, ...]:
        """The shape of an operand."""
        return tuple(extent for _, extent in self._dimensions([te.reduce_axis(extent, "o") for extent in self.outer], read))

    def _dimensions(self, outer: Sequence[Axis], read: Read) -> list[tuple[Expr, int]]:
        first = len(self.reduced) - len(self.moved)
        found: list[tuple[Expr, int]] = []
        for axis in sorted(read.outer):
            if axis < len(self.moved) and first + axis in read.reduced:
                (stride, dilation), window = self.moved[axis], self.reduced[first + axis]
                found.append((outer[axis] * stride + window * dilation, (self.outer[axis] - 1) * stride + (window.extent - 1) * dilation + 1))
            else:
                found.append((outer[axis], self.outer[axis]))
        found += [(self.reduced[axis], self.reduced[axis].extent) for axis in sorted(read.reduced) if axis < first or axis - first not in read.outer]
        return [found[place] for place in sorted(range(len(found)), key=lambda place: read.order[place])]


def _reduced(drawing: Drawing, windows: int) -> Tensor:
    """A reduction of up to three operands, over this many windows and some other axes."""
    while True:
        name = f"y{len(drawing.inputs)}"
        nest = _nest(drawing, windows, name)
        combine, again, reduce = drawing.among(BINARY), drawing.among(BINARY), drawing.among(((10, summed), (1, largest), (1, smallest)))
        nest = Nest(nest.outer, nest.reduced, tuple((drawing.among(((4, 1), (2, 2))), drawing.among(((5, 1), (1, 2)))) for _ in range(windows)))
        reads = _reads(drawing, nest)
        shapes = [nest.shape(read) for read in reads]
        if all(math.prod(shape) <= MOST_ELEMENTS for shape in (*shapes, nest.outer)):
            break
    operands = [drawing.placeholder(shape, 0 if place == 0 else 40) for place, shape in enumerate(shapes)]

    def at(*places: Axis) -> Expr:
        value, *others = [operand[nest.index(places, read)] for operand, read in zip(operands, reads, strict=True)]
        for number, other in enumerate(others):
            value = again(value, other) if number else combine(value, other)
        return reduce(value, nest.reduced)

    return te.compute(nest.outer, at, name=name)


def _nest(drawing: Drawing, windows: int, name: str) -> Nest:
    """The axes of a reduction, without the strides and dilations of its windows."""
    total = 10 ** drawing.rng.uniform(math.log10(LEAST_OPERATIONS), math.log10(MOST_OPERATIONS)) / 2
    plain = drawing.whole(0, 2) if windows else drawing.whole(1, 3)
    sizes = [int(drawing.rng.choice(WINDOWS)) for _ in range(windows)]
    count = drawing.whole(max(1, windows), 4)
    extents = drawing.extents(count + plain, total / math.prod(sizes))
    reduced = tuple(te.reduce_axis(extent, f"{name}r{place}") for place, extent in enumerate([*extents[count:], *sizes]))
    return Nest(tuple(extents[:count]), reduced, ())


def _reads(drawing: Drawing, nest: Nest) -> list[Read]:
    """How each operand is read. The first one has all windows; at least one operand is read by each axis."""
    outer, reduced, windows = len(nest.outer), len(nest.reduced), len(nest.moved)
    count = drawing.among(((1, 1), (8, 2), (2, 3))) if windows else drawing.among(((1, 1), (8, 2), (3, 3)))
    found: list[tuple[set[int], set[int]]] = []
    for place in range(count):
        ours = {axis for axis in range(outer) if drawing.chance(60)}
        theirs = {axis for axis in range(reduced) if drawing.chance(75)}
        if place == 0:
            ours |= set(range(windows))
            theirs |= set(range(reduced - windows, reduced))
        found.append((ours, theirs))
    for kind, number in ((0, outer), (1, reduced)):
        for axis in range(number):
            if not any(axis in one[kind] for one in found):
                found[drawing.whole(0, count - 1)][kind].add(axis)
    orders = [drawing.rng.permutation(MOST_DIMENSIONS).tolist() if drawing.chance(40) else list(range(MOST_DIMENSIONS)) for _ in found]
    return [Read(frozenset(ours), frozenset(theirs), tuple(order)) for (ours, theirs), order in zip(found, orders, strict=True)]


def _weighted(drawing: Drawing, given: Tensor) -> Tensor:
    """A sum over one axis of a tensor, with weights."""
    name = f"y{len(drawing.inputs)}"
    drawing.rng.random()
    place = drawing.whole(0, len(given.shape) - 1)
    axis = te.reduce_axis(given.shape[place], f"{name}r")
    others = [extent for number, extent in enumerate(given.shape) if number != place]
    width = drawing.extents(1, min(256.0, max(4.0, MOST_OPERATIONS / 4 / math.prod(given.shape))))[0]
    across = drawing.chance(50) or axis.extent == width
    weights, combine = drawing.placeholder((axis.extent, width) if across else (width, axis.extent), 50), drawing.among(BINARY)

    def at(*places: Axis) -> Expr:
        index = (*places[:place], axis, *places[place:-1])
        return te.sum(combine(given[index], weights[(axis, places[-1]) if across else (places[-1], axis)]), axis=axis)

    return te.compute((*others, width), at, name=name)


def _finished(drawing: Drawing, result: Tensor) -> Tensor:
    """The result, with or without an elementwise stage behind it."""
    if drawing.chance(50):
        return result
    apply, shape = drawing.among(UNARY), tuple(result.shape)
    form, name = drawing.whole(0, 2), f"z{len(drawing.inputs)}"
    if form == 0:
        return te.compute(shape, lambda *places: apply(result[places]), name=name)
    if form == 1:
        axis = drawing.whole(0, len(shape) - 1)
        bias = drawing.placeholder((shape[axis],), 60)
        return te.compute(shape, lambda *places: apply(result[places] + bias[places[axis]]), name=name)
    residual = drawing.placeholder(shape, 0)
    return te.compute(shape, lambda *places: apply(result[places] + residual[places]), name=name)
