"""What one statement touches of one buffer, by boundary of its loops.

An index is a sum over loops, so with fixed outer loops it covers a span of its dimension: 1 + sum of |coefficient| * (extent - 1) over the
inner loops. The span may have holes (a stride of 2), so at most the product of those extents is counted. Both are exact for tiles of any depth and
for overlapping windows; an index through a fused loop is assumed to start at a multiple of its divisor, and one read from data may be anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.cost_model.cache_sets import FirstCache
from ansor.cost_model.nest import Nest
from ansor.cost_model.spread import PAGE_BYTES, Spread
from ansor.ir.columns import Flag, Int, Row, anywhere, at_least, ceil, choose, larger, magnitude, negated, row, smaller
from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Remainder, Var, variables
from ansor.ir.loops import Access, Buffer, IndexValue, Store
from ansor.te.expr import Expr
from ansor.te.fold import walk

Index = tuple[Linear, ...]
Pattern = tuple[object, ...]

@dataclass(frozen=True, eq=False)
class Layout:
    """A buffer's numbers as rows. strides: elements between neighbours, per dimension; size: elements."""

    shape: tuple[Row, ...]
    strides: tuple[Row, ...]
    size: Row
    element_bytes: int


def layout_of(buffer: Buffer) -> Layout:
    """The layout of `buffer`."""
    shape = tuple(at_least(row(extent), 1.0) for extent in buffer.shape)
    strides: list[Row] = []
    size: Row = 1.0
    for extent in reversed(shape):
        strides.append(size)
        size = size * extent
    return Layout(shape, tuple(reversed(strides)), size, np.dtype(buffer.dtype).itemsize)


@dataclass(frozen=True, eq=False)
class Space:
    """What touched elements take, per boundary. room: bytes of the first cache, given how they spread over its sets; pages: pages of memory that hold them,
    where runs along the last dimension begin with a page."""

    room: tuple[Row, ...]
    pages: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Footprint:
    """What a statement touches of one buffer.

    places: distinct elements accessed per iteration.
    elements: per boundary, elements touched by the loops inside it; line_elements: all elements of the cache lines that hold them.
    strides: per loop, elements by which the address moves; None if no index contains that loop.
    moves: per loop, whether the address moves with it.
    unique_lines, lines: cache lines touched over all loops, and visited (see the feature table).
    """

    places: Row
    elements: tuple[Row, ...]
    line_elements: tuple[Row, ...]
    strides: tuple[Row | None, ...]
    moves: tuple[Flag, ...]
    unique_lines: Row
    lines: Row
    space: Space


def accesses(store: Store) -> dict[Buffer, list[Index]]:
    """All elements a statement accesses per iteration: the stored buffer first, then in order of first read."""
    found: dict[Buffer, list[Index]] = {store.buffer: [store.index]}
    for index in store.index:
        _note_linear(index, found)
    _note_reads(store.value, found)
    return found


def _note_reads(expr: Expr, found: dict[Buffer, list[Index]]) -> None:
    for node in walk(expr):
        if isinstance(node, Access):
            found.setdefault(node.buffer, []).append(node.index)
            for index in node.index:
                _note_linear(index, found)
        elif isinstance(node, IndexValue):
            _note_linear(node.value, found)


def _note_linear(linear: Linear, found: dict[Buffer, list[Index]]) -> None:
    for atom, _ in linear.terms:
        if isinstance(atom, Opaque):
            _note_reads(atom.value, found)
        elif isinstance(atom, Quotient | Remainder):
            _note_linear(atom.value, found)


def reads_of(store: Store) -> set[Buffer]:
    """The buffers read, besides the old value of a reduction."""
    found: dict[Buffer, list[Index]] = {}
    for index in store.index:
        _note_linear(index, found)
    _note_reads(store.value, found)
    return set(found)


def footprint(nest: Nest, layout: Layout, indices: Sequence[Index], cache: FirstCache) -> Footprint:
    """What the accesses at `indices`, all of one buffer, touch together.

    Accesses along the same loops overlap and count as one with a wider start (a stencil), also through equal divisions; others are assumed disjoint.
    """
    groups: dict[Pattern, list[Index]] = {}
    for index in indices:
        groups.setdefault(_walked_by(index), []).append(index)
    alike: dict[Pattern, list[list[Index]]] = {}
    for group in groups.values():
        alike.setdefault(_pattern(group), []).append(group)
    parts = [(_group_footprint(nest, layout, same[0], cache), float(len(same))) for same in alike.values()]
    return parts[0][0] if len(groups) == 1 else _together(parts, layout)


def _pattern(group: list[Index]) -> Pattern:
    """Equal for groups with equal footprints: those that only differ in their start."""
    return tuple(tuple((terms_of(one), value_of(one.const) if len(group) > 1 else 0) for one in index) for index in group)


