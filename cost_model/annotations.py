"""Which loops around a statement are vectorised, unrolled and parallel, and where they stand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.nest import Nest, Row, anywhere
from ansor.ir.linear import variables
from ansor.ir.loops import Flag, For, Loops, Store, stores

FLAGS = {"vec": "vectorized", "unroll": "unrolled", "parallel": "parallel"}
"""Prefix of the columns -> attribute of a loop."""

Stages = Mapping[str, Store]


def stages_of(loops: Loops) -> Stages:
    """The store of each stage."""
    return {store.stage: store for _, store in stores(loops.body)}


def annotation_columns(nest: Nest, prefix: str, stages: Stages) -> dict[str, Row]:
    """The columns of one annotation: number, product, innermost extent, and the one that tells the position."""
    flagged = [(level, getattr(loop, FLAGS[prefix])) for level, loop in enumerate(nest.loops)]
    chosen = [(level, _where(nest, level, flag)) for level, flag in flagged if anywhere(flag)]
    chosen = [(level, mask) for level, mask in chosen if mask.any()]
    if not chosen:
        return {f"{prefix}_type_none": 1.0}
    number, product, length = np.zeros(nest.count), np.ones(nest.count), np.zeros(nest.count)
    for level, mask in chosen:
        number += mask
        np.multiply(product, nest.extents[level], out=product, where=mask)
        np.copyto(length, nest.extents[level], where=mask)
    product[number == 0] = 0.0
    return {f"{prefix}_num": number, f"{prefix}_prod": product, f"{prefix}_len": length} | _position_columns(nest, prefix, chosen, stages)


def _where(nest: Nest, level: int, flag: Flag) -> NDArray[np.bool_]:
    here: NDArray[np.bool_] = nest.real[level] & flag
    return here


def _position_columns(nest: Nest, prefix: str, chosen: list[tuple[int, NDArray[np.bool_]]], stages: Stages) -> dict[str, Row]:
    found: dict[str, NDArray[np.bool_]] = {}
    for level, mask in chosen:
        for name, here in _positions(nest, level, stages).items():
            found[name] = found.get(name, np.zeros(nest.count, dtype=np.bool_)) | (mask & here)
    kinds = np.zeros(nest.count)
    for mask in found.values():
        kinds += mask
    mixed = found.pop("mixed", np.zeros(nest.count, dtype=np.bool_)) | (kinds > 1)
    columns: dict[str, Row] = {f"{prefix}_type_{name}": (mask & ~mixed).astype(np.float64) for name, mask in found.items()}
    columns[f"{prefix}_type_mixed"] = mixed.astype(np.float64)
    columns[f"{prefix}_type_none"] = (kinds == 0).astype(np.float64)
    return columns


def _positions(nest: Nest, level: int, stages: Stages) -> dict[str, NDArray[np.bool_]]:
    """Position -> where the loop has it."""
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


def _reduce_positions(nest: Nest, level: int) -> dict[str, NDArray[np.bool_]]:
    """Among the real reduction loops of the same stage; a single one is the innermost."""
    loop = nest.loops[level]
    outside, inside = np.zeros(nest.count, dtype=np.bool_), np.zeros(nest.count, dtype=np.bool_)
    for other, candidate in enumerate(nest.loops):
        if candidate.kind == "reduce" and candidate.stage == loop.stage and other != level:
            (outside if other < level else inside)[:] |= nest.real[other]
    return {"inner_reduce": ~inside, "middle_reduce": inside & outside, "outer_reduce": inside & ~outside}
