"""Fuses dimensions that every stage traverses together: the 14 x 14 places of an image become 196 places.

    y[n, o, h, w] = sum over rc of x[n, rc, h, w] * k[o, rc]      ->      y[n, o, hw] = sum over rc of x[n, rc, hw] * k[o, rc]

The memory does not change, only the shape of the arrays. This pays if the last dimension is short (14 elements do not fill vectors, 196 do) and no operand is
a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Const, Expr, binary
from ansor.te.fold import transform, walk
from ansor.te.tensor import Compute, Read, Tensor

SHORT = 64
"""A last dimension of at most this many elements may be too short for vectors."""


@register_algorithm("flat")
def flat(dag: Dag) -> Iterator[Alternative]:
    """The workload with fewer dimensions, if a product's last dimension is short and can be fused with the one before."""
    short = [stage for stage in dag.stages if stage.ndim > 1 and stage.shape[-1] <= SHORT and _is_product_of_inputs(stage)]
    if not short:
        return
    joined = _Joined(dag)
    if any(stage.ndim - 2 in joined.places[stage.name] for stage in short):
        yield Alternative("flat", Dag(joined.tensors()))


def _is_product_of_inputs(stage: Tensor) -> bool:
    """Whether no operand is a constant: constants are packed so that vectors run along another dimension, whatever the length of this one."""
    return access.needs_multi_level_tiling(stage) and not any(operand.constant for operand in access.producers(stage))


class _Joined:
    """Which dimensions of each tensor are fused with the next one: `places`, by the tensor's name."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.places = {stage.name: set(range(stage.ndim - 1)) if not stage.constant and not stage.attrs else set() for stage in dag.stages}
        while any([self._kept_apart(stage) for stage in reversed(dag.stages) if stage.compute is not None]):
            pass

    def _kept_apart(self, stage: Tensor) -> bool:
        """Remove the places where this stage does not use two dimensions together; return whether any were removed. A stage uses two axes together if each
        occurs only next to the other, at places that are fused themselves."""
        assert stage.compute is not None
        before = sum(map(len, self.places.values()))
        axes, own = stage.compute.axes, self.places[stage.name]
        uses = Counter(id(node) for node in walk(access.value_of(stage)) if isinstance(node, Axis))
        together = Counter[int]()
        for read in access.reads(stage):
            joined = self.places[read.tensor.name]
            for place, (index, following) in enumerate(pairwise(read.indices)):
                at = next((k for k, pair in enumerate(pairwise(axes)) if index is pair[0] and following is pair[1]), None)
                if at is not None and at in own and read.tensor.shape[place + 1] == axes[at + 1].extent and place in joined:
                    together[at] += 1
                elif not (isinstance(index, Const) and isinstance(following, Const)):
                    joined.discard(place)
        own.intersection_update({k for k, (one, other) in enumerate(pairwise(axes)) if uses[id(one)] == together[k] == uses[id(other)]})
        return sum(map(len, self.places.values())) < before

    def tensors(self) -> list[Tensor]:
        """The arguments with fused dimensions."""
        made: dict[str, Tensor] = {}
        for stage in self.dag.stages:
            made[stage.name] = self._over_groups(stage, made)
        return [made[tensor.name] for tensor in self.dag.tensors]

    def _groups(self, tensor: Tensor) -> list[list[int]]:
        """Its dimensions, grouped into those that are fused."""
        groups: list[list[int]] = []
        for place in range(tensor.ndim):
            if place and place - 1 in self.places[tensor.name]:
                groups[-1].append(place)
            else:
                groups.append([place])
        return groups

    def _over_groups(self, tensor: Tensor, made: dict[str, Tensor]) -> Tensor:
        groups = self._groups(tensor)
        shape = tuple(prod(tensor.shape[place] for place in group) for group in groups)
        if tensor.compute is None:
            return replace(tensor, shape=shape)
        axes = [[tensor.compute.axes[place] for place in group] for group in groups]
        fresh = tuple(own[0] if len(own) == 1 else Axis("".join(one.name for one in own), extent) for own, extent in zip(axes, shape, strict=True))
        fused = {id(one): axis for own, axis in zip(axes, fresh, strict=True) for one in own}

        def read(node: Expr) -> Expr | None:
            if not isinstance(node, Read):
                return None
            indices = [transform(_index(node, group, fused), read) for group in self._groups(node.tensor)]
            return Read(made[node.tensor.name], tuple(indices), node.dtype)

        body = transform(tensor.compute.body, read)
        return replace(tensor, shape=shape, compute=Compute(fresh, tensor.compute.reduce_axes, body))


def _index(node: Read, group: Sequence[int], fused: dict[int, Axis]) -> Expr:
    """The index into a group of fused dimensions."""
    first = node.indices[group[0]]
    if len(group) == 1:
        return first
    if isinstance(first, Axis):
        return fused[id(first)]
    found: Expr = Const(0, "int32")
    for place in group:
        found = binary("add", binary("mul", found, node.tensor.shape[place]), node.indices[place])
    return found