def _walked_by(index: Index) -> Pattern:
    """The loops along which an access moves, by dimension; if through divisions, also how far."""
    atoms = tuple(tuple(atom for atom, _ in one.terms) for one in index)
    return atoms if all(isinstance(atom, Var) for one in atoms for atom in one) else tuple(map(terms_of, index))


def terms_of(linear: Linear) -> Pattern:
    """Equal for sums with equal terms."""
    return tuple((_atom(atom), value_of(coefficient)) for atom, coefficient in linear.terms)


def _atom(atom: Atom) -> object:
    if isinstance(atom, Var | Opaque):
        return atom
    return type(atom), terms_of(atom.value), value_of(atom.value.const), value_of(atom.divisor)


def value_of(value: Int) -> object:
    """Equal for equal numbers, also of all programs. Recorded columns are equal only to themselves."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value if isinstance(value, int) else (id(value),)


def _together(parts: list[tuple[Footprint, float]], layout: Layout) -> Footprint:
    """The footprint of disjoint groups; parts: one of each kind, and their number."""
    prints = [print_ for print_, _ in parts]
    elements = tuple(smaller(_sum([(print_.elements[b], times) for print_, times in parts]), layout.size) for b in range(len(prints[0].elements)))
    in_lines = tuple(larger(touched, _most([print_.line_elements[b] for print_ in prints])) for b, touched in enumerate(elements))  # groups often share lines
    strides = tuple(_greatest([print_.strides[k] for print_ in prints]) for k in range(len(prints[0].strides)))
    moves = tuple(_any([print_.moves[k] for print_ in prints]) for k in range(len(prints[0].moves)))
    unique_lines = smaller(_sum([(print_.unique_lines, times) for print_, times in parts]), elements[0])
    places, lines = _sum([(print_.places, times) for print_, times in parts]), _sum([(print_.lines, times) for print_, times in parts])
    taken = tuple(_sum([(print_.space.room[b], times) for print_, times in parts]) for b in range(len(elements)))
    whole = larger(ceil(layout.size * (layout.element_bytes / PAGE_BYTES)), 1.0)
    pages = tuple(smaller(_sum([(print_.space.pages[b], times) for print_, times in parts]), whole) for b in range(len(elements)))
    return Footprint(places, elements, in_lines, strides, moves, unique_lines, lines, Space(taken, pages))


def _sum(values: Sequence[tuple[Row, float]]) -> Row:
    """The sum of values, each with a factor."""
    total: Row = 0.0
    for value, times in values:
        total = total + value * times
    return total


def _greatest(values: Sequence[Row | None]) -> Row | None:
    known = [value for value in values if value is not None]
    return _most(known) if known else None


def _most(values: Sequence[Row]) -> Row:
    greatest = values[0]
    for value in values[1:]:
        greatest = larger(greatest, value)
    return greatest


def _any(values: Sequence[Flag]) -> Flag:
    result: Flag = False
    for value in values:
        result = result | value
    return result


def _group_footprint(nest: Nest, layout: Layout, group: list[Index], cache: FirstCache) -> Footprint:
    dimensions = [_dimension(nest, layout, d, [index[d] for index in group]) for d in range(len(layout.shape))]
    spread = Spread(dimensions, layout.strides, layout.element_bytes, cache)
    elements: list[Row] = [_touched(dimensions)]
    lines_inside: list[Row] = [spread.lines(elements[0])]
    taken: list[Row] = [spread.room(lines_inside[0])]
    pages: list[Row] = [spread.pages]
    walked, crossing = _walked(dimensions, len(nest.loops))
    points: Row = float(len(group))
    for level in range(len(nest.loops) - 1, -1, -1):
        here = [dimension for dimension in dimensions if level in dimension.levels]
        for dimension in here:
            dimension.extend(nest, level)
        spread.settle(here)
        touched = _touched(dimensions) if here else elements[-1]
        if here and crossing is not False:  # a loop in two dimensions walks a diagonal
            points = points * choose(walked[level], nest.extents[level], 1.0)
            touched = choose(crossing, smaller(touched, points), touched)
        elements.append(touched)
        lines_inside.append(spread.lines(touched) if here else lines_inside[-1])
        taken.append(spread.room(lines_inside[-1]) if here else taken[-1])
        pages.append(spread.pages)
    for found in (elements, lines_inside, taken, pages):
        found.reverse()
    strides = _strides(nest, dimensions, layout)
    moves = tuple(False if stride is None else stride != 0.0 for stride in strides)
    lines = _line_visits(nest, layout, elements, strides, moves, cache.line_bytes)
    in_lines = tuple(larger(touched, inside * (cache.line_bytes / layout.element_bytes)) for touched, inside in zip(elements, lines_inside, strict=True))
    return Footprint(_places(group), tuple(elements), in_lines, strides, moves, lines_inside[0], lines, Space(tuple(taken), tuple(pages)))


def _walked(dimensions: list[_Dimension], levels: int) -> tuple[list[Flag], Flag]:
    """Which loops any dimension moves with, and whether two dimensions share one."""
    walked: list[Flag] = []
    crossing: Flag = False
    for level in range(levels):
        seen: Flag = False
        for dimension in dimensions:
            moves = dimension.moves(level)
            crossing = crossing | (seen & moves)
            seen = seen | moves
        walked.append(seen)
    return walked, crossing


def _points(nest: Nest, walked: set[int], level: int) -> Row:
    points: Row = 1.0
    for other in sorted(walked):
        if other >= level:
            points = points * nest.extents[other]
    return points


# One dimension ------------------------------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Composite:
    """A term that is not a multiple of one loop variable."""

    atom: Quotient | Remainder | Opaque
    coefficient: Int
    levels: frozenset[int]
    span: Row = 0.0


@dataclass(eq=False)
class _Dimension:
    """The part of one dimension covered by the loops inside the current boundary.

    size: of the dimension; spread: distance between the starts of its accesses; span: from the first to the last element by plain terms and starts;
    members: the number of accesses; points: the most distinct values; steps: level -> coefficient; levels: of all loops in the index.
    """

    size: Row
    spread: Row
    members: float
    steps: dict[int, Row]
    composites: list[_Composite]
    levels: frozenset[int]
    span: Row = field(init=False)
    points: Row = field(init=False)
    covered: Row = field(default=1.0)
    count: Row = field(default=1.0)

    def __post_init__(self) -> None:
        self.span, self.points = self.spread, self.members
        self._settle()

    def moves(self, level: int) -> Flag:
        """Whether the index changes with a loop."""
        step = self.steps.get(level, 0.0)
        return any(level in composite.levels for composite in self.composites) or step != 0

    def extend(self, nest: Nest, level: int) -> None:
        """Move one more loop inside the boundary."""
        step = self.steps.get(level)
        if step is not None:
            self.span = self.span + magnitude(step) * (nest.extents[level] - 1.0)
        self.points = self.points * choose(self.moves(level), nest.extents[level], 1.0)
        for composite in self.composites:
            if level in composite.levels:
                composite.span = _composite_span(nest, composite, level, self.size)
        self._settle()

    def _settle(self) -> None:
        span = self.span
        for composite in self.composites:
            span = span + composite.span
        self.covered = at_least(smaller(span + 1.0, self.size), 1.0)
        self.count = at_least(smaller(self.covered, self.points), 1.0)
        if self.composites and self.members > 1:  # an access through a division takes fewer values than its loops have iterations
            self.count = smaller(self.count, self.members * (span - self.spread + 1.0))


def _dimension(nest: Nest, layout: Layout, d: int, members: list[Linear]) -> _Dimension:
    first = members[0]
    steps: dict[int, Row] = {}
    composites: list[_Composite] = []
    for k, (atom, coefficient) in enumerate(first.terms):
        if isinstance(atom, Var):
            if atom in nest.level and anywhere(coefficient != 0):
                steps[nest.level[atom]] = row(coefficient)
            continue
        for other in members[1:]:
            coefficient = larger(magnitude(coefficient), magnitude(other.terms[k][1]))
        levels = frozenset(nest.level[var] for var in variables_within(atom) if var in nest.level)
        composites.append(_Composite(atom, coefficient, levels))
    low, high = first.const, first.const
    for other in members[1:]:
        low, high = smaller(low, other.const), larger(high, other.const)
    used = frozenset(steps).union(*(composite.levels for composite in composites))
    return _Dimension(layout.shape[d], row(high - low), float(len(members)), steps, composites, used)


def variables_within(atom: Atom) -> Iterator[Var]:
    """Loop variables, including those in the indices of data-dependent parts."""
    if isinstance(atom, Var):
        yield atom
        return
    if not isinstance(atom, Opaque):
        for inner, _ in atom.value.terms:
            yield from variables_within(inner)
        return
    for node in walk(atom.value):
        for linear in node.index if isinstance(node, Access) else (node.value,) if isinstance(node, IndexValue) else ():
            yield from variables(linear)
            for inner, _ in linear.terms:
                if isinstance(inner, Opaque):
                    yield from variables_within(inner)


def _composite_span(nest: Nest, composite: _Composite, boundary: int, size: Row) -> Row:
    """Distance between the least and the greatest value with the loops outside `boundary` at 0."""
    found = _range(nest, composite.atom, boundary)
    if found is None:
        inner = _points(nest, set(composite.levels), boundary)
        return choose(inner > 1.0, size, 0.0)
    return magnitude(row(composite.coefficient)) * row(found[1] - found[0])


def _range(nest: Nest, atom: Atom, boundary: int) -> tuple[Int, Int] | None:
    if isinstance(atom, Var):
        return 0, (atom.extent - 1 if nest.level.get(atom, -1) >= boundary else 0)
    if isinstance(atom, Opaque):
        return None
    low, high = atom.value.const, atom.value.const
    for inner, coefficient in atom.value.terms:
        found = _range(nest, inner, boundary)
        if found is None:
            return None
        a, b = found[0] * coefficient, found[1] * coefficient
        low, high = low + smaller(a, b), high + larger(a, b)
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    wraps = (low // atom.divisor) != (high // atom.divisor)
    return choose(wraps, 0, low % atom.divisor), choose(wraps, atom.divisor - 1, high % atom.divisor)


# All dimensions -----------------------------------------------------------------------------------------------------------------------------------


def _touched(dimensions: list[_Dimension]) -> Row:
    total: Row = 1.0
    for dimension in dimensions:
        if not isinstance(dimension.count, float) or dimension.count != 1.0:
            total = total * dimension.count
    return total


COMPARED = 200
"""The most accesses to compare pairwise in every program of a population; more are only compared by their form."""


def _places(group: list[Index]) -> Row:
    """How many distinct accesses there are."""
    if len(group) > COMPARED:
        return float(len({_terms_of(index) for index in group}))
    total: Row = 1.0
    for k in range(1, len(group)):
        fresh: Flag = True
        for j in range(k):
            fresh = fresh & negated(_same(group[j], group[k]))
        total = total + row(fresh)
    return total


def _terms_of(index: Index) -> Pattern:
    return tuple((terms_of(one), value_of(one.const)) for one in index)


def _same(a: Index, b: Index) -> Flag:
    """Whether two accesses over the same loops name the same element."""
    same: Flag = True
    for x, y in zip(a, b, strict=True):
        if x is y:
            continue
        same = same & (x.const == y.const)
        for (_, c), (_, d) in zip(x.terms, y.terms, strict=True):
            same = same if c is d else same & (c == d)
    return same


def _strides(nest: Nest, dimensions: list[_Dimension], layout: Layout) -> tuple[Row | None, ...]:
    """Elements by which the address moves per iteration of each loop; through a fused loop, the usual step."""
    plain: dict[int, Row] = {}
    fused: dict[int, Row] = {}
    for dimension, stride in zip(dimensions, layout.strides, strict=True):
        for level, step in dimension.steps.items():
            plain[level] = plain.get(level, 0.0) + step * stride
        for composite in dimension.composites:
            step = magnitude(row(composite.coefficient)) * stride
            for level in composite.levels:
                here = choose(stands(nest, composite.atom, level), math.inf, step)
                fused[level] = smaller(fused[level], here) if level in fused else here
    return tuple(_stride(plain.get(level), fused.get(level)) for level in range(len(nest.loops)))


def _stride(plain: Row | None, fused: Row | None) -> Row | None:
    if fused is None:
        return None if plain is None else magnitude(plain)
    moving = choose(fused == math.inf, 0.0, fused)
    return moving if plain is None else choose(plain != 0.0, magnitude(plain), moving)


def stands(nest: Nest, atom: Quotient | Remainder | Opaque, level: int) -> Flag:
    """Whether a loop does not change a quotient: its whole range lies within one multiple of the divisor (tile i_1 of 4 in (i_0 * 4 + i_1) // 32);
    or a remainder: each of its steps is a multiple of the divisor."""
    if isinstance(atom, Opaque):
        return False
    step = next((magnitude(c) for inner, c in atom.value.terms if isinstance(inner, Var) and nest.level.get(inner) == level), None)
    if step is None:
        return False
    if isinstance(atom, Remainder):
        return step % atom.divisor == 0
    reach = larger(step * nest.loops[level].var.extent, 1)  # a step of 0 changes nothing
    still = (atom.divisor % reach == 0) & (atom.value.const % reach == 0)
    for _, other in atom.value.terms:
        still = still & ((magnitude(other) <= step) | (other % reach == 0))
    return still


def _line_visits(nest: Nest, layout: Layout, elements: list[Row], strides: tuple[Row | None, ...], moves: tuple[Flag, ...], line_bytes: int) -> Row:
    """Lines per run of the innermost real loop that moves, times the iterations outside it."""
    times: Row = 1.0
    touched: Row = 1.0
    stride: Row = 0.0
    for level, step in enumerate(strides):
        if step is None:
            continue
        here = nest.real[level] & moves[level]
        times = choose(here, nest.counts.outside[level], times)
        touched = choose(here, elements[level], touched)
        stride = choose(here, step, stride)
    span = (touched - 1.0) * stride + 1.0
    return times * larger(smaller(touched, ceil(span * (layout.element_bytes / line_bytes))), 1.0)
