"""What is done to an integer network once it is read: nothing that changes a number of its outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Dense, Operator, Reshape, Transpose


def improved(network: IntegerNetwork) -> IntegerNetwork:
    """The network after all passes."""
    return pruned(fold_transposes(network))


def fold_transposes(network: IntegerNetwork) -> IntegerNetwork:
    """A dense layer of an image that is put in the model's order and flattened: its weights take the order in which the image is stored."""
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


def pruned(network: IntegerNetwork) -> IntegerNetwork:
    """Without operators and tensors that no output needs. Inputs stay."""
    needed = set(network.outputs)
    kept: list[Operator] = []
    for one in reversed(network.operators):
        if one.output in needed:
            kept.append(one)
            needed.update(one.inputs)
    needed.update(network.inputs)
    tensors = {name: tensor for name, tensor in network.tensors.items() if name in needed}
    return replace(network, operators=tuple(reversed(kept)), tensors=tensors)
