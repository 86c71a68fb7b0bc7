"""Elementwise operators: activations, arithmetic with broadcasting, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ansor.errors import DeclarationError
from ansor.te import scalar
from ansor.te.expr import Expr, Number, is_float
from ansor.te.expr import cast as cast_scalar
from ansor.te.tensor import Tensor, Whole, axes_of, broadcast, broadcast_shape, declared, element_of, elementwise


def relu(x: Tensor, name: str = "relu") -> Tensor:
    """max(x, 0)."""
    return elementwise(x, lambda v: scalar.max(v, 0), name)


def clip(x: Tensor, a_min: Number, a_max: Number, name: str = "clip") -> Tensor:
    """x limited to a_min..a_max."""
    return elementwise(x, lambda v: scalar.min(scalar.max(v, a_min), a_max), name)


def relu6(x: Tensor, name: str = "relu6") -> Tensor:
    """x limited to 0..6."""
    return clip(x, 0, 6, name)


def leaky_relu(x: Tensor, alpha: float = 0.01, name: str = "leaky_relu") -> Tensor:
    """x where x > 0, else alpha * x. Written without a select, so that it can be inlined like other arithmetic."""
    _check_float("leaky_relu", x)
    return elementwise(x, lambda v: scalar.max(v, 0) + scalar.min(v, 0) * alpha, name)


def prelu(x: Tensor, slope: Tensor, axis: int = 1, name: str = "prelu") -> Tensor:
    """x where x > 0, else slope * x; slope has one dimension, x's dimension `axis`."""
    which = axis + x.ndim if axis < 0 else axis
    if not 0 <= which < x.ndim or slope.shape != (x.shape[which],):
        raise DeclarationError(
            f"asked for {name} of {x.name} with shape {x.shape} along dimension {axis} by {slope.name} with shape {slope.shape}; it needs one dimension, "
            "of the extent found there"
        )
    axes = axes_of(x.shape)
    value = x[axes]
    return declared(name, axes, scalar.if_then_else(value > 0, value, value * slope[axes[which]]))


def sigmoid(x: Tensor, name: str = "sigmoid") -> Tensor:
    """1 / (1 + exp(-x))."""
    return elementwise(x, scalar.sigmoid, name)


def tanh(x: Tensor, name: str = "tanh") -> Tensor:
    """Hyperbolic tangent."""
    return elementwise(x, scalar.tanh, name)


def exp(x: Tensor, name: str = "exp") -> Tensor:
    """e to the power x."""
    return elementwise(x, scalar.exp, name)


def log(x: Tensor, name: str = "log") -> Tensor:
    """Natural logarithm."""
    return elementwise(x, scalar.log, name)


def sqrt(x: Tensor, name: str = "sqrt") -> Tensor:
    """Square root."""
    return elementwise(x, scalar.sqrt, name)


def rsqrt(x: Tensor, name: str = "rsqrt") -> Tensor:
    """1 / sqrt(x)."""
    return elementwise(x, scalar.rsqrt, name)


def erf(x: Tensor, name: str = "erf") -> Tensor:
    """Gauss error function."""
    return elementwise(x, scalar.erf, name)


def abs(x: Tensor, name: str = "abs") -> Tensor:
    """Absolute value."""
    return elementwise(x, scalar.abs, name)


def negative(x: Tensor, name: str = "negative") -> Tensor:
    """-x."""
    return elementwise(x, lambda v: -v, name)


def gelu(x: Tensor, approximate: str = "none", name: str = "gelu") -> Tensor:
    """x times the standard normal distribution function at x, exactly (erf) or approximately with approximate="tanh"."""
    _check_float("gelu", x)
    if approximate == "none":
        return elementwise(x, lambda v: v * 0.5 * (scalar.erf(v * math.sqrt(0.5)) + 1.0), name)
    if approximate == "tanh":
        return elementwise(x, lambda v: v * 0.5 * (scalar.tanh((v + v * v * v * 0.044715) * math.sqrt(2 / math.pi)) + 1.0), name)
    raise DeclarationError(f"asked for gelu of {x.name} with approximate={approximate!r}; it is 'none' or 'tanh'")


def silu(x: Tensor, name: str = "silu") -> Tensor:
    """x * sigmoid(x), also called swish."""
    return elementwise(x, lambda v: v * scalar.sigmoid(v), name)


