"""Fetches packed constants before they are needed.

Networks do not keep their weights in the caches. A tile reads a panel of them step by step, over and over for other outputs, and then the next panel:

    for j:  for i in 7:  for k in 512:  c[i, ...] += a[i, k] * b[j, k, 0:16]         8192 numbers of b are read 7 times before the next 8192

While a panel is in use, each of its 7 * 512 steps asks for a part of the next one, so that memory delivers it over that whole time. Otherwise the first of the
seven passes waits for memory, because processors fetch ahead by themselves only a little, and only up to the end of a page. Each step also asks for what is a
fixed distance behind what it reads: that is for constants that are read once.
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
"""The distance in bytes: two pages, which is about what a core reads while memory answers once."""
MOST_LINES = 4
"""Of what one step reads."""
LEAST_BYTES = 1 << 16
"""Of a constant: smaller ones are read in no time."""
LEAST_ACCUMULATORS = 6
"""With fewer, a step has so little to do that asking costs more than it saves."""
LEAST_WORK = 12
"""Vectors that are multiplied for each line of constants. With fewer, memory is what the tile waits for: there is no time to spread its work over."""
FIRST_CACHE = 32
"""With so many, lines are fetched into the first cache, otherwise into the second. The first cache waits for few lines at a time: when it fetched one line for
16 vectors, products took a tenth longer, and into the second cache a twentieth less."""


@dataclass(frozen=True, eq=False)
class Panel:
    """What the loops `steps` read of constants, contiguous, `size` bytes. The loops `passes` repeat it; after them comes the panel behind it in memory.

    first: the place of its first element.
    """

    first: Linear
    size: int
    passes: tuple[For, ...]
    steps: tuple[For, ...]


@dataclass(frozen=True, eq=False)
class Constants:
    """A read of packed constants in a tile. place: its first element, in a step; read_by: the variables inside a step that it follows."""

    access: Access
    place: Linear
    read_by: tuple[Var, ...]

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return BYTES[self.access.buffer.dtype]

    @property
    def name(self) -> str:
        """Of the array."""
        return self.access.buffer.name


def constants(store: Store, tile: Sequence[Var]) -> list[Constants]:
    """What a reducing statement reads of large packed constants. tile: the variables inside a step."""
    reads = [node for node in walk(store.value) if isinstance(node, Access) and node.buffer.scope == "constant" and node.buffer.pack]
    found = []
    for read in dict.fromkeys(reads):
        place = flat_index(read.buffer, read.index)
        if int(read.buffer.size) * BYTES[read.buffer.dtype] >= LEAST_BYTES and all(isinstance(atom, Var) for atom, _ in place.terms):
            found.append(Constants(read, place, tuple(var for var in tile if place.coefficient(var))))
    return found


def panel_of(read: Constants, loops: Sequence[For]) -> Panel | None:
    """The panel that is read; None if no loop repeats it, or what follows is not behind it. loops: around a step, outermost first."""

    def apart(loop: For) -> int:
        """Elements between the numbers of neighbouring iterations."""
        return int(read.place.coefficient(loop.var))

    steps = tuple(takewhile(apart, reversed(loops)))[::-1]
    around = loops[: len(loops) - len(steps)]
    passes = tuple(takewhile(lambda loop: not apart(loop), reversed(around)))[::-1]
    beyond = around[: len(around) - len(passes)]
    inside = (*(loop.var for loop in steps), *read.read_by)
    count = _contiguous(read.place, inside)
    if not (steps and passes and beyond) or not count or apart(beyond[-1]) != count:
        return None
    return Panel(_without(read.place, inside), count * read.item, passes, steps)


def _contiguous(place: Linear, variables: Sequence[Var]) -> int:
    """The number of elements that these variables run over, 0 if there are gaps between them."""
    count, last = int(product(var.extent for var in variables)), sum(int(place.coefficient(var)) * (int(var.extent) - 1) for var in variables)
    return count if last == count - 1 else 0


def _without(place: Linear, variables: Sequence[Var]) -> Linear:
    return place.kept(lambda atom: atom not in variables) + place.const


def fetches(read: Constants, loops: Sequence[For], accumulators: int, emit: Emitter) -> list[str]:
    """The C statements of one step. loops: around it, outermost first; accumulators: of the tile."""
    if accumulators < LEAST_ACCUMULATORS:
        return []
    count, start = _contiguous(read.place, read.read_by), emit.writer.index(_without(read.place, read.read_by))
    lines, rest = divmod(count * read.item, LINE)
    found = [_fetch(f"{read.name}[{start}]", str(AHEAD + line * LINE), 2) for line in range(lines)] if lines <= MOST_LINES and not rest else []
    panel = panel_of(read, loops)
    return found if panel is None else [*_of_panel(panel, read.name, accumulators, emit), *found]


def _of_panel(panel: Panel, name: str, accumulators: int, emit: Emitter) -> list[str]:
    """The statement for a part of the next panel, if that pays."""
    steps, lines = int(product(loop.var.extent for loop in (*panel.passes, *panel.steps))), -(-panel.size // LINE)
    work = accumulators * steps // lines
    if work < LEAST_WORK or steps < lines:
        return []
    done = Linear()
    for loop in (*panel.passes, *panel.steps):
        done = done * int(loop.var.extent) + Linear(((loop.var, 1),))
    shift = (steps // lines).bit_length() - 1  # a division by another number would take longer than what it saves
    line = f"(({emit.writer.index(done)}) >> {shift})" if shift else f"({emit.writer.index(done)})"
    return [_fetch(f"{name}[{emit.writer.index(panel.first)}]", f"{line} * {LINE} + {panel.size}", 3 if work >= FIRST_CACHE else 2)]


def _fetch(place: str, ahead: str, cache: int) -> str:
    """cache: 3 for the first, 2 for the second."""
    return f"__builtin_prefetch((const char *)&{place} + {ahead}, 0, {cache});"
