"""Sums of products of bytes with two products per multiplication, for processors that multiply only one whole register at a time.

One number holds two weights of neighbouring outputs, W = w0 + w1 2^b, so that a W = a w0 + a w1 2^b has both products. Constant weights are joined ahead of
time, others in a separate stage.

Registers of 32 bits, b = 16. Two products fit: S0 and S1, over two elements of the reduction, are in [-32512, 32768]. Adding a constant keeps them apart,

    X = a[k] W[k] + a[k + 1] W[k + 1] + LOW + HIGH 2^16          S0 + LOW in [0, 2^16), S1 + HIGH in [-2^15, 2^15)

so that X >> 16 is exactly S1 + HIGH. One stage sums X and X >> 16 as two elements, so that their common part is computed once. X wraps.

    sum of S1 = sum of X >> 16, minus what HIGH adds             sum of S0 = sum of X, minus 2^16 sum of X >> 16, minus what LOW adds, modulo 2^32

Registers of 64 bits, b = 32: both sums have room for all products, sum of a W = S0 + S1 2^32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.products import Product, find_product
from ansor.algorithms.rewrite import in_groups, unused, with_stage
from ansor.codegen.source import Joined
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr, substitute
from ansor.te.scalar import if_then_else
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared, placeholder

IN_32, IN_64 = "packed_products_32", "packed_products_64"
LOW, HIGH = 32640, -128
LARGEST = {"int8": 128, "uint8": 255}

Places = Mapping[Axis, Expr]
"""The index for each axis of the stage."""

Word = Callable[[Places, int], Expr]
"""A word of weights, given the places of the sums' own axes and which of the neighbouring words along the reduction it is."""


@register_algorithm(IN_32, everywhere=False)
def packed_in_32(dag: Dag) -> Iterator[Alternative]:
    """Two products per 32-bit multiplication."""
    found = find_product(dag, ("int8",))
    if found is None:
        return
    axis = _pairs(found)
    if axis is not None:
        yield _in_32(dag, found, axis)


@register_algorithm(IN_64, everywhere=False)
def packed_in_64(dag: Dag) -> Iterator[Alternative]:
    """Two products per 64-bit multiplication."""
    found = find_product(dag, tuple(LARGEST))
    if found is not None and found.length * LARGEST[found.data.dtype] * LARGEST[found.weights.dtype] < 1 << 31:
        yield _in_64(dag, found)


def _pairs(product: Product) -> Axis | None:
    """A reduction axis of which two neighbours are summed at a time, preferably one along which the data is contiguous."""
    assert product.stage.compute is not None
    even = [axis for axis in product.stage.compute.reduce_axes if axis.extent % 2 == 0 and any(index is axis for index in product.weights.indices)]
    return next((axis for axis in even if access.memory_step(product.data, axis) == 1), even[-1] if even else None)


# words -----------------------------------------------------------------------------------------------------------------------------------------------------


def _words(dag: Dag, product: Product, pairs: Axis | None) -> tuple[Word, dict[str, Tensor], dict[str, Joined]]:
    """Weights in words: a constant is converted ahead of time, anything else in a stage."""
    weights, across = product.weights.tensor, product.dimension(product.lanes)
    if not weights.constant:
        return _made(dag, product, pairs), {}, {}
    # With 32 bits, both words of a pair also form one number: the processor reads its halves, and the numbers can be stored in loop order.
    along = product.dimension(pairs) if pairs is not None else 1 if across == 0 else 0
    join = Joined(across, 2, 16 if pairs is not None else 32, along, 2 if pairs is not None else 1, "int64")
    ready = placeholder(join.shape_of(weights.shape), join.dtype, weights.name, constant=True)

    known: dict[int, Expr] = {}  # both words share one read, since only what is read once is packed

    def word(at: Places, number: int) -> Expr:
        both = known.setdefault(id(at), ready[_indices(product, at)])
        return both if pairs is None else (both >> 32 * number).astype("int32")

    return word, {weights.name: ready}, {weights.name: join}


