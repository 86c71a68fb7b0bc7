"""Finds the dimensions along which buffers are divided into elements, and their order, from the products, and propagates them through copies.

    acc[n, co, y, x] += inp[n, ci, y + ky, x + kx] * wgt[co, ci, ky, kx]      n: batch, co and ci: block
    acc[n, co, y, x] = max(acc[n, co, y, x] + bias[co], 0)                    so bias is divided along co, and so is the output

If nothing is multiplied, channels are the second dimension of the output (the only one of a vector), and rows are the first. A tensor without rows, such as a
bias, is the same for all rows of an element: DRAM has a copy for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.ir.linear import Var, variables
from ansor.ir.loops import Access, Buffer, Loops, Store, stores
from ansor.te.expr import Binary
from ansor.vta.buffers import MEMORIES, scoped
from ansor.vta.configuration import Configuration
from ansor.vta.nests import ARGUMENTS, Blocks, accesses, plain


@dataclass(frozen=True, eq=False)
class Lanes:
    """blocks: the blocks of every buffer; orders: the order of dimensions, outermost first, of the buffers in memories of the core."""

    blocks: Mapping[Buffer, Blocks]
    orders: Mapping[Buffer, tuple[int, ...]]


def lanes_of(loops: Loops, configuration: Configuration) -> Lanes:
    """The lanes of all buffers. Raises ScheduleError if the program does not determine those of a buffer."""
    if configuration.batch:
        lanes_of(loops, replace(configuration, batch=0))  # a buffer with rows needs channels as well
    found: dict[Buffer, dict[int, int]] = {}
    body = [store for _, store in stores(loops.body)]
    for store in body:
        operands = product_of(store)
        if operands is not None:
            _of_product(store, *operands, configuration, found)
    if not found:
        for store in body:
            if store.buffer.scope == "output":
                found[store.buffer] = _of_result(len(store.index), configuration)
    while any([_carried(store, found) for store in body if product_of(store) is None]):
        pass
    for buffer in (*scoped(loops), *loops.arguments):
        if buffer not in found:
            what = f"asked for a VTA program that reads {buffer.name}, which has no dimension for the channels of a result; a core reads blocks of channels"
            cure = "pass it in the shape of the result, or a number for each channel, or write a number into the declaration"
            raise ScheduleError(f"{what}, along dimension 1 if nothing is multiplied: {cure}")
    for buffer in scoped(loops):
        if buffer.scope == "wgt" and len(found[buffer]) < 2:
            what = f"asked for a VTA program that keeps {buffer.name} in wgt, whose elements are squares of input and output channels"
            raise ScheduleError(f"{what}; only one of its dimensions has channels")
    orders: dict[Buffer, tuple[int, ...]] = {}
    for store in body:
        _note_orders(store, orders)
    return Lanes(found, {buffer: orders.get(buffer, tuple(range(len(buffer.shape)))) for buffer in scoped(loops)})


def _of_result(rank: int, configuration: Configuration) -> dict[int, int]:
    """The lanes if nothing is multiplied: the first dimension is rows, the second one channels; a vector has channels only."""
    rows = {0: 1 << configuration.batch} if configuration.batch and rank > 1 else {}
    return {**rows, min(1, rank - 1): 1 << configuration.block}


def product_of(store: Store) -> tuple[Access, Access] | None:
    """The factors that a store multiplies and adds up in the core: one from INP, one from WGT."""
    value = plain(store.value)
    if store.combiner != "sum" or store.buffer.scope != "acc" or not isinstance(value, Binary) or value.op != "mul":
        return None
    sides = {side.buffer.scope: side for side in map(plain, (value.left, value.right)) if isinstance(side, Access)}
    return (sides["inp"], sides["wgt"]) if {"inp", "wgt"} <= set(sides) else None


def _of_product(store: Store, data: Access, weights: Access, configuration: Configuration, found: dict[Buffer, dict[int, int]]) -> None:
    used = {name: [set(variables(index)) for index in indices] for name, indices in (("acc", store.index), ("inp", data.index), ("wgt", weights.index))}
    every = {name: set().union(*dimensions) for name, dimensions in used.items()}
    block, batch = 1 << configuration.block, 1 << configuration.batch
    out = _dimension(used["acc"], every["wgt"] - every["inp"], "output channels", weights)
    channels = _dimension(used["inp"], every["wgt"] - every["acc"], "input channels", weights)
    rows = [place for place, one in enumerate(used["acc"]) if place != out and not one & every["wgt"]]
    found[store.buffer] = {out: block}
    found[data.buffer] = {channels: block}
    found[weights.buffer] = {_dimension(used["wgt"], used["acc"][out], "output channels", weights): block}
    found[weights.buffer] |= {_dimension(used["wgt"], used["inp"][channels], "input channels", weights): block}
    if batch > 1 and rows:  # without any, all rows of an element are the same
        found[store.buffer] |= {rows[0]: batch}
        found[data.buffer] |= {_dimension(used["inp"], used["acc"][rows[0]], "rows", weights): batch}


def _dimension(dimensions: list[set[Var]], wanted: set[Var], what: str, weights: Access) -> int:
    """The first dimension that only these loops index."""
    for place, one in enumerate(dimensions):
        if one and one <= wanted:
            return place
    raise ScheduleError(f"asked for a VTA product with {weights.buffer.name} that has no {what} of its own: a core multiplies rows by square matrices")


def _carried(store: Store, found: dict[Buffer, dict[int, int]]) -> bool:
    """Propagate the lanes of a statement's buffers to its other buffers; returns whether any is new."""
    sides = [Access(store.buffer, store.index, store.buffer.dtype), *accesses(store.value)]
    known = {var: block for side in sides for dimension, block in found.get(side.buffer, {}).items() for var in variables(side.index[dimension])}
    new = False
    for side in sides:
        if side.buffer in found:
            continue
        walked = [set(variables(index)) for index in side.index]
        # In the order of the other buffer: a block of weights has its output channels first.
        blocks = {dimension: block for var, block in known.items() for dimension, one in enumerate(walked) if var in one}
        if blocks:
            found[side.buffer], new = blocks, True
    return new


def _note_orders(store: Store, orders: dict[Buffer, tuple[int, ...]]) -> None:
    """Give each buffer the order of the tensor that it is copied from, or to."""
    sides = [Access(store.buffer, store.index, store.buffer.dtype), *accesses(store.value)]
    for outside in (side for side in sides if side.buffer.scope in ARGUMENTS):
        at = {var: dimension for dimension, index in enumerate(outside.index) for var in variables(index)}
        for inside in (side for side in sides if side.buffer.scope in MEMORIES and side.buffer not in orders):
            place = [max((at.get(var, -1) for var in variables(index)), default=-1) for index in inside.index]
            orders[inside.buffer] = tuple(sorted(range(len(place)), key=lambda dimension: place[dimension]))
