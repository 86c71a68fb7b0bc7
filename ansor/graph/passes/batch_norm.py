"""Folds batch norms into the weights of the convolution or dense layer before them.

    conv(x, w) ─► batch_norm      becomes      conv(x, w * scale, b * scale + shift)

The products are computed in double precision and rounded once. A batch norm with nothing to fold into becomes `x * scale + shift`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ansor.graph.ir import Array, Graph, Node, Rewriter

Doubles = NDArray[np.float64]


def fold_batch_norm(graph: Graph) -> Graph:
    """The graph without `batch_norm` nodes."""
    write = Rewriter(graph)
    consumers = graph.consumers()
    norms = {node.inputs[0]: node for node in graph if node.op == "batch_norm"}
    for node in graph:
        norm = norms.get(node.name)
        if norm is not None and len(consumers[node.name]) == 1 and node.name not in graph.outputs and _has_constant_weights(write, node):
            write.add(_folded(write, node, norm))
            write.forward(norm.name, node.name)
        elif node.op != "batch_norm":
            write.keep(node)
        elif write.now(node.name) == node.name:
            _spell_out(write, node)
    return write.finished()


def _has_constant_weights(write: Rewriter, node: Node) -> bool:
    weighted = node.op == "dense" or node.op.startswith("conv")
    return weighted and all(write.constant_array(name) is not None for name in node.inputs[1:])


def _folded(write: Rewriter, node: Node, norm: Node) -> Node:
    scale, shift = _constant(write, norm.inputs[1]), _constant(write, norm.inputs[2])
    weight = write.constant_array(node.inputs[1])
    assert weight is not None
    bias = shift + (_constant(write, node.inputs[2]) * scale if len(node.inputs) > 2 else 0.0)
    names = [write.constant(f"{node.name}_weight", _scaled(weight, scale, node)), write.constant(f"{node.name}_bias", bias.astype(node.dtype))]
    return replace(node, inputs=(write.now(node.inputs[0]), *names))


def _scaled(weight: Array, scale: Doubles, node: Node) -> Array:
    """The weights of each output channel times its scale."""
    if not node.op.endswith("_transpose"):
        return _product(weight, scale.reshape(-1, *(1,) * (weight.ndim - 1)), node.dtype)
    groups = node.integer("groups")  # [in, out of a group, ...]: the first dimension runs over groups, then over each group's inputs
    apart = weight.reshape(groups, -1, *weight.shape[1:])
    factor = scale.reshape(groups, 1, -1, *(1,) * (weight.ndim - 2))
    return _product(apart, factor, node.dtype).reshape(weight.shape)


def _product(one: Array, other: Doubles, dtype: str) -> Array:
    """The product, computed in double precision and rounded once. NumPy holds only a few elements at a time in double precision."""
    made: Array = np.empty(np.broadcast_shapes(one.shape, other.shape), dtype)
    np.multiply(one, other, out=made, dtype=np.float64, casting="unsafe")
    return made


def _constant(write: Rewriter, name: str) -> Doubles:
    array = write.constant_array(name)
    assert array is not None
    return array.astype(np.float64)


def _spell_out(write: Rewriter, node: Node) -> None:
    shape = (-1, *(1,) * (len(node.shape) - 2))
    scale, shift = (write.constant(name, _constant(write, name).reshape(shape).astype(node.dtype)) for name in node.inputs[1:])
    product = write.add(Node(write.fresh(f"{node.name}_mul"), "mul", (write.now(node.inputs[0]), scale), node.shape, node.dtype))
    write.add(replace(node, op="add", inputs=(product, shift), attributes={}))
