"""Translates the ATen calls between dequantise and quantise to ONNX operators. The table `TRANSLATIONS` has a function for each form of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from ansor.errors import ModelError

Translated = tuple[str, Sequence[object], dict[str, Any]]
"""The type of the ONNX operator; its operands (nodes, arrays, None if omitted); its attributes."""


class Call:
    """A call in a program, with its arguments by their names in the operator's schema, including defaults."""

    def __init__(self, node: torch.fx.Node) -> None:
        self.name = node.name
        self.operator = _name_of(node.target)
        self.shape = tuple(node.meta["val"].shape) if isinstance(node.meta["val"], torch.Tensor) else ()
        self.arguments: dict[str, Any] = {}
        if not isinstance(node.target, torch._ops.OpOverload):
            self.arguments = {"self": node.args[0], "index": node.args[1]} if self.operator == "getitem" else {}
            return
        for place, one in enumerate(node.target._schema.arguments):
            given = node.args[place] if place < len(node.args) else node.kwargs.get(one.name, one.default_value)
            self.arguments[one.name] = list(given) if isinstance(given, (list, tuple)) else given

    def __str__(self) -> str:
        return f"{self.operator} {self.name}"

    @property
    def source(self) -> str:
        """The name of its first operand."""
        first = next(iter(self.arguments.values()), None)
        return first.name if isinstance(first, torch.fx.Node) else ""

    def pair(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An argument for height and width, both the same if it is one number."""
        given = self.arguments.get(name)
        found = [given] if isinstance(given, int) else list(given or default)
        return found * 2 if len(found) == 1 else found

    def refuse(self, name: str, *allowed: object) -> None:
        """Raises ModelError unless an argument has one of the allowed values."""
        if self.arguments.get(name) not in allowed:
            raise ModelError(f"the {self} has {name}={self.arguments[name]!r:.60}; only {' or '.join(map(str, allowed))} is supported")


def _name_of(target: object) -> str:
    """The name of an operator. In-place operators get the names of those that return a new tensor."""
    return str(target).replace("_.", ".") if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _convolution(call: Call) -> Translated:
    given = call.arguments
    call.refuse("transposed", None, False)
    attributes = {"strides": call.pair("stride", (1, 1)), "dilations": call.pair("dilation", (1, 1)), "group": int(given["groups"])}
    padding = given["padding"]
    if isinstance(padding, str):
        attributes["auto_pad"] = {"same": "SAME_UPPER", "valid": "VALID"}[padding]
    else:
        attributes["pads"] = call.pair("padding") * 2
    return "Conv", [given["input"], given["weight"], given["bias"]], attributes


def _linear(call: Call) -> Translated:
    return "Gemm", [call.arguments["input"], call.arguments["weight"], call.arguments["bias"]], {"transB": 1}


def _addmm(call: Call) -> Translated:
    call.refuse("alpha", 1)
    call.refuse("beta", 1)
    return "Gemm", [call.arguments["mat1"], call.arguments["mat2"], call.arguments["self"]], {}


def _sum(op: str, call: Call) -> Translated:
    call.refuse("alpha", 1)
    return op, [call.arguments["self"], call.arguments["other"]], {}


def _clip(low: str | float, high: str | float, call: Call) -> Translated:
    ends = {key: call.arguments[one] if isinstance(one, str) else one for key, one in (("min", low), ("max", high))}
    return "Clip", [call.arguments["self"]], {key: float(end) for key, end in ends.items() if end is not None}


def _pool(op: str, call: Call) -> Translated:
    kernel = call.pair("kernel_size")
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": call.pair("stride", kernel), "pads": call.pair("padding", (0, 0)) * 2}
    attributes["ceil_mode"] = int(call.arguments["ceil_mode"])
    if op == "MaxPool":
        attributes["dilations"] = call.pair("dilation", (1, 1))
    else:
        call.refuse("divisor_override", None)
        attributes["count_include_pad"] = int(call.arguments["count_include_pad"])
    return op, [call.arguments["self"]], attributes


def _adaptive(call: Call) -> Translated:
    source = call.arguments["self"]
    image, wanted = tuple(source.meta["val"].shape[-2:]), call.shape[-2:]
    if any(extent % pieces for extent, pieces in zip(image, wanted, strict=True)):
        raise ModelError(f"the {call} makes {list(wanted)} from {list(image)}; only sizes that divide the image, with equal windows, are supported")
    kernel = [extent // pieces for extent, pieces in zip(image, wanted, strict=True)]
    return "AveragePool", [source], {"kernel_shape": kernel, "strides": kernel}


def _mean(call: Call) -> Translated:
    return "ReduceMean", [call.arguments["self"]], {"axes": call.arguments["dim"] or [], "keepdims": int(call.arguments["keepdim"])}


def _reshape(call: Call) -> Translated:
    return "Reshape", [call.arguments["self"], np.array(call.shape, np.int64)], {}


def _cat(call: Call) -> Translated:
    return "Concat", call.arguments["tensors"], {"axis": int(call.arguments["dim"])}


def _pad(call: Call) -> Translated:
    call.refuse("mode", None, "constant")
    call.refuse("value", None, 0)
    given = call.arguments["pad"]
    if len(given) != 4:
        raise ModelError(f"the {call} pads by {given}; only padding of height and width before a convolution is supported")
    left, right, top, bottom = given
    return "Pad", [call.arguments["self"]], {"pads": [0, 0, top, left, 0, 0, bottom, right]}


def _first(call: Call) -> Translated:
    call.refuse("index", 0)
    return "Identity", [call.arguments["self"]], {}


def _dropout(call: Call) -> Translated:
    call.refuse("train", False)
    return "Identity", [call.arguments["input"]], {}


def _function(op: str, call: Call, **attributes: object) -> Translated:
    return op, [next(iter(call.arguments.values()))], attributes


def _leaky(call: Call) -> Translated:
    return "LeakyRelu", [call.arguments["self"]], {"alpha": float(call.arguments["negative_slope"])}


TRANSLATIONS: dict[str, Callable[[Call], Translated]] = {
    "aten.conv2d.default": _convolution, "aten.conv2d.padding": _convolution, "aten.convolution.default": _convolution,
    "aten.linear.default": _linear, "aten.addmm.default": _addmm, "aten.mm.default": lambda call: ("MatMul", list(call.arguments.values()), {}),
    "aten.matmul.default": lambda call: ("MatMul", list(call.arguments.values()), {}),
    "aten.add.Tensor": partial(_sum, "Add"), "aten.sub.Tensor": partial(_sum, "Sub"), "aten.cat.default": _cat,
    "aten.relu.default": partial(_function, "Relu"), "aten.relu6.default": partial(_clip, 0.0, 6.0),
    "aten.hardtanh.default": partial(_clip, "min_val", "max_val"), "aten.clamp.default": partial(_clip, "min", "max"),
    "aten.max_pool2d.default": partial(_pool, "MaxPool"), "aten.max_pool2d_with_indices.default": partial(_pool, "MaxPool"), "getitem": _first,
    "aten.avg_pool2d.default": partial(_pool, "AveragePool"), "aten.adaptive_avg_pool2d.default": _adaptive, "aten._adaptive_avg_pool2d.default": _adaptive,
    "aten.mean.dim": _mean, "aten.flatten.using_ints": _reshape, "aten.view.default": _reshape, "aten.reshape.default": _reshape,
    "aten._unsafe_view.default": _reshape, "aten.squeeze.dim": _reshape, "aten.squeeze.dims": _reshape, "aten.unsqueeze.default": _reshape,
    "aten.pad.default": _pad, "aten.constant_pad_nd.default": _pad, "aten.dropout.default": _dropout,
    "aten.clone.default": partial(_function, "Identity"), "aten.contiguous.default": partial(_function, "Identity"),
    "aten.sigmoid.default": partial(_function, "Sigmoid"), "aten.tanh.default": partial(_function, "Tanh"), "aten.leaky_relu.default": _leaky,
    "aten.hardsigmoid.default": partial(_function, "HardSigmoid", alpha=1 / 6, beta=0.5), "aten.hardswish.default": partial(_function, "HardSwish"),
    "aten.softmax.int": partial(_function, "Softmax"), "aten._softmax.default": partial(_function, "Softmax"),
    "aten.log_softmax.int": partial(_function, "LogSoftmax"), "aten._log_softmax.default": partial(_function, "LogSoftmax"),
}  # fmt: skip
"""Translations by the name of the call."""
