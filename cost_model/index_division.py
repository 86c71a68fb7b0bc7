"""Divisions that indices of fused loops leave in the C code: quotients and remainders, unless the tiles of the loops align with them.

The C compiler moves each out of the loops that do not change its operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ansor.cost_model.nest import Nest
from ansor.cost_model.touched import Pattern, stands, terms_of, value_of, variables_within
from ansor.ir.columns import Flag, Int, Row, choose, larger, negated, row
from ansor.ir.linear import Atom, Linear, Quotient, Remainder, Var, bounds, is_opaque, variables
from ansor.ir.loops import Access, IndexValue
from ansor.te.fold import walk

Division = Quotient | Remainder
Terms = list[tuple[Atom, Int]]
Constants = dict[Var, Flag]
Moves = dict[Var, Flag]
"""Which loops change a number."""

OPEN = 1 << 40
"""The upper end of the first digit: more than any index."""


@dataclass(frozen=True, eq=False)
class Digit:
    """(value % high) // low: what fused loops say of one of them. coefficient: its stride in memory."""

    value: Linear
    low: Int
    high: Int
    coefficient: Int


@dataclass(frozen=True, eq=False)
class Divided:
    """A digit as the C code computes it: value // low, and the remainder of that or, if the quotient is exact, of what is left.

    wraps: whether the value may reach `high`; moves, moves_rest: the loops that change the quotient, and the remainder; inside: the divisions in the value,
    each with the loops that change it.
    """

    quotient: Quotient
    rest: Remainder
    wraps: Flag
    moves: Moves
    moves_rest: Moves
    inside: tuple[tuple[Division, Moves], ...]


def index_divisions(nest: Nest) -> Row:
    """How many a statement computes in all its iterations: in the indices that it stores to, reads from, and uses as values."""
    if "index divisions" not in nest.found:
        nest.found["index divisions"] = _counted(nest)
    found: Row = nest.found["index divisions"]
    return found


def steps_evenly(nest: Nest, level: int) -> Flag:
    """Whether each iteration of a loop moves every access by the same distance, so that several can be one vector: no division in an index depends on it,
    and no index that is read from memory."""
    name = "steps evenly", level
    if name not in nest.found:
        nest.found[name] = _steps_evenly(nest, nest.loops[level].var)
    found: Flag = nest.found[name]
    return found


def runs_in_vectors(nest: Nest, level: int) -> Flag:
    """Whether a loop that is annotated as vectorised is written as vectors, and not element by element, as far as its indices are concerned."""
    vectorized = nest.loops[level].vectorized
    return vectorized if vectorized is False else vectorized & steps_evenly(nest, level)


def _steps_evenly(nest: Nest, var: Var) -> Flag:
    if "loops from memory and divisions" not in nest.found:
        nest.found["loops from memory and divisions"] = _from_memory(nest), list(_computed(nest, {}))
    from_memory, divisions = nest.found["loops from memory and divisions"]
    evenly: Flag = var not in from_memory
    for computed, moved_by in divisions:
        evenly = evenly & negated(computed & moved_by.get(var, False))
    return evenly


def _from_memory(nest: Nest) -> set[Var]:
    """The loops that indices read from memory depend on."""
    return {var for terms in _addresses(nest) for atom, _ in terms if is_opaque(atom) for var in variables_within(atom)}


def _counted(nest: Nest) -> Row:
    count: Row = 0.0
    times: dict[int, Row] = {}
    for computed, moved_by in _computed(nest, _constants(nest)):
        if id(moved_by) not in times:
            times[id(moved_by)] = _times(nest, moved_by)
        count = count + times[id(moved_by)] * row(computed)
    return count


def _times(nest: Nest, moved_by: Moves) -> Row:
    """How often a number is computed: compilers move it out of the loops that do not change it."""
    times: Row = 1.0
    for var, moves in sorted(moved_by.items(), key=lambda one: nest.level.get(one[0], -1)):
        if var in nest.level:
            level = nest.level[var]
            times = choose(nest.real[level] & moves, nest.counts.outside[level + 1], times)
    return times


def _addresses(nest: Nest) -> Iterator[Terms]:
    """The position in memory of each access, as a sum."""
    yield _flat(nest.store.index, nest.store.buffer.shape)
    for node in walk(nest.store.value):
        if isinstance(node, Access):
            yield _flat(node.index, node.buffer.shape)
        elif isinstance(node, IndexValue):
            yield list(node.value.terms)


def _flat(index: Sequence[Linear], shape: Sequence[Int]) -> Terms:
    terms: Terms = []
    stride: Int = 1
    for linear, extent in zip(reversed(index), reversed(shape), strict=True):
        terms += [(atom, coefficient * stride) for atom, coefficient in linear.terms]
        stride = stride * extent
    return terms


def _computed(nest: Nest, constants: Constants) -> Iterator[tuple[Flag, Moves]]:
    """For each division of an address whether it is computed, and the loops that change it."""
    if "divided" not in nest.found:
        same: dict[Pattern, Divided] = {}
        nest.found["divided"] = [one for terms in _addresses(nest) for one in _divided(nest, terms, same)]
    known: list[tuple[Divided, Flag]] = nest.found["divided"]
    needed: dict[Division, Flag] = {}
    for one, left_out in known:
        for division in (one.quotient, one.rest, *(inside for inside, _ in one.inside)):
            if division not in needed:
                needed[division] = _is_needed(division, constants)
        kept, divided, exact = negated(left_out), needed[one.quotient], needed[one.rest]
        yield divided & kept, one.moves
        yield ((divided & one.wraps) | (negated(divided) & exact)) & kept, one.moves_rest
        for inside, moves in one.inside:
            yield needed[inside], moves


