"""The region of a tensor in DRAM that a nest touches, in elements of the core's memories, and the strides of its dimensions in the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ansor.errors import ScheduleError
from ansor.ir.columns import Flag, Int, choose, negated
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access
from ansor.ir.simplify import comparison_of, conjuncts
from ansor.te.expr import Const, Expr, Select
from ansor.vta.buffers import Place
from ansor.vta.nests import Nest, Sum, plain, sum_of
from ansor.vta.tensors import TensorLayout


@dataclass(frozen=True)
class Span:
    """A dimension of a region, in elements of a memory: the first element, the number of elements, their stride in DRAM, the zeros before and after."""

    start: int
    count: int
    stride: int
    before: int = 0
    after: int = 0


def region_of(nest: Nest, access: Access, layout: TensorLayout, padded: bool) -> tuple[Span, ...]:
    """The region of an argument that a nest touches. padded: whether it may extend beyond the ends of the argument, where it is padded with zeros."""
    blocks, counts, found = dict(zip(layout.lanes, layout.blocks, strict=True)), nest.counts(), []
    for dimension, linear in enumerate(access.index):
        start, last = ends(nest.index(linear), counts, blocks.get(dimension, 1))
        bound, stride = layout.outer[dimension], prod(layout.outer[dimension + 1 :])
        first, after = (max(start, 0), min(last, bound - 1) + 1) if padded else (start, last + 1)
        found.append(Span(first, max(after - first, 0), stride, first - start, last + 1 - after))
    return tuple(found)


def is_whole(nest: Nest, access: Access, blocks: Mapping[int, int]) -> bool:
    """Whether an access has exactly one element for each iteration of a nest, with none shared, and none in between skipped."""
    counts, sums = nest.counts(), [nest.index(linear) for linear in access.index]
    walked = [var for one in sums for var in one.steps if counts[var] > 1]
    alone = len(walked) == len(set(walked)) and set(walked) == {var for var, count in counts.items() if count > 1}
    return alone and all(_has_no_gaps(one, counts, blocks.get(dimension, 1)) for dimension, one in enumerate(sums))


def ends(index: Sum, counts: Mapping[Var, int], block: int) -> tuple[int, int]:
    """The first and the last element of an index. Raises ScheduleError if it skips elements in between, or repeats some."""
    if not _has_no_gaps(index, counts, block):
        raise ScheduleError("asked for a VTA program that skips elements of a tensor, or moves some twice: move whole regions")
    return index.start // block, index.start // block + _reach(index, counts, block)


def _steps(index: Sum, counts: Mapping[Var, int], block: int) -> list[tuple[int, int]]:
    """The step of an index in each loop, in elements of a memory, and the number of iterations."""
    return [(1 if block > 1 and step == 1 else step // block, counts[var]) for var, step in index.steps.items()]


def _reach(index: Sum, counts: Mapping[Var, int], block: int) -> int:
    return sum(step * (count - 1) for step, count in _steps(index, counts, block))


def _has_no_gaps(index: Sum, counts: Mapping[Var, int], block: int) -> bool:
    return prod(count for _, count in _steps(index, counts, block)) == _reach(index, counts, block) + 1


def sizes_of(nest: Nest, index: Sequence[Linear], place: Place) -> list[int]:
    """The number of elements along each dimension of a buffer that a nest writes."""
    counts = nest.counts()
    return [ends(nest.index(linear), counts, place.blocks.get(dimension, 1))[1] + 1 for dimension, linear in enumerate(index)]


def strides_in(nest: Nest, outside: Access, inside: Access, place: Place) -> list[int]:
    """For each dimension of an argument, the stride of its elements in the memory of the core; 0 if there is only one."""
    inner = [set(nest.index(linear).steps) for linear in inside.index]
    found = []
    for linear in outside.index:
        walked = set(nest.index(linear).steps)
        found.append(min((stride for stride, one in zip(place.held.strides, inner, strict=True) if one & walked), default=0))
    return found


def runs_of(region: Sequence[Int], shape: Sequence[Int]) -> tuple[Int, Int]:
    """For the regions of many programs: the length of contiguous runs in DRAM, and how many runs an instruction moves. region, shape: the elements of each
    dimension in the region, and in the whole tensor."""
    together: Int = 1
    second: Int = 1
    whole: Flag = True
    open_: Flag = True
    for extent, size in zip(reversed(region), reversed(shape), strict=True):
        second = choose(negated(whole) & open_, extent, second)
        open_ = open_ & (whole | (extent == 1))
        together = choose(whole, together * extent, together)
        whole = whole & (extent == size)
    return together, second


def borders(start: int, spans: Sequence[Span], strides: Sequence[int]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The padding of a region in a memory from `start` on, as disjoint boxes: for each, the first element, and extents with strides."""
    for place, span in enumerate(spans):
        for first, count in ((0, span.before), (span.before + span.count, span.after)):
            inner = [(one.before, one.count) for one in spans[:place]]
            sides = [*inner, (first, count), *((0, one.before + one.count + one.after) for one in spans[place + 1 :])]
            if all(extent for _, extent in sides):
                moved = sum(begin * stride for (begin, _), stride in zip(sides, strides, strict=True))
                yield start + moved, [(extent, stride) for (_, extent), stride in zip(sides, strides, strict=True) if extent > 1]


def padding_of(value: Expr) -> int:
    """The number that a copy pads with; 0 if it does not pad. Raises ScheduleError if it pads with anything but a number."""
    if not isinstance(value, Select):
        return 0
    other = plain(value.otherwise)
    if not isinstance(other, Const):
        raise ScheduleError(f"asked for a VTA program that pads with {other}: pad with a number")
    return int(other.value)


def check_padding(value: Select, access: Access, nest: Nest) -> None:
    """Raises ScheduleError unless a choice takes the element inside the tensor, and the padding outside."""
    sides = [nest.index(linear) for linear in access.index]
    allowed = [(one.start, one.steps, 1) for one in sides]
    allowed += [(int(extent) - 1 - one.start, one.steps, -1) for one, extent in zip(sides, access.buffer.shape, strict=True)]
    for test in conjuncts(value.condition):
        found = _at_least_zero(test, nest)
        if not any((start, steps, sign) == found for start, steps, sign in allowed):
            raise ScheduleError(f"asked for a VTA program that pads {access.buffer.name} where not ({test}): a core pads beyond the ends of a tensor")


def _at_least_zero(test: object, nest: Nest) -> tuple[int, dict[Var, int], int] | None:
    """A comparison as "this sum is at least 0": its start, its steps, and their sign."""
    compared = comparison_of(test)
    if compared is None:
        return None
    op, left, right = compared
    difference = left - right if op in ("gt", "ge") else right - left
    less = 1 if op in ("lt", "gt") else 0
    if any(int(coefficient) < 0 for _, coefficient in difference.terms):
        negated = sum_of(-difference, nest.values, nest.extents)
        return -negated.start - less, negated.steps, -1
    whole = sum_of(difference, nest.values, nest.extents)
    return whole.start - less, whole.steps, 1
