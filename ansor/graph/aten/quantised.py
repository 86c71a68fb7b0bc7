"""The calls that PyTorch's PT2E inserts into a graph: they quantise floats to 8 bits, and dequantise them again."""

from __future__ import annotations

import numpy as np

from ansor.graph.aten.translation import AtenCall, Builder, Integers, Unsupported, translates

_PREFIX = "quantized_decomposed"
OF_CONSTANTS = (f"{_PREFIX}.dequantize_per_tensor.default", f"{_PREFIX}.dequantize_per_channel.default")
BYTES = ("int8", "uint8")
INT32 = 1 << 31


@translates(f"{_PREFIX}.quantize_per_tensor.default")
def quantise(call: AtenCall, build: Builder) -> str:
    data = call.tensor("input")
    if build.dtype(data) != "float32" or call.result.dtype not in BYTES:
        raise Unsupported(f"it is translated only from float32 to 8 bits, not from {build.dtype(data)} to {call.result.dtype}")
    operands = [data, build.number(1 / float(call.number("scale")), "float32"), build.number(call.integer("zero_point"), "float32")]
    low, high = call.integer("quant_min"), call.integer("quant_max")
    return build.add("quantise", operands, call.result.shape, call.result.dtype, call.name, low=low, high=high)


@translates(f"{_PREFIX}.dequantize_per_tensor.default")
def dequantise(call: AtenCall, build: Builder) -> str:
    data = call.tensor("input")
    if build.dtype(data) not in BYTES or call.result.dtype != "float32":
        raise Unsupported(f"it is translated only from 8 bits to float32, not from {build.dtype(data)} to {call.result.dtype}")
    return build.add("dequantise", [data], call.result.shape, "float32", call.name, scale=float(call.number("scale")), zero_point=call.integer("zero_point"))


def integers_of(call: AtenCall, build: Builder) -> Integers | None:
    """What a call of `OF_CONSTANTS` dequantises; None unless that is signed bytes with zero point 0, and one scale for each output or for all."""
    if call.result.dtype != "float32":
        return None
    values = build.required_constant(call.tensor("input"))
    by_channel = call.operator == OF_CONSTANTS[1]
    scales = build.required_constant(call.tensor("scales")) if by_channel else np.full(1, call.number("scale"))
    zeros = build.required_constant(call.tensor("zero_points")) if by_channel and call.arguments.get("zero_points") is not None else np.zeros(1)
    zero = call.integer("zero_point") if not by_channel else 0
    if values.dtype != np.int8 or zero or np.any(zeros) or by_channel and call.integer("axis") != 0:
        return None
    return Integers(values, scales.astype(np.float32))


def integer_dense(build: Builder, data: str, weight: str, bias: str | None, name: str) -> str | None:
    """A dense layer of dequantised bytes as sums of products of the bytes, [rows, out]; None if it is not such a layer, or the sums may exceed 32 bits.

    (q - zero) * scale by w * scales is (sum of q * w - zero * sum of w) * (scale * scales): the sums are exact.
    """
    node, integers = build.nodes.get(data), build.integers.get(weight)
    if node is None or integers is None or node.op != "dequantise":
        return None
    values, zero = integers.values.astype(np.int64), node.integer("zero_point")
    out, size = values.shape
    if 255 * int(np.abs(values).sum(axis=1).max()) >= INT32 // 2:
        return None
    offsets = build.constant(f"{weight}_offsets", (zero * values.sum(axis=1)).astype(np.int32))
    factors = np.broadcast_to(np.float32(node.number("scale")) * integers.scales, out)
    scales = build.constant(f"{weight}_scales", np.ascontiguousarray(factors))
    stored = build.constant(f"{weight}_integers", integers.values)
    rows = build.reshape(node.inputs[0], (build.values[data].size // size, size))
    operands = [rows, stored, offsets, scales, *([bias] if bias else [])]
    return build.add("integer_dense", operands, (build.shape(rows)[0], out), "float32", name)