def _divided(nest: Nest, terms: Terms, same: dict[Pattern, Divided]) -> Iterator[tuple[Divided, Flag]]:
    """The digits of an address, as the C code computes them, and whether another digit includes each. same: those of other addresses, by form: accesses of a
    statement mostly have the same."""
    digits = [_digit(atom, coefficient) for atom, coefficient in terms if isinstance(atom, Division)]
    gone: list[Flag] = [False] * len(digits)
    # Neighbours in memory are one digit: (f / 8) * 8 + f % 8 is f. The innermost dimension comes first.
    for place in reversed(range(len(digits))):
        outer = digits[place]
        for other, inner in enumerate(digits[:place]):
            if outer.value is inner.value:
                joined = (outer.low == inner.high) & (outer.coefficient * inner.low == inner.coefficient * inner.high)
                digits[other] = replace(inner, high=choose(joined, outer.high, inner.high))
                gone[place] = gone[place] | joined
    for digit, left_out in zip(digits, gone, strict=True):
        form = terms_of(digit.value), value_of(digit.value.const), value_of(digit.low), value_of(digit.high)
        if form not in same:
            same[form] = _of_digit(nest, digit)
        yield same[form], left_out


def _of_digit(nest: Nest, digit: Digit) -> Divided:
    quotient = Quotient(digit.value, digit.low)
    moves = {var: negated(stands(nest, quotient, nest.level[var])) for var in variables(digit.value) if var in nest.level}
    rest = Linear(tuple((atom, choose(coefficient % digit.low == 0, coefficient // digit.low, 0)) for atom, coefficient in digit.value.terms),
                  digit.value.const // digit.low)  # fmt: skip
    whole = bounds(digit.value)
    wraps: Flag = True if whole is None else whole[1] >= digit.high
    free: dict[Var, Flag] = {atom: (coefficient % digit.high == 0) | _is_low(digit, atom, coefficient) for atom, coefficient in digit.value.terms
                             if isinstance(atom, Var)}  # fmt: skip
    moves_rest = {var: flag & negated(free.get(var, False)) for var, flag in moves.items()}
    inside: list[tuple[Division, Moves]] = [(atom, {var: True for var in variables(atom.value)}) for atom in _inside(digit.value)]
    return Divided(quotient, Remainder(rest, digit.high // digit.low), wraps, moves, moves_rest, tuple(inside))


def _is_low(digit: Digit, var: Var, coefficient: Int) -> Flag:
    """Whether the C code takes a variable out of the remainder: (f * 3 + v) % 6 is (f % 2) * 3 + v for v < 3."""
    reach = bounds(Linear(((var, coefficient),)))
    below = bounds(Linear(tuple((atom, choose(other <= coefficient, other, 0)) for atom, other in digit.value.terms), digit.value.const))
    if reach is None or below is None:
        return False
    span = larger(reach[1] + coefficient, 1)
    low: Flag = (coefficient > 0) & (digit.high % span == 0) & (below[0] >= 0) & (below[1] < span)
    for atom, other in digit.value.terms:
        if atom is not var:
            low = low & ((other <= coefficient) | (other % span == 0))
    return low


def _digit(atom: Division, coefficient: Int) -> Digit:
    value, (low, high) = atom.value, (atom.divisor, OPEN) if isinstance(atom, Quotient) else (1, atom.divisor)
    while len(value.terms) == 1 and isinstance(inner := value.terms[0][0], Quotient):  # of what was fused twice
        value, low, high = inner.value, low * inner.divisor, high if high is OPEN else high * inner.divisor
    return Digit(value, low, high, coefficient)


def _inside(linear: Linear) -> Iterator[Division]:
    for atom, _ in linear.terms:
        if isinstance(atom, Division):
            yield atom
            yield from _inside(atom.value)


def _is_needed(atom: Division, constants: Constants) -> Flag:
    """Whether something is left to divide: not if all terms are multiples of the divisor, constants in unrolled code, or together smaller than it."""
    rest: Terms = []
    for inner, coefficient in atom.value.terms:
        free = coefficient % atom.divisor == 0
        if isinstance(inner, Var) and inner in constants:
            free = free | constants[inner]
        rest.append((inner, choose(free, 0, coefficient)))
    found = bounds(Linear(tuple(rest), atom.value.const % atom.divisor))
    if found is None:
        return atom.divisor > 1
    return (atom.divisor > 1) & negated((found[0] >= 0) & (found[1] < atom.divisor))


def _constants(nest: Nest) -> Constants:
    """The loops that are written out, so that their variables are constants: unrolled ones, those inside the innermost reduction, the vectors of other
    statements, and the reductions around them that the C compiler unrolls as a whole. It counts a vector as one copy, and its elements one by one if they
    need divisions."""
    found: Constants = {}
    inside: Flag = True
    reduces: Flag = False
    copies: Row = 1.0
    whole: Flag = True
    for loop, real in zip(nest.loops, nest.real, strict=True):
        reduces = reduces | (loop.kind == "reduce" and real)
    for level in range(len(nest.loops) - 1, -1, -1):
        loop, extent, real = nest.loops[level], nest.extents[level], nest.real[level]
        if loop.stage != nest.store.stage:
            break
        if loop.kind == "reduce":
            inside = inside & negated(real)
            copies = copies * extent
            whole = whole & (negated(real) | (copies <= row(loop.runs.unroll_limit)) | loop.unrolled)
            found[loop.var] = whole | loop.unrolled
        else:
            written = (reduces & inside) | (negated(reduces) & loop.vectorized) if nest.store.combiner is not None else loop.vectorized
            written = written | loop.unrolled
            found[loop.var] = written
            copies = choose(runs_in_vectors(nest, level), copies, copies * extent)
            whole = whole & (negated(real) | written)
    return found
