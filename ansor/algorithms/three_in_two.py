"""Three sums of products of bytes in two 32-bit registers: two multiplications and two additions for three products.

A sum of 64 products of bytes has 21 bits, so three sums have 63. The constant weights of three neighbouring outputs are combined ahead of time:

    W0 = 2^21 w1 - w0        W1 = 2^10 w1 - w2

Sums of a W wrap modulo 2^32. With x, y, z for the sums of a w0, a w1, a w2, each of at most BLOCK products, they are

    S0 = 2^21 y - x          S1 = 2^10 y - z

-x is at least -2^20 and less than 2^20, as a and w are from -128 to 127: it is the lower 21 bits of S0, sign-extended. The rest of S0 holds the lower 11 bits
of y. Subtracting 2^10 times these from S1 leaves -z in the lower 21 bits, and S1 without -z is 2^10 y. So nothing is lost, whatever the bytes are. Longer sums
consist of blocks, each with its own two registers. All three sums are extracted with the sign of -x, which costs nothing where they are subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.products import Product, find_product
from ansor.algorithms.rewrite import in_groups, unused, with_stage
from ansor.codegen.source import Combined
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr, substitute
from ansor.te.scalar import if_then_else
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared, placeholder

NAME = "three_in_two"
SUMS, WORDS = 3, 2
BITS = 21
BLOCK = 64
"""Products of bytes whose sum has 21 bits."""

MOST_BLOCKS = 16
CHUNK, LEAST_CHUNK = 64, 16
LEAST_LENGTH = 4
FACTORS = ((-1, 1 << BITS, 0), (0, 1 << (BITS - 11), -1))
"""The factors of the three weights of a group, for each of its words."""


@register_algorithm(NAME, everywhere=False)
def three_in_two(dag: Dag) -> Iterator[Alternative]:
    """Applies if weights are constants, and sums are neither too short nor too long."""
    found = find_product(dag, ("int8",), lanes=1)
    if found is None or not found.weights.tensor.constant or found.lanes.extent < SUMS or found.length < LEAST_LENGTH:
        return
    blocks = _blocks(found)
    if blocks is not None:
        yield _rewritten(dag, found, blocks)


@dataclass(frozen=True)
class Block:
    """A reduction axis split in two: the block (`outside`), and the place in it (`within`); each is None if its extent is 1."""

    axis: Axis
    outside: Axis | None
    within: Axis | None

    @property
    def place(self) -> Expr:
        """The place along the axis."""
        if self.outside is None or self.within is None:
            found = self.within if self.outside is None else self.outside
            assert found is not None
            return found
        return self.outside * self.within.extent + self.within


def _blocks(product: Product) -> list[Block] | None:
    """The reduction axes split into as few blocks as possible of at most BLOCK products; None if there are more than MOST_BLOCKS."""
    assert product.stage.compute is not None
    axes = product.stage.compute.reduce_axes
    lengths = [[n for n in range(1, min(axis.extent, BLOCK) + 1) if axis.extent % n == 0] for axis in axes]
    fitting = [one for one in combinations(*lengths) if prod(one) <= BLOCK]
    best = max(fitting, key=lambda one: (prod(one), one[-1:]))
    if product.length // prod(best) > MOST_BLOCKS:
        return None
    return [_block(axis, length) for axis, length in zip(axes, best, strict=True)]


def _block(axis: Axis, length: int) -> Block:
    outside = Axis(f"{axis.name}_block", axis.extent // length) if length < axis.extent else None
    within = Axis(axis.name, length, "reduce") if length > 1 or outside is None else None
    return Block(axis, outside, within)


def _rewritten(dag: Dag, product: Product, blocks: Sequence[Block]) -> Alternative:
    weights, across, chunk = product.weights.tensor, product.dimension(product.lanes), _chunk(product.lanes.extent)
    combine = Combined(across, FACTORS, chunk, "int32")
    ready = placeholder(combine.shape_of(weights.shape), combine.dtype, weights.name, constant=True)
    sums = _sums(dag, product, ready, blocks)
    split = _split(dag, product, sums, blocks)
    place = _lane_dimension(product)

    def element(indices: tuple[Expr, ...]) -> Expr:
        others, output = [index for d, index in enumerate(indices) if d != place], indices[place]
        which, lane = (output // chunk, output % chunk) if chunk < product.lanes.extent else (0, output)
        return -split[(*others, which, lane // SUMS, lane % SUMS)]

    made = with_stage(dag, product.stage, element, {weights.name: ready})
    return Alternative(NAME, in_groups(made, chunk) if chunk < product.lanes.extent else made, {weights.name: combine})


def _chunk(outputs: int) -> int:
    """The number of outputs whose groups are stored separately, so that they can form a tile."""
    found = max(n for n in range(1, CHUNK + 1) if outputs % n == 0)
    return found if found >= LEAST_CHUNK else outputs


def _lane_dimension(product: Product) -> int:
    assert product.stage.compute is not None
    return next(d for d, axis in enumerate(product.stage.compute.axes) if axis is product.lanes)


def _others(product: Product) -> list[Axis]:
    """The output axes other than the lanes."""
    assert product.stage.compute is not None
    return [axis for axis in product.stage.compute.axes if axis is not product.lanes]


def _sums(dag: Dag, product: Product, ready: Tensor, blocks: Sequence[Block]) -> Tensor:
    """[others, chunks, blocks, words]: the sums of a W for each block."""
    chunks = product.lanes.extent // _chunk(product.lanes.extent)
    chunk, word = Axis("chunk", chunks), Axis("word", ready.shape[product.dimension(product.lanes)] // chunks)
    others = {axis: Axis(axis.name, axis.extent) for axis in _others(product)}
    places: Mapping[Axis, Expr] = {**others, **{block.axis: block.place for block in blocks}, product.lanes: chunk * word.extent + word if chunks > 1 else word}
    data = substitute(product.data, dict(places)).astype("int32")
    weight = ready[tuple(places[index] if isinstance(index, Axis) else index for index in product.weights.indices)]
    reduced = [block.within for block in blocks if block.within is not None]
    outside = [block.outside for block in blocks if block.outside is not None]
    attrs = {access.SPLIT_BEHIND: True}
    return declared(unused(dag, "packed_sums"), (*others.values(), chunk, *outside, word), sum_over(data * weight, axis=reduced), attrs=attrs)


def _split(dag: Dag, product: Product, sums: Tensor, blocks: Sequence[Block]) -> Tensor:
    """[others, chunks, groups, lanes]: the three sums of each group, negated."""
    group, lane = Axis("group", sums.shape[-1] // WORDS), Axis("lane", SUMS)
    others = [*(Axis(axis.name, axis.extent) for axis in _others(product)), Axis("chunk", sums.shape[len(_others(product))])]
    counts = [block.outside.extent for block in blocks if block.outside is not None]
    found = [_three(sums, (*others, *block), group) for block in combinations(*map(range, counts))]
    first, second, third = (_added([one[k] for one in found]) for k in range(SUMS))
    body = if_then_else(lane == 0, first, if_then_else(lane == 1, second, third))
    return declared(unused(dag, "split_sums"), (*others, group, lane), body, attrs={access.KEPT: True})


def _three(sums: Tensor, at: tuple[Expr | int, ...], group: Axis) -> tuple[Expr, Expr, Expr]:
    """-x, -y and -z of a block."""
    low, high = sums[(*at, group * WORDS)], sums[(*at, group * WORDS + 1)]
    first = _signed(low)
    rest = high - ((low - first) >> 11)
    third = _signed(rest)
    return first, (third - high) >> (BITS - 11), third


def _signed(value: Expr) -> Expr:
    """The lower 21 bits, sign-extended."""
    return (value << (32 - BITS)) >> (32 - BITS)


def _added(values: Sequence[Expr]) -> Expr:
    total = values[0]
    for one in values[1:]:
        total = total + one
    return total