def hardswish(x: Tensor, name: str = "hardswish") -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6."""
    _check_float("hardswish", x)
    return elementwise(x, lambda v: v * scalar.min(scalar.max(v + 3.0, 0.0), 6.0) / 6.0, name)


def hardsigmoid(x: Tensor, name: str = "hardsigmoid") -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    _check_float("hardsigmoid", x)
    return elementwise(x, lambda v: scalar.min(scalar.max(v + 3.0, 0.0), 6.0) / 6.0, name)


def cast(x: Tensor, dtype: str, name: str = "cast") -> Tensor:
    """Every element converted to `dtype` as C does (towards zero)."""
    return elementwise(x, lambda v: cast_scalar(dtype, v), name)


def add(x: Tensor | Number, y: Tensor | Number, name: str = "add") -> Tensor:
    """x + y, with NumPy's broadcasting; either may be a number."""
    return broadcast("add", x, y, name)


def subtract(x: Tensor | Number, y: Tensor | Number, name: str = "subtract") -> Tensor:
    """x - y, with NumPy's broadcasting; either may be a number."""
    return broadcast("sub", x, y, name)


def multiply(x: Tensor | Number, y: Tensor | Number, name: str = "multiply") -> Tensor:
    """x * y, with NumPy's broadcasting; either may be a number."""
    return broadcast("mul", x, y, name)


def divide(x: Tensor | Number, y: Tensor | Number, name: str = "divide") -> Tensor:
    """x / y of floats, with NumPy's broadcasting; either may be a number."""
    return broadcast("div", x, y, name)


def maximum(x: Tensor | Number, y: Tensor | Number, name: str = "maximum") -> Tensor:
    """The greater of x and y, with NumPy's broadcasting; either may be a number."""
    return broadcast("max", x, y, name)


def minimum(x: Tensor | Number, y: Tensor | Number, name: str = "minimum") -> Tensor:
    """The lesser of x and y, with NumPy's broadcasting; either may be a number."""
    return broadcast("min", x, y, name)


def power(x: Tensor | Number, y: Tensor | Number, name: str = "power") -> Tensor:
    """x to the power y, of floats, with NumPy's broadcasting; either may be a number."""
    return broadcast("pow", x, y, name)


def elementwise_sum(tensors: Sequence[Tensor], name: str = "elementwise_sum") -> Tensor:
    """The sum of tensors of one shape and dtype, added in order."""
    if not tensors or any((tensor.shape, tensor.dtype) != (tensors[0].shape, tensors[0].dtype) for tensor in tensors):
        raise DeclarationError(f"asked for {name} of {', '.join(map(repr, tensors)) or 'no tensor'}; give at least one, all of one shape and dtype")
    axes = axes_of(tensors[0].shape)
    total = tensors[0][axes]
    for tensor in tensors[1:]:
        total = total + tensor[axes]
    return declared(name, axes, total)


def combine(function: Callable[..., Expr], name: str, *operands: Whole) -> Tensor:
    """`function` of the operands' elements, with NumPy's broadcasting; operands may be numbers, but not all of them."""
    axes = axes_of(broadcast_shape(name, *operands))
    return declared(name, axes, function(*(element_of(operand, axes) for operand in operands)))


def scale_shift(data: Tensor, scale: Tensor, shift: Tensor, axis: int = 1, name: str = "scale_shift") -> Tensor:
    """data * scale + shift; scale and shift have one dimension, data's dimension `axis`."""
    which = axis + data.ndim if axis < 0 else axis
    for tensor in (scale, shift):
        if not 0 <= which < data.ndim or tensor.shape != (data.shape[which],):
            raise DeclarationError(
                f"asked for {name} of {data.name} with shape {data.shape} along dimension {axis} by {tensor.name} with shape {tensor.shape}; "
                "it needs one dimension, of the extent found there"
            )
    axes = axes_of(data.shape)
    return declared(name, axes, data[axes] * scale[axes[which]] + shift[axes[which]])


def _check_float(operator: str, x: Tensor) -> None:
    if not is_float(x.dtype):
        raise DeclarationError(f"asked for {operator} of {x.dtype} tensor {x.name}; it is defined for floats: use te.nn.cast first")
