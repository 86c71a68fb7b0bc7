"""Prefetches packed constants.

Weights of a network are rarely in a cache when a layer starts. A tile reads one panel of them in several passes, then the next panel:

    for j:  for i in 7:  for k in 512:  c[i, ...] += a[i, k] * b[j, k, 0:16]         8192 numbers of b, a panel, are read in 7 passes

Without prefetching, the first pass over each panel waits for memory, because hardware prefetchers stop at the end of a page. So the passes over one panel
prefetch the next one, evenly. Each step also prefetches a fixed distance ahead, for constants that are read only once. It does so even where a panel is
prefetched: that costs nothing there, and tiles bound by memory gain (the second layer of DCGAN takes 3 % less time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from ansor.codegen.emitter import Emitter
from ansor.codegen.values import flat_index
from ansor.ir.columns import product
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Store
from ansor.te.dtypes import BYTES
from ansor.te.fold import walk

LINE = 64
AHEAD = 8192
"""The fixed distance in bytes: two pages, which is about what a core reads while memory answers once."""
MOST_LINES = 4
"""A step that reads more cache lines than this prefetches nothing at a fixed distance."""
LEAST_BYTES = 1 << 16
"""Smaller constants stay in a cache."""
MOST_BYTES = 1 << 19
"""Of a panel: two larger ones do not fit into the second cache."""
LEAST_ACCUMULATORS = 6
"""Below this, a step has too little arithmetic to hide the cost of a prefetch."""
LEAST_WORK = 12
"""Vector multiplications per cache line of constants. Below this the tile is bound by memory, and prefetching panels cannot help."""
FIRST_CACHE = 32
"""From this much work per line on, panels are prefetched into the first cache, otherwise into the second. The first cache tracks few outstanding misses: at 16
vectors a line, prefetching into it made products 10 % slower, into the second 5 % faster."""
PARTS = 1 << 8
"""A step's share of the next panel is rounded up to this part of a line."""


@dataclass(frozen=True, eq=False)
class Constants:
    """A read of packed constants in a tile. place: its index in the array; tile: the variables of the tile that it depends on."""

    access: Access
    place: Linear
    tile: tuple[Var, ...]

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return BYTES[self.access.buffer.dtype]

    @property
    def name(self) -> str:
        """The array's name in C."""
        return self.access.buffer.name


@dataclass(frozen=True, eq=False)
class Panel:
    """A contiguous range of `size` bytes that the loops `steps` read and the loops `passes` read again. The next panel follows it in memory.

    first: the index of its first element.
    """

    first: Linear
    size: int
    passes: tuple[For, ...]
    steps: tuple[For, ...]


def constants(store: Store, tile: Sequence[Var]) -> list[Constants]:
    """The reads of large packed constants in a reducing statement. tile: the variables of the loops inside a step."""
    reads = [node for node in walk(store.value) if isinstance(node, Access) and node.buffer.scope == "constant" and node.buffer.pack]
    found = []
    for read in dict.fromkeys(reads):
        place = flat_index(read.buffer, read.index)
        if int(read.buffer.size) * BYTES[read.buffer.dtype] >= LEAST_BYTES and all(isinstance(atom, Var) for atom, _ in place.terms):
            found.append(Constants(read, place, tuple(var for var in tile if place.coefficient(var))))
    return found


def panel_of(read: Constants, around: Sequence[For], loops: Sequence[For]) -> Panel | None:
    """The panel of a read; None if no loop repeats it, or if another one does not follow it in memory.

    loops: around a step, outermost first, all run by one thread; around: those around them.
    """

    def stride(loop: For) -> int:
        """Elements between two iterations of the loop."""
        return int(read.place.coefficient(loop.var))

    steps = tuple(takewhile(stride, reversed(loops)))[::-1]
    others = loops[: len(loops) - len(steps)]
    passes = tuple(takewhile(lambda loop: not stride(loop), reversed(others)))[::-1]
    outer = (*around, *others[: len(others) - len(passes)])
    inside = (*(loop.var for loop in steps), *read.tile)
    count = _contiguous(read.place, inside)
    if not (steps and passes and outer) or not count or stride(outer[-1]) != count:
        return None
    return Panel(_without(read.place, inside), count * read.item, passes, steps)


def _contiguous(place: Linear, variables: Sequence[Var]) -> int:
    """The number of elements that these variables run over, each once and in order of memory; 0 if there are gaps or repetitions."""
    count = 1
    for stride, extent in sorted((int(place.coefficient(var)), int(var.extent)) for var in variables):
        if stride != count:
            return 0
        count *= extent
    return count


def _without(place: Linear, variables: Sequence[Var]) -> Linear:
    return place.kept(lambda atom: atom not in variables) + place.const


def prefetches(read: Constants, around: Sequence[For], loops: Sequence[For], accumulators: int, emit: Emitter) -> list[str]:
    """The C statements of one step. around, loops: as in `panel_of`; accumulators: vectors of the tile."""
    if accumulators < LEAST_ACCUMULATORS:
        return []
    panel = panel_of(read, around, loops)
    of_panel = [] if panel is None else _of_panel(panel, read.name, accumulators, emit)
    first = emit.writer.index(_without(read.place, read.tile))
    lines, rest = divmod(_contiguous(read.place, read.tile) * read.item, LINE)
    if rest or lines > MOST_LINES:
        return of_panel
    return [*of_panel, *(_prefetch(f"{read.name}[{first}]", str(AHEAD + line * LINE), 2) for line in range(lines))]


def _of_panel(panel: Panel, name: str, accumulators: int, emit: Emitter) -> list[str]:
    """The statement that prefetches one step's part of the next panel, if that pays."""
    steps, lines = int(product(loop.var.extent for loop in (*panel.passes, *panel.steps))), -(-panel.size // LINE)
    work, share = accumulators * steps // lines, -(-lines * PARTS // steps)
    if work < LEAST_WORK or steps < lines or steps * share >= 1 << 31 or panel.size > MOST_BYTES:
        return []
    step = Linear()
    for loop in (*panel.passes, *panel.steps):
        step = step * int(loop.var.extent) + Linear(((loop.var, 1),))
    # Division by another number than a power of two would take longer than what it saves.
    ahead = f"(({emit.writer.index(step)}) * {share} >> {PARTS.bit_length() - 1}) * {LINE} + {panel.size}"
    return [_prefetch(f"{name}[{emit.writer.index(panel.first)}]", ahead, 3 if work >= FIRST_CACHE else 2)]


def _prefetch(place: str, ahead: str, cache: int) -> str:
    """cache: 3 for the first, 2 for the second. The sum is one of integers: it may point behind the array, of which gcc warns."""
    return f"__builtin_prefetch((const void *)((__UINTPTR_TYPE__)&{place} + {ahead}), 0, {cache});"
