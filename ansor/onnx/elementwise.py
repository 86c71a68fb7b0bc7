"""ONNX's elementwise operators: a table of those that PyTorch also has, and functions for the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as f

from ansor.onnx.call import Call, Translation, computes

ONE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan, "Atanh": torch.atanh,
    "BitwiseNot": torch.bitwise_not, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh, "Det": torch.linalg.det, "Erf": torch.erf, "Exp": torch.exp,
    "Floor": torch.floor, "HardSwish": f.hardswish, "Identity": lambda x: x, "IsNaN": torch.isnan, "Log": torch.log, "Mish": f.mish, "Neg": torch.neg,
    "Not": torch.logical_not, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid,
    "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)), "Softsign": f.softsign, "Sqrt": torch.sqrt,
    "Tan": torch.tan, "Tanh": torch.tanh,
}  # fmt: skip

TWO: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "Add": torch.add, "And": torch.logical_and, "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor,
    "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le, "Mul": torch.mul,
    "Or": torch.logical_or, "Sub": torch.sub,
    "Xor": torch.logical_xor,
}  # fmt: skip

MANY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {"Max": torch.maximum, "Min": torch.minimum, "Sum": torch.add}

DTYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 11: torch.float64,
          16: torch.bfloat16}
"""PyTorch's dtypes, by ONNX's numbers."""


def _of_one(function: Callable[[torch.Tensor], torch.Tensor]) -> Translation:
    return lambda call: function(call.tensor())


def _of_two(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Translation:
    return lambda call: function(call.tensor(0), call.tensor(1))


def _of_many(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Translation:
    return lambda call: reduce(function, call.tensors())


for _name, _unary in ONE.items():
    computes(_name)(_of_one(_unary))
for _name, _binary in TWO.items():
    computes(_name)(_of_two(_binary))
for _name, _binary in MANY.items():
    computes(_name)(_of_many(_binary))


@computes("Mean")
def mean(call: Call) -> torch.Tensor:
    return reduce(torch.add, call.tensors()) / len(call.operands)


@computes("Div")
def divide(call: Call) -> torch.Tensor:
    left, right = call.tensor(0), call.tensor(1)
    return torch.div(left, right) if left.dtype.is_floating_point else torch.div(left, right, rounding_mode="trunc")


@computes("Mod")
def modulo(call: Call) -> torch.Tensor:
    return (torch.fmod if call.integer("fmod", 0) else torch.remainder)(call.tensor(0), call.tensor(1))


@computes("Pow")
def power(call: Call) -> torch.Tensor:
    base, exponent = call.tensor(0), call.operands[1]
    if isinstance(exponent, np.ndarray) and exponent.size == 1 and exponent.ndim <= base.ndim:
        return torch.pow(base, exponent.item()).to(base.dtype)
    return torch.pow(base, call.tensor(1)).to(base.dtype)


@computes("Sign")
def sign(call: Call) -> torch.Tensor:
    """NaN for NaN, where PyTorch returns 0."""
    x = call.tensor()
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


@computes("BitShift")
def shift(call: Call) -> torch.Tensor:
    left = call.word("direction", "LEFT", "RIGHT") == "LEFT"
    return (torch.bitwise_left_shift if left else torch.bitwise_right_shift)(call.tensor(0), call.tensor(1))


@computes("Clip")
def clip(call: Call) -> torch.Tensor:
    x = call.tensor()
    low, high = (_bound(call, place) for place in (1, 2))
    if low is not None:
        x = torch.maximum(x, low) if isinstance(low, torch.Tensor) else x.clamp(min=low)
    if high is not None:
        x = torch.minimum(x, high) if isinstance(high, torch.Tensor) else x.clamp(max=high)
    return x


def _bound(call: Call, place: int) -> torch.Tensor | float | None:
    value = call.operands[place] if call.has(place) else None
    if isinstance(value, np.ndarray) and value.size != 1:
        raise call.refused(f"a bound of the shape {list(value.shape)}")
    return value.item() if isinstance(value, np.ndarray) else value


@computes("LeakyRelu")
def leaky_relu(call: Call) -> torch.Tensor:
    return f.leaky_relu(call.tensor(), call.number("alpha", 0.01))


@computes("PRelu")
def prelu(call: Call) -> torch.Tensor:
    x = call.tensor()
    return torch.where(x < 0, x * call.tensor(1), x)


@computes("Elu")
def elu(call: Call) -> torch.Tensor:
    return f.elu(call.tensor(), call.number("alpha", 1.0))


@computes("Celu")
def celu(call: Call) -> torch.Tensor:
    return f.celu(call.tensor(), call.number("alpha", 1.0))


@computes("Selu")
def selu(call: Call) -> torch.Tensor:
    x, alpha = call.tensor(), call.number("alpha", 1.67326319217681884765625)
    return call.number("gamma", 1.05070102214813232421875) * torch.where(x > 0, x, alpha * torch.expm1(x))


@computes("HardSigmoid")
def hard_sigmoid(call: Call) -> torch.Tensor:
    return (call.number("alpha", 0.2) * call.tensor() + call.number("beta", 0.5)).clamp(0.0, 1.0)


@computes("ThresholdedRelu")
def thresholded_relu(call: Call) -> torch.Tensor:
    x = call.tensor()
    return torch.where(x > call.number("alpha", 1.0), x, 0.0)


@computes("Shrink")
def shrink(call: Call) -> torch.Tensor:
    x, bias, edge = call.tensor(), call.number("bias", 0.0), call.number("lambd", 0.5)
    return torch.where(x < -edge, x + bias, torch.where(x > edge, x - bias, 0)).to(x.dtype)


@computes("Gelu")
def gelu(call: Call) -> torch.Tensor:
    return f.gelu(call.tensor(), approximate=call.text("approximate", "none"))


@computes("Swish")
def swish(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x * torch.sigmoid(call.number("alpha", 1.0) * x)


@computes("IsInf")
def isinf(call: Call) -> torch.Tensor:
    x, below, above = call.tensor(), call.integer("detect_negative", 1), call.integer("detect_positive", 1)
    if below and above:
        return torch.isinf(x)
    return torch.isneginf(x) if below else torch.isposinf(x) if above else torch.zeros_like(x, dtype=torch.bool)


@computes("Where")
def where(call: Call) -> torch.Tensor:
    return torch.where(call.tensor(0), call.tensor(1), call.tensor(2))


@computes("Cast")
def cast(call: Call) -> torch.Tensor:
    dtype = DTYPES.get(call.integer("to", 0))
    if dtype is None:
        raise call.refused(f"a conversion to ONNX's dtype {call.integer('to', 0)}")
    return call.tensor().to(dtype)


@computes("CastLike")
def cast_like(call: Call) -> torch.Tensor:
    return call.tensor(0).to(call.tensor(1).dtype)


@computes("Dropout")
def dropout(call: Call) -> torch.Tensor | tuple[torch.Tensor, ...]:
    x = call.tensor()
    if call.has(2) and bool(call.array(2).item()):
        raise call.refused("training_mode=True")
    return (x, torch.ones_like(x, dtype=torch.bool)) if len(call.node.outputs) > 1 else x
