"""Sums of products of bytes, of which one multiplication gives two: for processors that multiply whole registers, and only one at a time.

Two weights of neighbouring outputs lie in one number, W = w0 + w1 2^b, so that a W = a w0 + a w1 2^b has both products. Weights that are constants are joined
ahead of time, others in a stage of their own.

Registers of 32 bits, b = 16. Two products fit: S0 and S1, of two elements of the reduction, are in [-32512, 32768]. A constant added to both keeps them apart,

    X = a[k] W[k] + a[k + 1] W[k + 1] + LOW + HIGH 2^16          S0 + LOW in [0, 2^16), S1 + HIGH in [-2^15, 2^15)

so that X >> 16 is S1 + HIGH, exactly. Summed up are X and X >> 16, as two elements of one stage: the part that they share is computed once. X wraps.

    sum of S1 = sum of X >> 16, less what HIGH adds              sum of S0 = sum of X, less that times 2^16, and what LOW adds, modulo 2^32

Registers of 64 bits, b = 32: both sums have room for all products, sum of a W = S0 + S1 2^32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.rewrite import unused, with_stage
from ansor.codegen.source import Joined
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Reduce, substitute
from ansor.te.fold import transform, walk
from ansor.te.scalar import if_then_else
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Read, Tensor, declared, placeholder

IN_32, IN_64 = "packed_products_32", "packed_products_64"
LOW, HIGH = 32640, -128
LARGEST = {"int8": 128, "uint8": 255}
LEAST_REUSE = 16
"""Outputs that each weight is multiplied for, below which joining weights that are no constants costs too much."""

Places = Mapping[Axis, Expr]
"""Where the axes of the stage are."""

Word = Callable[[Places, int], Expr]
"""A word of weights, and which of those that lie side by side along the reduction; places are those of the sums' own axes."""


@dataclass(frozen=True)
class Product:
    """A stage that sums data * weights. `lanes`: the output axis of which two neighbours share a word, which moves the weights alone."""

    stage: Tensor
    data: Read
    weights: Read
    lanes: Axis

    @property
    def length(self) -> int:
        """Products that one output is the sum of."""
        return access.reduce_length(self.stage)

    def dimension(self, axis: Axis) -> int:
        """Of the weights, that the axis indexes."""
        return next(d for d, index in enumerate(self.weights.indices) if index is axis)


@register_algorithm(IN_32, everywhere=False)
def packed_in_32(dag: Dag) -> Iterator[Alternative]:
    """Two products for one multiplication of 32 bits."""
    found = _find(dag, ("int8",))
    if found is None:
        return
    axis = _pairs(found)
    if axis is not None:
        yield _in_32(dag, found, axis)


@register_algorithm(IN_64, everywhere=False)
def packed_in_64(dag: Dag) -> Iterator[Alternative]:
    """Two products for one multiplication of 64 bits."""
    found = _find(dag, tuple(LARGEST))
    if found is not None and found.length * LARGEST[found.data.dtype] * LARGEST[found.weights.dtype] < 1 << 31:
        yield _in_64(dag, found)


# what is multiplied --------------------------------------------------------------------------------------------------------------------------------------


def _find(dag: Dag, dtypes: tuple[str, ...]) -> Product | None:
    """The only reduction of a workload, where it is a sum of products of these; constants are joined rather than anything else."""
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    if len(reductions) != 1:
        return None
    (stage,) = reductions
    factors = _factors(stage, dtypes)
    found = [one for data, weights in (factors, factors[::-1]) if (one := _product(dag, stage, data, weights)) is not None] if factors else []
    return max(found, key=lambda one: one.weights.tensor.constant, default=None)


def _factors(stage: Tensor, dtypes: tuple[str, ...]) -> tuple[Read, Read] | None:
    assert stage.compute is not None
    body = stage.compute.body
    if not isinstance(body, Reduce) or body.combiner != "sum" or body.dtype != "int32" or any(axis.start for axis in stage.compute.reduce_axes):
        return None
    if not isinstance(body.source, Binary) or body.source.op != "mul":
        return None
    left, right = _narrow(body.source.left, dtypes), _narrow(body.source.right, dtypes)
    return None if left is None or right is None else (left, right)


def _narrow(value: Expr, dtypes: tuple[str, ...]) -> Read | None:
    """What is read, where that is converted to int32."""
    read = value.value if isinstance(value, Cast) and value.dtype == "int32" else None
    return read if isinstance(read, Read) and read.dtype in dtypes else None


