"""A declaration in normal form: as far as possible, declarations that compute the same get the same stages, axes and expressions, however they are written.

    (o // 256) * 256 + rc  with o < 256   ->   rc
    W[rc, o] * X[n, rc]                   ->   X[n, rc] * W[rc, o]
    B = A as it is, C = B * 2             ->   C = A * 2

Names, arguments, their order and shapes do not change, nor does any operation on floats: results are bit-identical, except for the order of sums.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ansor.ir.access import producers
from ansor.ir.canonical import canonical
from ansor.ir.dag import topological
from ansor.ir.normal.expressions import OperandOrder, TensorIdentity, normal_expression
from ansor.ir.normal.reductions import fused, in_order, split, started
from ansor.te.expr import Axis, Expr, Reduce
from ansor.te.fold import fold, postorder, with_operands
from ansor.te.tensor import Compute, Read, Tensor

ROUNDS = 8
"""How many times, at most, axes of a reduction are split, fused and put in order until nothing changes: each change can enable another."""

LARGE = 2000
"""An expression with more parts than this is not brought into normal form."""


def normal_form(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The same arguments, computed from as few stages as possible. Stages already in normal form stay the same objects."""
    return _Normaliser(tensors).tensors()


class _Normaliser:
    """`made`: the replacement of each tensor, by id. `depends`: what identifies it."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.given = tuple(tensors)
        self.order = topological(tensors)
        self.readers = Counter(id(producer) for tensor in self.order for producer in producers(tensor))
        self.places = {id(tensor): place for place, tensor in enumerate(tensors)}
        self.made: dict[int, Tensor] = {}
        self.depends: dict[int, TensorIdentity] = {}

    def tensors(self) -> tuple[Tensor, ...]:
        for tensor in self.order:
            made = tensor if tensor.compute is None else self._computed(tensor, tensor.compute)
            self.made[id(tensor)] = made
            if self.readers[id(tensor)] and id(made) not in self.depends:
                self.depends[id(made)] = self._depends(tensor, made)
        return tuple(self.made[id(tensor)] for tensor in self.given)

    def _depends(self, tensor: Tensor, made: Tensor) -> TensorIdentity:
        if made.compute is None:
            return TensorIdentity(self.places.get(id(tensor), len(self.given)), 0, "")
        behind = [self.depends[id(producer)] for producer in producers(made)]
        text = OperandOrder(_places((*made.compute.axes, *made.compute.reduce_axes)), self.depends).text(made.compute.body)
        digest = hashlib.sha256(json.dumps([made.shape, made.dtype, [axis.extent for axis in made.compute.reduce_axes], text]).encode()).hexdigest()
        return TensorIdentity(min((one.argument for one in behind), default=len(self.given)), 1 + max((one.depth for one in behind), default=0), digest)

    def _computed(self, tensor: Tensor, compute: Compute) -> Tensor:
        body = fold(compute.body, self._reading)
        if sum(1 for _ in islice(postorder(body), LARGE + 1)) > LARGE:
            return tensor if body is compute.body else replace(tensor, compute=Compute(compute.axes, compute.reduce_axes, body))
        if isinstance(body, Reduce):
            axes, found = self._reduction(tensor, compute, body)
        else:
            axes, (found, _) = (), normal_expression(body, OperandOrder(_places(compute.axes), self.depends))
        renamed = self._renamed(tensor, compute, found)
        if renamed is not None:
            return renamed
        if body is compute.body and _same_axes(axes, compute.reduce_axes) and self._same(compute, body, found):
            return tensor
        return replace(tensor, compute=Compute(compute.axes, axes, found))

    def _reading(self, node: Expr, operands: tuple[Expr, ...]) -> Expr:
        if isinstance(node, Read) and self.made[id(node.tensor)] is not node.tensor:
            return Read(self.made[id(node.tensor)], operands, node.dtype)
        return with_operands(node, operands)

    def _reduction(self, tensor: Tensor, compute: Compute, body: Reduce) -> tuple[tuple[Axis, ...], Expr]:
        """The reduction's axes and body. Attributes may name axes, so a stage with attributes keeps its axes."""
        source, axes = (body.source, body.axes) if tensor.attrs else started(body.source, body.axes)
        for _ in range(ROUNDS):
            source, sums = normal_expression(source, OperandOrder(_places((*compute.axes, *axes)), self.depends))
            changed = None if tensor.attrs else split(source, axes, sums) or fused(source, axes, sums)
            ordered = axes if tensor.attrs else in_order(source, axes)
            if changed is None and _same_axes(ordered, axes):
                break
            source, axes = changed or (source, ordered)
        return axes, Reduce(body.combiner, source, axes, body.dtype)

    def _same(self, compute: Compute, body: Expr, found: Expr) -> bool:
        places = _places((*compute.axes, *compute.reduce_axes))
        numbers = {read.tensor.name: id(read.tensor) for read in compute.reads}
        return canonical(body, places, numbers) == canonical(found, places, numbers)

    def _renamed(self, tensor: Tensor, compute: Compute, found: Expr) -> Tensor | None:
        """The tensor behind a stage that only renames it; None for other stages."""
        if not isinstance(found, Read) or found.tensor.shape != tensor.shape or found.dtype != tensor.dtype or tensor.attrs:
            return None
        if any(index is not axis for index, axis in zip(found.indices, compute.axes, strict=True)):
            return None
        if id(tensor) not in self.places:
            return found.tensor
        read = next((one for one in self.order if self.made.get(id(one)) is found.tensor), None)
        if found.tensor.compute is None or read is None or id(read) in self.places or self.readers[id(read)] > 1 or found.tensor.attrs:
            return None
        return replace(found.tensor, name=tensor.name)


def _same_axes(some: Sequence[Axis], others: Sequence[Axis]) -> bool:
    """Compare axes by identity, since `==` on axes builds an expression."""
    return [id(axis) for axis in some] == [id(axis) for axis in others]


def _places(axes: Sequence[Axis]) -> dict[int, int]:
    return {id(axis): place for place, axis in enumerate(axes)}
