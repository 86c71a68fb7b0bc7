"""A node as a declaration: one or more `te` stages that compute it from its operands.

The declarations say what is computed, not how; multiplying and adding stay separate stages, which the schedule inlines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ansor import te
from ansor.errors import ModelError
from ansor.graph.ir import BINARY, ELEMENTWISE, Node
from ansor.graph.scalar_functions import FORMULAS, OF_ONE, PAIRS
from ansor.support.bfloat16 import BFLOAT16
from ansor.te import nn
from ansor.te.expr import Const, Expr, Reduce, binary, is_float
from ansor.te.nn.gathering import place
from ansor.te.nn.normalization import NEGLIGIBLE, log_softmax_above, softmax_above
from ansor.te.tensor import Tensor, axes_of, declared


def declare(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    """The node's result, computed from `inputs`. Raises ModelError if the declaration does not have the node's shape and dtype."""
    result = _elementwise(node, inputs, name) if node.op in ELEMENTWISE else _heavy(node, inputs, name)
    if node.dtype == BFLOAT16:
        result = _stored(result)
    if result.shape != node.shape or result.dtype != node.dtype:
        raise ModelError(f"the declaration of `{node}` is {result.dtype} of shape {result.shape}: a mistake in ansor.graph")
    return result


def _stored(result: Tensor) -> Tensor:
    """The result rounded to bfloat16: in its own stage, or in a further stage if its own is a reduction."""
    compute = result.compute
    assert compute is not None
    if not isinstance(compute.body, Reduce):
        return replace(result, dtype=BFLOAT16, compute=replace(compute, body=te.cast(BFLOAT16, compute.body)))
    axes = axes_of(result.shape)
    return declared(f"{result.name}_rounded", axes, te.cast(BFLOAT16, result[axes]))


def _heavy(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    rule = _DECLARE.get(node.op)
    if rule is None:
        raise ModelError(f"the graph has the node `{node}`, which has no declaration: a mistake in ansor.graph")
    return rule(node, inputs, name)


def _elementwise(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    """One stage: the node's scalar function of the operands' elements, broadcast."""
    axes = axes_of(node.shape)
    values = [tensor[_broadcast_index(tensor, axes)] for tensor in inputs]
    if node.op == "cast":
        return declared(name, axes, te.cast(node.dtype, values[0]) if node.dtype != "bool" else _different_from_zero(values[0]))
    if node.op in BINARY:
        return declared(name, axes, _binary(node, values))
    if node.op == "where":
        return declared(name, axes, te.if_then_else(_condition(values[0]), *_with_scalar(node, values[1:])))
    if node.op == "quantise":
        return declared(name, axes, _quantise(node, *values))
    return declared(name, axes, UNARY_FUNCTIONS[node.op](node, values[0]))


def _broadcast_index(tensor: Tensor, axes: Sequence[te.Axis]) -> tuple[Expr, ...]:
    last = axes[len(axes) - tensor.ndim :]
    return tuple(axis if axis.extent == extent else Const(0, "int32") for axis, extent in zip(last, tensor.shape, strict=True))


def _different_from_zero(value: Expr) -> Expr:
    return value if value.dtype == "bool" else binary("ne", value, te.const(0, value.dtype))


def _condition(value: Expr) -> Expr:
    return _different_from_zero(value)


def _with_scalar(node: Node, values: Sequence[Expr]) -> list[Expr]:
    """The operands, including the attribute `scalar` if there is one."""
    if "scalar" not in node.attributes:
        return list(values)
    number = te.const(node.number("scalar"), values[0].dtype)
    return [number, values[0]] if node.attributes["scalar_first"] else [values[0], number]


_BINARY = {"maximum": "max", "minimum": "min", "logical_and": "and", "logical_or": "or"}


def _binary(node: Node, values: Sequence[Expr]) -> Expr:
    left, right = _with_scalar(node, values)
    if node.op in PAIRS:
        return PAIRS[node.op](left, right)
    return binary(_BINARY.get(node.op, node.op), left, right)


def _softplus(node: Node, x: Expr) -> Expr:
    # log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|)
    return te.if_then_else(x > node.number("threshold"), x, te.max(x, 0.0) + te.log(te.exp(-te.abs(x)) + 1.0))


def _gelu(node: Node, x: Expr) -> Expr:
    if node.text("approximate") == "tanh":
        return x * 0.5 * (te.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)
    return x * 0.5 * (te.erf(x * math.sqrt(0.5)) + 1.0)


def _clip(node: Node, x: Expr) -> Expr:
    low, high = node.attributes["low"], node.attributes["high"]
    if low is not None:
        x = te.max(x, te.const(node.number("low"), x.dtype))
    return te.min(x, te.const(node.number("high"), x.dtype)) if high is not None else x


def _quantise(node: Node, x: Expr, steps: Expr, zero_point: Expr) -> Expr:
    """steps: quantisation steps per unit of `x`, the inverse of the scale. Both parameters are operands, so that layers with different ones share a kernel."""
    whole = te.round(x * steps) + zero_point
    return te.cast(node.dtype, te.min(te.max(whole, float(node.integer("low"))), float(node.integer("high"))))


def _dequantise(node: Node, q: Expr) -> Expr:
    return (te.cast(node.dtype, q) - float(node.integer("zero_point"))) * te.const(node.number("scale"), node.dtype)


Function = Callable[[Node, Expr], Expr]


def _scalar(function: Callable[[Expr], Expr]) -> Function:
    return lambda node, x: function(x)


_SAME_NAME = ("abs", "ceil", "cos", "erf", "exp", "floor", "log", "log2", "round", "rsqrt", "sigmoid", "sin", "sqrt", "tanh", "trunc",
              "logical_not")
UNARY_FUNCTIONS: Mapping[str, Function] = {
    **{name: _scalar(getattr(te, name)) for name in _SAME_NAME},
    **{name: _scalar(function) for name, function in OF_ONE.items()},
    **{name: _scalar(function) for name, (function, _) in FORMULAS.items()},
    "neg": _scalar(lambda x: x * -1 if is_float(x.dtype) else -x),  # 0 - x loses the sign of zeros
    "relu": _scalar(lambda x: te.max(x, 0)),
    "silu": _scalar(lambda x: x * te.sigmoid(x)),
    "hardsigmoid": _scalar(lambda x: te.min(te.max(x + 3.0, 0.0), 6.0) / 6.0),
    "hardswish": _scalar(lambda x: x * te.min(te.max(x + 3.0, 0.0), 6.0) / 6.0),
    "leaky_relu": lambda node, x: te.if_then_else(x > 0.0, x, x * node.number("slope")),
    "elu": lambda node, x: te.if_then_else(x > 0.0, x, (te.exp(te.min(x, 0.0)) - 1.0) * node.number("alpha")),
    "softplus": _softplus,
    "gelu": _gelu,
    "clip": _clip,
    "dequantise": _dequantise,
}


def _convolution(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    function = {"conv1d": nn.conv1d, "conv2d": nn.conv2d, "conv3d": nn.conv3d}[node.op]
    data, weight = inputs[:2]
    layout = node.text("layout")
    result = function(data, weight, node.integers("strides"), node.integers("padding"), node.integers("dilation"), node.integer("groups"), layout, name=name)
    return _biased(result, inputs, layout)


def _transposed_convolution(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    functions = {"conv1d_transpose": nn.conv1d_transpose, "conv2d_transpose": nn.conv2d_transpose, "conv3d_transpose": nn.conv3d_transpose}
    data, weight = inputs[:2]
    layout = node.text("layout")
    result = functions[node.op](data, weight, node.integers("strides"), node.integers("padding"), None, node.integers("output_padding"),
                                node.integer("groups"), layout, name=name)
    return _biased(result, inputs, layout)


def _biased(result: Tensor, inputs: Sequence[Tensor], layout: str) -> Tensor:
    return result if len(inputs) < 3 else nn.bias_add(result, inputs[2], layout.index("C"), name="bias_add")


def _dense(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    result = nn.dense(inputs[0], inputs[1], name=name)
    return result if len(inputs) < 3 else nn.bias_add(result, inputs[2], -1, name="bias_add")


def _integer_dense(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    """Sums of products of bytes, [rows, in] by [out, in], exact in 32 bits, minus `offsets`, times `scales`, plus a bias, each [out]."""
    data, weight, offsets, scales, *bias = inputs
    sums = nn.dense(data, weight, out_dtype="int32", name=name)

    def one(row: te.Axis, column: te.Axis) -> Expr:
        real = te.cast("float32", sums[row, column] - offsets[column]) * scales[column]
        return real + bias[0][column] if bias else real

    return te.compute(node.shape, one, name=f"{name}_real")


def _pool(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    function = {"pool1d": nn.pool1d, "pool2d": nn.pool2d, "pool3d": nn.pool3d}[node.op]
    return function(inputs[0], node.integers("kernel"), node.integers("strides"), node.integers("dilation"), node.integers("padding"), node.text("kind"),
                    bool(node.attributes["ceil_mode"]), node.text("layout"), bool(node.attributes["count_include_pad"]), f"{node.text('kind')}_{name}")


def _adaptive_pool(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    layout = node.text("layout")
    size = tuple(extent for letter, extent in zip(layout, node.shape, strict=True) if letter not in "NC")
    return nn.adaptive_pool(inputs[0], size, node.text("kind"), layout, name)


def _reduction(function: Callable[..., Tensor]) -> Callable[[Node, Sequence[Tensor], str], Tensor]:
    return lambda node, inputs, name: function(inputs[0], node.integers("axes"), bool(node.attributes["keepdims"]), name)


def _layer_norm(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    scale, shift = inputs[1:] if len(inputs) == 3 else (None, None)
    return nn.layer_norm(inputs[0], scale, shift, node.integers("axes"), node.number("epsilon"), name)


def _slice(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    axes = axes_of(node.shape)
    starts, steps = node.integers("starts"), node.integers("steps")
    return declared(name, axes, inputs[0][tuple(axis * step + start for axis, start, step in zip(axes, starts, steps, strict=True))])


def _index(node: Node, inputs: Sequence[Tensor], name: str) -> Tensor:
    """Index the dimensions `dims` of the first operand with the other operands. These are broadcast to one shape: the result's dimensions from `at` on."""
    data, *places = inputs
    dims, at, rank = node.integers("dims"), node.integer("at"), node.integer("common")
    axes = axes_of(node.shape)
    common, rest = axes[at : at + rank], iter(axes[:at] + axes[at + rank :])
    found = {dim: place(name, one, _broadcast_index(one, common), data.shape[dim]) for dim, one in zip(dims, places, strict=True)}
    return declared(name, axes, data[tuple(found[dim] if dim in found else next(rest) for dim in range(data.ndim))])


