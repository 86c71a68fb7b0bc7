"""Translates regions of tensors to LOADs and STOREs, as few as possible for each region. Each instruction moves rows of elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.vta.configuration import Memory
from ansor.vta.instructions import Load, Padding, Rows, Store

MOST = (1 << 16) - 1
"""The most elements of a row, the most rows, and the largest stride between rows in elements."""

MOST_ZEROS = 15
"""The most zeros before or after the elements of a row, and the most rows of zeros before or after the rows."""


@dataclass(frozen=True)
class Extent:
    """A dimension of a region: its elements, their strides in DRAM and in the memory of the core, zeros before and after them."""

    count: int
    dram: int
    sram: int
    before: int = 0
    after: int = 0

    @property
    def padded(self) -> int:
        """The number of elements, including the zeros."""
        return self.before + self.count + self.after

    @property
    def around(self) -> bool:
        """Whether there are zeros before or after them."""
        return self.before > 0 or self.after > 0


@dataclass(frozen=True)
class _Piece:
    """What one instruction moves."""

    sram: int
    dram: int
    rows: Rows
    padding: Padding


def loads(memory: Memory, sram: int, dram: int, extents: Sequence[Extent]) -> list[Load]:
    """LOADs of a region, outermost dimension first, into consecutive elements of a memory from `sram` on. dram: the first element that is not padding."""
    return [Load(memory, one.sram, one.dram, one.rows, one.padding) for one in _pieces(sram, dram, extents)]


def stores(sram: int, dram: int, extents: Sequence[Extent]) -> list[Store]:
    """STOREs of consecutive elements of OUT, from `sram` on, into a region."""
    return [Store(one.sram, one.dram, one.rows) for one in _pieces(sram, dram, extents)]


def _pieces(sram: int, dram: int, extents: Sequence[Extent]) -> Iterator[_Piece]:
    walked = [one for one in extents if one.padded > 1 or one.before or one.after]
    x, y, left = _sides(_joined(walked))
    if any(one.around for one in left):  # columns of several blocks of channels are one row, together with the zeros around them
        x, y, left = _sides(_joined(walked, zeros=True))
    if any(one.around for one in left) or max(x.before, x.after, y.before, y.after) > MOST_ZEROS:
        raise ScheduleError(f"asked for a VTA program with zeros around more than two dimensions, or more than {MOST_ZEROS} of them: pad on the host")
    if max(x.count, y.count, y.dram) > MOST:
        raise ScheduleError(f"asked for a VTA program that moves rows of {x.count} elements, {y.dram} apart; a field holds up to {MOST}: use smaller tiles")
    padding = Padding(y.before, y.after, x.before, x.after)
    if y.sram != x.padded and y.padded > 1:
        what = "asked for a VTA program that changes the order of dimensions, or leaves gaps between rows"
        raise ScheduleError(f"{what}; LOAD and STORE move dense rows: do this on the host")
    for place in itertools.product(*(range(one.count) for one in left)):
        shift = [sum(at * step for at, step in zip(place, steps, strict=True)) for steps in ([one.sram for one in left], [one.dram for one in left])]
        yield _Piece(sram + shift[0], dram + shift[1], Rows(y.count, x.count, y.dram if y.count > 1 else x.count), padding)


def _sides(extents: list[Extent]) -> tuple[Extent, Extent, list[Extent]]:
    """The dimension along the rows of an instruction, the dimension across its rows, and those that need an instruction for each index."""
    left = list(extents)
    x = left.pop() if left and (left[-1].dram == 1 or left[-1].count == 1) else Extent(1, 1, 1)
    y = left.pop() if left else Extent(1, x.count, x.padded)
    return x, y, left


def _joined(extents: Sequence[Extent], *, zeros: bool = False) -> list[Extent]:
    """The same region with fewer dimensions: those that are contiguous in DRAM and in the memory are joined. zeros: even with zeros around the outer one."""
    found: list[Extent] = []
    for one in reversed(extents):
        inner = found[-1] if found else None
        may = inner is not None and not inner.around and (zeros or not one.around)
        if inner is not None and may and _follows(one, inner) and one.count * inner.count <= MOST:
            found[-1] = replace(inner, count=one.count * inner.count, before=one.before * inner.count, after=one.after * inner.count)
        else:
            found.append(one)
    return found[::-1]


def _follows(outer: Extent, inner: Extent) -> bool:
    return outer.dram == inner.count * inner.dram and outer.sram == inner.count * inner.sram
