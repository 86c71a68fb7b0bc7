"""Which loops around a statement are vectorised, unrolled and parallel, and their positions."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.cost_model.nest import Nest
from ansor.ir.columns import Flag, Int, Row, anywhere, choose, negated, row
from ansor.ir.linear import variables
from ansor.ir.loops import For, Loops, Store, stores

FLAGS = {"vec": "vectorized", "unroll": "unrolled", "parallel": "parallel"}
"""Prefix of the columns -> attribute of a loop."""

Stages = Mapping[str, Store]


def stages_of(loops: Loops) -> Stages:
    """The store of each stage."""
    return {store.stage: store for _, store in stores(loops.body)}


def annotation_columns(nest: Nest, prefix: str, stages: Stages) -> dict[str, Row]:
    """The columns of one annotation: number, product, innermost extent, and position."""
    flagged: list[tuple[int, Flag]] = [(level, getattr(loop, FLAGS[prefix])) for level, loop in enumerate(nest.loops)]
    chosen = [(level, nest.real[level] & flag) for level, flag in flagged if anywhere(flag)]
    number: Int = 0
    product: Row = 1.0
    length: Row = 0.0
    for level, here in chosen:
        number = number + choose(here, 1, 0)
        product = product * choose(here, nest.extents[level], 1.0)
        length = choose(here, nest.extents[level], length)
    product = choose(number > 0, product, 0.0)
    return {f"{prefix}_num": row(number), f"{prefix}_prod": product, f"{prefix}_len": length} | _position_columns(nest, prefix, chosen, stages)


def _position_columns(nest: Nest, prefix: str, chosen: list[tuple[int, Flag]], stages: Stages) -> dict[str, Row]:
    found: dict[str, Flag] = {}
    for level, mask in chosen:
        for name, here in _positions(nest, level, stages).items():
            found[name] = found.get(name, False) | (mask & here)
    kinds: Int = 0
    for mask in found.values():
        kinds = kinds + choose(mask, 1, 0)
    mixed = found.pop("mixed", False) | (kinds > 1)
    columns = {f"{prefix}_type_{name}": row(mask & negated(mixed)) for name, mask in found.items()}
    return columns | {f"{prefix}_type_mixed": row(mixed), f"{prefix}_type_none": row(kinds == 0)}


def _positions(nest: Nest, level: int, stages: Stages) -> dict[str, Flag]:
    """Position -> the programs where the loop has it."""
    loop = nest.loops[level]
    if loop.kind == "reduce":
        return _reduce_positions(nest, level)
    return {spatial_position(loop, stages[loop.stage]): nest.real[level]}


def spatial_position(loop: For, store: Store) -> str:
    """Which stored dimension of its own stage a spatial loop walks: the last, the first, one in between, or several."""
    dimensions = [d for d, index in enumerate(store.index) if loop.var in set(variables(index))]
    if len(dimensions) != 1:
        return "mixed"
    if dimensions[0] == len(store.index) - 1:
        return "inner_spatial"
    return "outer_spatial" if dimensions[0] == 0 else "middle_spatial"


def _reduce_positions(nest: Nest, level: int) -> dict[str, Flag]:
    """The position among the real reduction loops of the same stage; a single one is the innermost."""
    loop = nest.loops[level]
    outside: Flag = False
    inside: Flag = False
    for other, candidate in enumerate(nest.loops):
        if candidate.kind == "reduce" and candidate.stage == loop.stage and other != level:
            if other < level:
                outside = outside | nest.real[other]
            else:
                inside = inside | nest.real[other]
    return {"inner_reduce": negated(inside), "middle_reduce": inside & outside, "outer_reduce": inside & negated(outside)}