def _least(node: Node) -> float | None:
    """How far below the largest an input of a softmax is negligible; None in double precision, in which exp(-100) is a normal number."""
    return None if node.dtype == "float64" else NEGLIGIBLE


_DECLARE: Mapping[str, Callable[[Node, Sequence[Tensor], str], Tensor]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), _transposed_convolution),
    **dict.fromkeys(("pool1d", "pool2d", "pool3d"), _pool),
    **dict.fromkeys(("adaptive_pool1d", "adaptive_pool2d", "adaptive_pool3d"), _adaptive_pool),
    "dense": _dense,
    "integer_dense": _integer_dense,
    "batch_matmul": lambda node, inputs, name: nn.batch_matmul(inputs[0], inputs[1], False, bool(node.attributes["transpose_b"]), name=name),
    "mean": _reduction(nn.mean),
    "sum": _reduction(nn.sum),
    "max": _reduction(nn.max),
    "min": _reduction(nn.min),
    "prod": _reduction(nn.prod),
    "softmax": lambda node, inputs, name: softmax_above(_least(node), inputs[0], node.integer("axis"), name),
    "log_softmax": lambda node, inputs, name: log_softmax_above(_least(node), inputs[0], node.integer("axis"), name),
    "layer_norm": _layer_norm,
    "transpose": lambda node, inputs, name: nn.transpose(inputs[0], node.integers("axes"), name),
    "pad": lambda node, inputs, name: nn.pad(inputs[0], node.integers("before"), node.integers("after"), node.number("value"), name),
    "concat": lambda node, inputs, name: nn.concatenate(inputs, node.integer("axis"), name),
    "slice": _slice,
    "embedding": lambda node, inputs, name: nn.embedding(inputs[1], inputs[0], name),
    "expand": lambda node, inputs, name: nn.broadcast_to(inputs[0], node.shape, name),
    "index": _index,
    "gather": lambda node, inputs, name: nn.gather(inputs[0], node.integer("axis"), inputs[1], name),
    "argmax": lambda node, inputs, name: nn.argmax(inputs[0], node.integers("axes"), bool(node.attributes["keepdims"]), name=name),
    "argmin": lambda node, inputs, name: nn.argmin(inputs[0], node.integers("axes"), bool(node.attributes["keepdims"]), name=name),
    "cumsum": lambda node, inputs, name: nn.cumsum(inputs[0], node.integer("axis"), name=name),
    "cumprod": lambda node, inputs, name: nn.cumprod(inputs[0], node.integer("axis"), name=name),
}
