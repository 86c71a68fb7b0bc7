"""Passes over an integer network. None of them changes the numbers in its outputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Add, AveragePool, Convolution, Dense, Operator, Reshape, Table, Transpose


def improved(network: IntegerNetwork) -> IntegerNetwork:
    """The network after all passes."""
    return pruned(fold_clips(fold_transposes(network)))


def fold_transposes(network: IntegerNetwork) -> IntegerNetwork:
    """Drop a transpose before a flatten and a dense layer, by reordering the layer's weights to match the stored image."""
    made = {one.output: one for one in network.operators}
    tensors = dict(network.tensors)
    done: list[Operator] = []
    for one in network.operators:
        flat = made.get(one.inputs[0])
        moved = made.get(flat.inputs[0]) if isinstance(flat, Reshape) else None
        keeps_batch = isinstance(moved, Transpose) and moved.axes[0] == 0 and tensors[one.inputs[0]].shape[0] == tensors[moved.output].shape[0]
        if not isinstance(one, Dense) or not isinstance(moved, Transpose) or not keeps_batch:
            done.append(one)
            continue
        source = tensors[moved.inputs[0]]
        stored = tuple(tensors[moved.output].shape[1:])  # rows of the weights, in the order of the transposed image
        back = np.argsort(moved.axes)[1:] - 1
        weights = one.weights.reshape(*stored, -1).transpose(*back, len(stored)).reshape(one.weights.shape)
        name = f"{one.output}_flat"
        tensors[name] = replace(tensors[one.inputs[0]], name=name)
        done.append(Reshape(name, (source.name,), tensors[name].shape))
        done.append(replace(one, inputs=(name,), weights=np.ascontiguousarray(weights)))
    return replace(network, operators=tuple(done), tensors=tensors)


def fold_clips(network: IntegerNetwork) -> IntegerNetwork:
    """Drop a table that only clips and does not rescale, such as a ReLU with its own quantisation, by narrowing the limits of the operator before it. No
    other operator may read that one's result."""
    readers = Counter(name for one in network.operators for name in one.inputs) + Counter(network.outputs)
    done: dict[str, Operator] = {}
    for one in network.operators:
        before = done.get(one.inputs[0])
        limits = _limits(one, network) if before is not None and readers[before.output] == 1 else None
        narrowed = _narrowed(before, *limits) if before is not None and limits is not None else None
        if before is None or narrowed is None:
            done[one.output] = one
            continue
        del done[before.output]
        done[one.output] = replace(narrowed, output=one.output)
    return replace(network, operators=tuple(done.values()))


def _limits(operator: Operator, network: IntegerNetwork) -> tuple[int, int] | None:
    """The limits of a table that clips: it keeps numbers between them, and maps others to the nearer limit. None for any other operator."""
    same = isinstance(operator, Table) and network.tensors[operator.inputs[0]].quantisation == network.tensors[operator.output].quantisation
    if not isinstance(operator, Table) or not same:
        return None
    low, high = int(operator.values[0]), int(operator.values[-1])
    return (low, high) if low <= high and np.array_equal(operator.values, np.clip(np.arange(-128, 128), low, high)) else None


def _narrowed(operator: Operator, low: int, high: int) -> Operator | None:
    """The operator with its results also limited to this range; None if it has no limits."""
    if not isinstance(operator, Add | Convolution | Dense | AveragePool):
        return None
    if isinstance(operator, Convolution) and operator.added is not None:
        added = _narrowed(operator.added, low, high)
        return replace(operator, added=added) if isinstance(added, Add) else None
    held = operator if isinstance(operator, Add) else operator.rescale
    least, most = (min(max(end, low), high) for end in (held.low, held.high))
    if isinstance(operator, Add):
        return replace(operator, low=least, high=most)
    return replace(operator, rescale=replace(operator.rescale, low=least, high=most))


def fuse_additions(network: IntegerNetwork) -> IntegerNetwork:
    """Fuse each addition into the convolution that makes the later of its operands, if nothing else reads that operand. Compiling does this first; networks
    are kept unfused, as a device may support only one of the two operators."""
    readers = Counter(name for one in network.operators for name in one.inputs) + Counter(network.outputs)
    order = {one.output: place for place, one in enumerate(network.operators)}
    tensors = dict(network.tensors)
    done: dict[str, Operator] = {}
    for one in network.operators:
        later = max(one.inputs, key=lambda name: order.get(name, -1))
        before = done.get(later)
        if not isinstance(one, Add) or not isinstance(before, Convolution) or before.added is not None or readers[later] != 1:
            done[one.output] = one
            continue
        del done[later], tensors[later]
        done[one.output] = _adding(before, one)
    return replace(network, operators=tuple(done.values()), tensors=tensors)


def _adding(convolution: Convolution, add: Add) -> Convolution:
    """The convolution with the addition fused in. Its own result becomes the first operand of the addition."""
    first = add.inputs[0] == convolution.output
    other, factors = (add.inputs[1], add.multipliers) if first else (add.inputs[0], (add.multipliers[1], add.multipliers[0]))
    added = replace(add, inputs=(convolution.output, other), multipliers=factors)
    return replace(convolution, output=add.output, inputs=(*convolution.inputs, other), added=added)


def pruned(network: IntegerNetwork) -> IntegerNetwork:
    """The network without operators and tensors that no output needs. Inputs stay."""
    needed = set(network.outputs)
    kept: list[Operator] = []
    for one in reversed(network.operators):
        if one.output in needed:
            kept.append(one)
            needed.update(one.inputs)
    needed.update(network.inputs)
    tensors = {name: tensor for name, tensor in network.tensors.items() if name in needed}
    return replace(network, operators=tuple(reversed(kept)), tensors=tensors)
