"""Prefetches what is read beside the results of a tile.

A residual that is added to a product was computed some layers ago. After each tile, a few of its rows are read, one or two cache lines of each:

    for i:  for j:
      for k in 512:  t[0:6, 0:16] += a[i, 0:6, k] * b[j, k, 0:16]       the tile
      c[i, 0:6, j, 0:16] = t[0:6, 0:16] + z[i, 0:6, j, 0:16]            waits for six lines of z

Hardware prefetchers do not see the next rows coming, so a tile starts with prefetches of these lines, which arrive while it computes. On a Zen 3, a product of
784 x 128 x 512 with a residual from the third cache takes a fifth less time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.codegen.emitter import Emitter
from ansor.codegen.values import flat_index
from ansor.ir.linear import Linear, Var, atom_variables, is_opaque
from ansor.ir.loops import Access, Buffer, For, Store, stores
from ansor.te.dtypes import BYTES
from ansor.te.fold import walk

LINE = 64
MOST_LINES = 32
"""Of a tile. Each is a request to memory, of which a core has few at a time."""
LEAST_WORK = 16
"""Vector multiplications of a tile per line. Below this, there is no time in which the lines could arrive."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A tensor that is read beside the results of a tile. first: the place of the first element; lines: bytes from there, one number for each cache line if
    that element is at the start of one. A shorter tile at an edge has those of a whole one.
    """

    buffer: Buffer
    first: Linear
    lines: tuple[int, ...]


def prefetches_beside(store: Store, parent: For, tile: Sequence[Var], work: int, emit: Emitter) -> list[str]:
    """The C statements at the start of a tile. store: its statement; parent: the loop around its nest; tile: the variables of its unrolled loops; work: its
    vector multiplications. None on bare-metal targets, whose caches are small or absent.
    """
    if not emit.machine.dialect.hosted:
        return []
    found = list(dict.fromkeys(line for one in reads_beside(store, parent, tile) for line in _statements(one, emit)))
    return found if len(found) <= MOST_LINES and work >= LEAST_WORK * len(found) else []


def reads_beside(store: Store, parent: For, tile: Sequence[Var]) -> list[Beside]:
    """What the other statements in a loop read beside the results of a reduction, see `prefetches_beside`."""
    if store.buffer not in parent.locals:
        return []
    found = []
    for path, other in stores(parent.body):
        reads = [node for node in walk(other.value) if isinstance(node, Access)]
        results = next((read for read in reads if read.buffer is store.buffer), None)
        if results is not None and other.combiner is None:
            inside = [loop.var for loop in path]
            places = ((read, _place(read, results, store, inside)) for read in reads if _is_read_once(read, other))
            found += [_beside(read, place, tile) for read, place in places if place is not None]
    return [one for one in found if one.lines and _variables(one.first).isdisjoint(tile)]  # a fused loop of the tile stays in quotients


def _is_read_once(read: Access, store: Store) -> bool:
    """Whether each element of a tensor is read once, as far as the variables show: a bias, which every row reads, stays in a cache."""
    written, place = flat_index(store.buffer, store.index), flat_index(read.buffer, read.index)
    return read.buffer.scope in ("input", "workspace") and _variables(written) <= _variables(place)


def _beside(read: Access, place: Linear, tile: Sequence[Var]) -> Beside:
    first = place.kept(lambda atom: atom not in tile) + place.const
    return Beside(read.buffer, first, _lines(place, tile, BYTES[read.buffer.dtype]))


def _place(read: Access, results: Access, store: Store, inside: Sequence[Var]) -> Linear | None:
    """The place of the element that is read beside the result that `store` computes. None unless it moves evenly along each dimension of the results.

    inside: the variables of the loops around both reads. A dimension of the results is a sum of some of them, and the place a multiple of that sum.
    """
    place = flat_index(read.buffer, read.index)
    if any(is_opaque(atom) for atom, _ in place.terms):
        return None
    rest = place
    for dimension, stored in zip(results.index, store.index, strict=True):
        moving = [(atom, int(factor)) for atom, factor in dimension.terms if atom in inside]
        if not moving:
            continue
        multiple, left = divmod(int(place.coefficient(moving[0][0])), moving[0][1])
        if not multiple or left:
            return None
        rest = rest - (dimension - stored) * multiple
    return rest if _variables(rest).isdisjoint(inside) else None


def _variables(linear: Linear) -> set[Var]:
    """The variables that it depends on."""
    return {var for atom, factor in linear.terms if int(factor) for var in atom_variables(atom)}


def _lines(place: Linear, tile: Sequence[Var], item: int) -> tuple[int, ...]:
    """Bytes from the first element, one number for each cache line that the tile reads; none if they are too many."""
    found = {0}
    for var in tile:
        stride = int(place.coefficient(var)) * item
        found = {one + stride * k for one in found for k in range(int(var.extent))}
    lines = sorted({one // LINE for one in found})
    return tuple(line * LINE for line in lines) if len(lines) <= MOST_LINES else ()


def _statements(read: Beside, emit: Emitter) -> Iterator[str]:
    """The sum is one of integers: at the ends of a tensor it may point behind it, of which gcc warns."""
    first = f"(__UINTPTR_TYPE__)({emit.writer.index(read.first)}) * {BYTES[read.buffer.dtype]}"
    for line in read.lines:
        yield f"__builtin_prefetch((const void *)((__UINTPTR_TYPE__){read.buffer.name} + {first} + {line}), 0, 3);"