def _product(dag: Dag, stage: Tensor, data: Read, weights: Read) -> Product | None:
    assert stage.compute is not None
    if data.tensor is weights.tensor or weights.tensor.ndim < 2 or not _is_whole(weights):
        return None
    moved = {id(node) for index in data.indices for node in walk(index)}
    free = [axis for axis in stage.compute.axes if id(axis) not in moved and axis.extent % 2 == 0 and any(index is axis for index in weights.indices)]
    reuse = stage.size * access.reduce_length(stage) // weights.tensor.size
    readers = [one for one in dag.stages if weights.tensor in access.producers(one)]
    if not free or len(readers) != 1 or not (weights.tensor.constant or reuse >= LEAST_REUSE):
        return None
    return Product(stage, data, weights, free[-1])


def _is_whole(read: Read) -> bool:
    """Each dimension is read from end to end, by an axis of its own; one of a single element may be read there."""
    walked = [index for index, extent in zip(read.indices, read.tensor.shape, strict=True) if not (extent == 1 and isinstance(index, Const))]
    whole = all(isinstance(index, Axis) and index.extent == extent for index, extent in zip(read.indices, read.tensor.shape, strict=True)
                if extent > 1)  # fmt: skip
    return whole and all(isinstance(index, Axis) for index in walked) and len({id(index) for index in walked}) == len(walked)


def _pairs(product: Product) -> Axis | None:
    """A reduced axis of which two neighbours are summed at a time: where the data lie side by side, if it can."""
    assert product.stage.compute is not None
    even = [axis for axis in product.stage.compute.reduce_axes if axis.extent % 2 == 0 and any(index is axis for index in product.weights.indices)]
    return next((axis for axis in even if access.memory_step(product.data, axis) == 1), even[-1] if even else None)


# words -----------------------------------------------------------------------------------------------------------------------------------------------------


def _words(dag: Dag, product: Product, pairs: Axis | None) -> tuple[Word, dict[str, Tensor], dict[str, Joined]]:
    """Weights in words: made ahead of time from a constant, in a stage from anything else."""
    weights, across = product.weights.tensor, product.dimension(product.lanes)
    if not weights.constant:
        return _made(dag, product, pairs), {}, {}
    # Both words of a pair are one number for 32 bits, too: the processor reads its halves, and the order of the numbers can be that of the loops.
    along = product.dimension(pairs) if pairs is not None else 1 if across == 0 else 0
    join = Joined(across, 2, 16 if pairs is not None else 32, along, 2 if pairs is not None else 1, "int64")
    ready = placeholder(join.shape_of(weights.shape), join.dtype, weights.name, constant=True)

    known: dict[int, Expr] = {}  # one read for both words: only what is read once is packed

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
    """The axes of the sums, by those of the stage that they stand for."""
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

    return Alternative(IN_32, _by_words(with_stage(dag, product.stage, element, inputs)), joined)


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

    return Alternative(IN_64, _by_words(with_stage(dag, product.stage, element, inputs)), joined)


def _split(own: Mapping[Axis, Axis]) -> tuple[list[Axis], list[Axis]]:
    """Output axes and reduced ones."""
    return [axis for axis in own.values() if axis.kind == "spatial"], [axis for axis in own.values() if axis.kind != "spatial"]


def _halved(product: Product, indices: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
    """Where the sums of an element of the stage are, and whether it is the second one of its word."""
    compute = product.stage.compute
    assert compute is not None
    place = next(d for d, axis in enumerate(compute.axes) if axis is product.lanes)
    at = tuple(index // 2 if d == place else index for d, index in enumerate(indices))
    return at, indices[place] % 2 == 1


def _by_words(dag: Dag) -> Dag:
    """The workload with the two outputs of a word as a dimension of their own, which no loop has to find out about: memory stays as it is."""
    (stage,) = dag.outputs if len(dag.outputs) == 1 else (None,)
    if stage is None or stage.compute is None or stage.compute.reduce_axes:
        return dag
    halved = {id(node.left) for node in walk(stage.compute.body) if isinstance(node, Binary) and node.op == "floordiv" and _is_two(node.right)}
    lanes = next((axis for axis in stage.compute.axes if id(axis) in halved), None)
    if lanes is None:
        return dag
    word, lane = Axis(lanes.name, lanes.extent // 2), Axis("lane", 2)

    def replaced(node: Expr) -> Expr | None:
        if isinstance(node, Binary) and node.left is lanes and _is_two(node.right) and node.op in ("floordiv", "floormod"):
            return word if node.op == "floordiv" else lane
        return word * 2 + lane if node is lanes else None

    axes = tuple(one for axis in stage.compute.axes for one in ((word, lane) if axis is lanes else (axis,)))
    made = declared(stage.name, axes, transform(stage.compute.body, replaced), tag=stage.tag, attrs=stage.attrs)
    return Dag([made if tensor is stage else tensor for tensor in dag.tensors])


def _is_two(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 2


def _wrapped(value: int) -> int:
    """As a number of 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