def _made(dag: Dag, product: Product, pairs: Axis | None) -> Word:
    dtype, bits = ("int32", 16) if pairs is not None else ("int64", 32)
    own = {index: index for index in product.weights.indices if isinstance(index, Axis)}
    axes = {axis: Axis(axis.name, axis.extent // 2 if axis is product.lanes else axis.extent) for axis in own}

    def weight(lane: int) -> Expr:
        return product.weights.tensor[_indices(product, {axis: one * 2 + lane if axis is product.lanes else one for axis, one in axes.items()})].astype(dtype)

    shape = tuple(axes.values())
    words = declared(unused(dag, "packed_weights"), shape, weight(0) + (weight(1) << bits), attrs={access.KEPT: True})
    return lambda at, number: words[tuple(at[axis] * 2 + number if axis is pairs else at[axis] for axis in axes)]


def _indices(product: Product, at: Places) -> tuple[Expr, ...]:
    return tuple(at[index] if isinstance(index, Axis) else index for index in product.weights.indices)


# sums ----------------------------------------------------------------------------------------------------------------------------------------------------


def _axes(product: Product, pairs: Axis | None) -> dict[Axis, Axis]:
    """The axes of the sums, by the axes of the stage that they replace."""
    compute = product.stage.compute
    assert compute is not None
    return {axis: Axis(axis.name, axis.extent // 2 if axis is product.lanes or axis is pairs else axis.extent, axis.kind) for axis in
            (*compute.axes, *compute.reduce_axes)}  # fmt: skip


def _in_32(dag: Dag, product: Product, pairs: Axis) -> Alternative:
    word, inputs, joined = _words(dag, product, pairs)
    own, part = _axes(product, pairs), Axis("part", 2)

    def term(number: int) -> Expr:
        places = own | {pairs: own[pairs] * 2 + number}
        return substitute(product.data, places).astype("int32") * word(own, number)

    both = term(0) + term(1) + (LOW + HIGH * 65536)
    spatial, reduced = _split(own)
    sums = declared(unused(dag, "packed_sums"), (*spatial, part), sum_over(both >> part * 16, axis=reduced))
    steps = product.length // 2

    def element(indices: tuple[Expr, ...]) -> Expr:
        at, odd = _halved(product, indices)
        high = sums[(*at, 1)]
        return if_then_else(odd, high - _wrapped(steps * HIGH), sums[(*at, 0)] - (high << 16) - _wrapped(steps * LOW))

    return Alternative(IN_32, in_groups(with_stage(dag, product.stage, element, inputs), 2), joined)


def _in_64(dag: Dag, product: Product) -> Alternative:
    word, inputs, joined = _words(dag, product, None)
    own = _axes(product, None)
    spatial, reduced = _split(own)
    body = sum_over(substitute(product.data, dict(own)).astype("int64") * word(own, 0), axis=reduced)
    sums = declared(unused(dag, "packed_sums"), tuple(spatial), body)

    def element(indices: tuple[Expr, ...]) -> Expr:
        at, odd = _halved(product, indices)
        both = sums[at]
        low = both.astype("int32")
        return if_then_else(odd, ((both - low.astype("int64")) >> 32).astype("int32"), low)

    return Alternative(IN_64, in_groups(with_stage(dag, product.stage, element, inputs), 2), joined)


def _split(own: Mapping[Axis, Axis]) -> tuple[list[Axis], list[Axis]]:
    """Output axes and reduction axes."""
    return [axis for axis in own.values() if axis.kind == "spatial"], [axis for axis in own.values() if axis.kind != "spatial"]


def _halved(product: Product, indices: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
    """The indices of the sums of an element of the stage, and whether it is the second of its word."""
    compute = product.stage.compute
    assert compute is not None
    place = next(d for d, axis in enumerate(compute.axes) if axis is product.lanes)
    at = tuple(index // 2 if d == place else index for d, index in enumerate(indices))
    return at, indices[place] % 2 == 1


def _wrapped(value: int) -> int:
    """`value` wrapped to 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
