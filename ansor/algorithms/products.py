"""Finds sums of products of narrow integers in a declaration: the stage, what it multiplies, and the axis along which outputs share data."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Reduce
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor

LEAST_REUSE = 16
"""The least number of outputs that use each weight; with fewer, joining weights that are not constants costs too much."""


@dataclass(frozen=True)
class Product:
    """A stage that sums data * weights. `lanes`: the output axis whose neighbours share a word; it indexes only the weights."""

    stage: Tensor
    data: Read
    weights: Read
    lanes: Axis

    @property
    def length(self) -> int:
        """The number of products that one output sums."""
        return access.reduce_length(self.stage)

    def dimension(self, axis: Axis) -> int:
        """The dimension of the weights that the axis indexes."""
        return next(d for d, index in enumerate(self.weights.indices) if index is axis)


def find_product(dag: Dag, dtypes: tuple[str, ...], lanes: int = 2) -> Product | None:
    """The only reduction of a workload, if it is a sum of products of these dtypes; a constant is preferred as the weights.

    lanes: the number of outputs that share data has to be a multiple of this.
    """
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    if len(reductions) != 1:
        return None
    (stage,) = reductions
    factors = _factors(stage, dtypes)
    found = [one for data, weights in (factors, factors[::-1]) if (one := _product(dag, stage, data, weights, lanes)) is not None] if factors else []
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
    """The read under a conversion to int32; None for anything else."""
    read = value.value if isinstance(value, Cast) and value.dtype == "int32" else None
    return read if isinstance(read, Read) and read.dtype in dtypes else None


def _product(dag: Dag, stage: Tensor, data: Read, weights: Read, lanes: int) -> Product | None:
    assert stage.compute is not None
    if data.tensor is weights.tensor or weights.tensor.ndim < 2 or not _is_whole(weights):
        return None
    moved = {id(node) for index in data.indices for node in walk(index)}
    free = [axis for axis in stage.compute.axes if id(axis) not in moved and axis.extent % lanes == 0 and any(index is axis for index in weights.indices)]
    reuse = stage.size * access.reduce_length(stage) // weights.tensor.size
    readers = [one for one in dag.stages if weights.tensor in access.producers(one)]
    if not free or len(readers) != 1 or not (weights.tensor.constant or reuse >= LEAST_REUSE):
        return None
    return Product(stage, data, weights, free[-1])


def _is_whole(read: Read) -> bool:
    """True when a separate axis reads each dimension in full; a dimension of one element may have a constant index."""
    walked = [index for index, extent in zip(read.indices, read.tensor.shape, strict=True) if not (extent == 1 and isinstance(index, Const))]
    whole = all(isinstance(index, Axis) and index.extent == extent for index, extent in zip(read.indices, read.tensor.shape, strict=True)
                if extent > 1)  # fmt: skip
    return whole and all(isinstance(index, Axis) for index in walked) and len({id(index) for index in walked}) == len(walked)
