"""Fetches packed constants before they are needed.

Networks do not keep their weights in the caches. A tile reads a panel of them step by step, over and over for other outputs, and then the next panel:

    for j:  for i in 7:  for k in 512:  c[i, ...] += a[i, k] * b[j, k, 0:16]         8192 numbers of b are read 7 times before the next 8192

While a panel is in use, each of its 7 * 512 steps asks for a part of the next one, so that memory delivers it over that whole time. Otherwise the first of the
seven passes waits for memory, because processors fetch ahead by themselves only a little, and only up to the end of a page.
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
    """What the loops `steps` read of a constant, contiguous, `size` bytes. The loops `passes` repeat it; after them comes the panel behind it in memory.

    first: the place of its first element.
    """

    access: Access
    first: Linear
    size: int
    passes: tuple[For, ...]
    steps: tuple[For, ...]


def panels(store: Store, loops: Sequence[For], tile: Sequence[For]) -> list[Panel]:
    """The panels that a reducing statement reads. loops: around a step, outermost first; tile: those inside a step."""
    reads = [node for node in walk(store.value) if isinstance(node, Access) and node.buffer.scope == "constant" and node.buffer.pack]
    return [panel for read in dict.fromkeys(reads) if (panel := _panel(read, loops, tile)) is not None]


def _panel(read: Access, loops: Sequence[For], tile: Sequence[For]) -> Panel | None:
    place, item = flat_index(read.buffer, read.index), BYTES[read.buffer.dtype]
    if int(read.buffer.size) * item < LEAST_BYTES or not all(isinstance(atom, Var) for atom, _ in place.terms):
        return None

    def step(loop: For) -> int:
        return int(place.coefficient(loop.var))

    steps = tuple(takewhile(step, reversed(loops)))[::-1]
    around = loops[: len(loops) - len(steps)]
    passes = tuple(takewhile(lambda loop: not step(loop), reversed(around)))[::-1]
    beyond = around[: len(around) - len(passes)]
    read_by = [*steps, *(loop for loop in tile if step(loop))]
    count = int(product(loop.var.extent for loop in read_by))
    if not (steps and passes and beyond) or step(beyond[-1]) != count or 1 + sum(step(loop) * (int(loop.var.extent) - 1) for loop in read_by) != count:
        return None
    inside = {loop.var for loop in read_by}
    return Panel(read, place.kept(lambda atom: atom not in inside) + place.const, count * item, passes, steps)


def fetch(panel: Panel, accumulators: int, emit: Emitter) -> str:
    """The C statement of one step that fetches its part of the next panel; '' if it does not pay. accumulators: of the tile."""
    steps, lines = int(product(loop.var.extent for loop in (*panel.passes, *panel.steps))), -(-panel.size // LINE)
    work = accumulators * steps // lines
    if accumulators < LEAST_ACCUMULATORS or work < LEAST_WORK or steps < lines:
        return ""
    done = Linear()
    for loop in (*panel.passes, *panel.steps):
        done = done * int(loop.var.extent) + Linear(((loop.var, 1),))
    place = f"(const char *)&{panel.access.buffer.name}[{emit.writer.index(panel.first)}]"
    shift = (steps // lines).bit_length() - 1  # a division by another number would take longer than what it saves
    line = f"(({emit.writer.index(done)}) >> {shift})" if shift else f"({emit.writer.index(done)})"
    return f"__builtin_prefetch({place} + {line} * {LINE} + {panel.size}, 0, {3 if work >= FIRST_CACHE else 2});"
