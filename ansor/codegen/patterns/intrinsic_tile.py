"""A reducing nest as a register tile whose innermost part is an instruction.

    for k_0:  for i in 2:  for j in 16:  for k_1 in 4:  c[i, j] += int32(a[i, k_0, k_1]) * int32(b[k_0, j, k_1])

    acc0_0 = {}, acc0_1 = {};
    for k_0:  acc0_0 = dot(acc0_0, a[0, k_0, 0:4] in every lane, b[k_0, 0:16, 0:4]); ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.codegen.emitter import Emitter
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.patterns.plain_loops import PlainLoops
from ansor.codegen.patterns.tiles import Tile, TileAccumulators, tile_code, tile_of
from ansor.codegen.tensorized import InnerProduct, TileText, inner_product, tile_text
from ansor.codegen.tree import Code
from ansor.ir.linear import Var
from ansor.ir.loops import For


@dataclass(frozen=True, eq=False)
class IntrinsicTile:
    """A tile whose steps are an instruction."""

    tile: Tile
    inner: InnerProduct

    @property
    def around(self) -> tuple[For, ...]:
        return self.tile.around

    def __str__(self) -> str:
        return self.tile.text(f"a tile of {self.inner.intrinsic.name}")

    def code(self, emit: Emitter) -> list[Code]:
        return tile_code(self.tile, Instruction(self.inner), emit)


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction for every accumulator."""

    inner: InnerProduct

    @property
    def group(self) -> tuple[Var, ...]:
        return (self.inner.group,)

    def lanes(self, widest: int) -> int:
        return min(widest, max(self.inner.intrinsic.lanes))

    def ahead(self, held: TileAccumulators, emit: Emitter) -> TileText | None:
        return tile_text(self.inner, held.places, held.names, emit.writer, held.store, held.before)

    def each(self, held: TileAccumulators, emit: Emitter) -> list[Code]:
        return []


def _match(nest: Nest) -> IntrinsicTile | PlainLoops | None:
    inner = inner_product(nest.loops, nest.store)
    if inner is None or inner.intrinsic.block is not None:
        return None
    tile = tile_of(nest.loops[:-1], nest.store, nest.loops[-1:], nest.enclosing)
    return IntrinsicTile(tile, replace(inner, sums=nest.sums)) if isinstance(tile, Tile) else tile


INTRINSIC_TILE = Pattern("intrinsic tile", _match)
