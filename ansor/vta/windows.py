"""Checks copies with padding for many programs at once. A LOAD pads existing rows and columns, so it has to move at least one of each.

Applies the rules that `ansor.vta.transfers` has for one region to columns of programs: a tile at an end of a tensor overlaps the tensor, the padding of the
last two dimensions that are traversed fits into the fields, and no other dimension is padded.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansor.ir.columns import Flag, Int, larger, product, smaller
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Guard, Store
from ansor.ir.simplify import conjuncts, index_of
from ansor.te.expr import Binary, Select
from ansor.vta.regions import runs_of
from ansor.vta.transfers import MOST_ZEROS


def padded_in(value: Select, access: Access) -> list[int]:
    """The dimensions of an argument that a copy pads, outermost first."""
    tested = [index_of(side) for test in conjuncts(value.condition) if isinstance(test, Binary) for side in (test.left, test.right)]
    walked = [{atom for one in tested if one is not None for atom in _moving(one)} & set(_moving(index)) for index in access.index]
    return [dimension for dimension, atoms in enumerate(walked) if atoms]


def movable(store: Store, access: Access, padded: Sequence[int], path: Sequence[For], region: Sequence[Int], shape: Sequence[Int]) -> Flag:
    """Whether LOADs can move all regions of a copy. path: the loops around it; region, shape: the elements of each dimension in a region, and in the whole
    tensor."""
    if not padded:
        return True
    outside = {loop.var for loop in path}
    zeros: list[Int] = []
    result: Flag = len(padded) <= 2  # rows and columns
    for dimension in padded:
        first, last, start = _reach(access.index[dimension], outside, store.guards)
        size = access.buffer.shape[dimension]
        result = result & (first >= 0) & (start < size)
        zeros.append(larger(-access.index[dimension].const, last - size + 1))
    return result & _fits(padded, zeros, region, shape)


def _fits(padded: Sequence[int], zeros: Sequence[Int], region: Sequence[Int], shape: Sequence[Int]) -> Flag:
    """Whether zeros fit into the fields, and dimensions inside the innermost padded one form one row with it or, if no other is padded, a row of their own."""
    inner, rest, whole = padded[-1], region[padded[-1] + 1 :], shape[padded[-1] + 1 :]
    inside: Int = product(rest)
    joined: Flag = inside * larger(zeros[-1], 0) <= MOST_ZEROS
    for extent, size in zip(rest, whole, strict=True):
        joined = joined & (extent == size)
    if len(padded) == 1:
        return (zeros[0] <= MOST_ZEROS) & (joined | (inside == runs_of(rest, whole)[0]) | (inside == 1))
    return joined & (product(region[padded[-2] + 1 : inner]) == 1) & (zeros[0] <= MOST_ZEROS)


def _moving(index: Linear) -> list[Var]:
    """The loops that an index depends on. A coefficient that is a column may be 0 in some programs."""
    return [atom for atom, coefficient in index.terms if isinstance(atom, Var) and not (isinstance(coefficient, int) and coefficient == 0)]


def _reach(index: Linear, outside: set[Var], guards: Sequence[Guard]) -> tuple[Int, Int, Int]:
    """For an index: its last value in the first region, its last value of all, and the start of the last region."""
    first = last = start = index.const
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            far = coefficient * (atom.extent - 1)
            last = last + far
            first, start = (first, start + far) if atom in outside else (first + far, start)
    for guard in guards:
        if guard.high is not None and {id(atom) for atom in _moving(guard.value)} == {id(atom) for atom in _moving(index)}:
            most = guard.high - 1 + index.const - guard.value.const
            first, last, start = smaller(first, most), smaller(last, most), smaller(start, most)
    return first, last, start
