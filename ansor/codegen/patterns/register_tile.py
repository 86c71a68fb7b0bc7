"""A reducing nest as a register tile: accumulators in local vectors, fully unrolled, held across the reduction loops.

    for k:  for i in 2:  for j in 16:  c[i, j] += a[i, k] * b[k, j]

    f32x8 acc0_0 = {}, acc0_1 = {}, acc0_2 = {}, acc0_3 = {};
    for k:  in0_0 = a[0, k]; in0_1 = b[k, 0:8];  acc0_0 = acc0_0 + in0_0 * in0_1; ...
    c[0, 0:8] = acc0_0; ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.codegen.by_element import elements_together
from ansor.codegen.emitter import Emitter
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.patterns.plain_loops import PlainLoops
from ansor.codegen.patterns.tiles import Tile, TileAccumulators, tile_code, tile_of
from ansor.codegen.tensorized import TileText
from ansor.codegen.tree import Code
from ansor.ir.linear import Var
from ansor.ir.loops import For


@dataclass(frozen=True, eq=False)
class RegisterTile:
    """A tile whose steps are ordinary arithmetic."""

    tile: Tile

    @property
    def around(self) -> tuple[For, ...]:
        return self.tile.around

    def __str__(self) -> str:
        return self.tile.text("a register tile")

    def code(self, emit: Emitter) -> list[Code]:
        return tile_code(self.tile, Arithmetic(), emit)


class Arithmetic:
    """One step of the reduction in every accumulator; shared operands are loaded once."""

    group: tuple[Var, ...] = ()

    def lanes(self, widest: int) -> int:
        return widest

    def ahead(self, held: TileAccumulators, emit: Emitter) -> TileText | None:
        return None

    def each(self, held: TileAccumulators, emit: Emitter) -> list[Code]:
        code: list[Code] = []
        shared, elements = emit.shared(held.number, code), elements_together(held.store, held.places, emit, held.number, code)

        def load(text: str, kind: str) -> str:
            return elements.get(text) or shared(text, kind)

        for name, (fixed, lane) in zip(held.names, held.places, strict=True):
            writer = replace(emit.writer.at(fixed, lane), load=load)
            value = emit.value(writer, held.store.value, code)
            code.append(f"{name} = {emit.combined(held.store, lane.count if lane is not None else 1, name, value)};")
        return code


def _match(nest: Nest) -> RegisterTile | PlainLoops | None:
    if nest.store.combiner is None:
        return None
    tile = tile_of(nest.loops, nest.store, enclosing=nest.enclosing)
    return RegisterTile(tile) if isinstance(tile, Tile) else tile


REGISTER_TILE = Pattern("register tile", _match)
