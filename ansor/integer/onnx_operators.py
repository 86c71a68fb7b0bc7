"""Translates the ONNX operators between DequantizeLinear and QuantizeLinear. The table `OPERATORS` has a function for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ansor.errors import ModelError
from ansor.integer.onnx_file import Array, OnnxNode
from ansor.integer.onnx_values import CallerComputed, IntegerValue, Known, Padded, RealInput, Values, Weights
from ansor.integer.operators import Window
from ansor.integer.pending import Affine, Average, Concatenation, Function, Maximum, Pending, Sum, WeightedSum
from ansor.integer.rescale import Doubles

FREE = (-math.inf, math.inf)
Translation = Callable[[Values, OnnxNode], Known]


def weights_of(read: Values, node: OnnxNode, place: int, outputs: int) -> Weights:
    """The int8 weights of a node, with scales along their outputs. Subtracts 128 from uint8 weights and their zero points. Raises ModelError if a zero point
    is not 0 then, and for weights of another form."""
    found = read.known.get(node.inputs[place])
    if not isinstance(found, Weights) or found.values.dtype not in (np.int8, np.uint8):
        raise ModelError(f"the {node} has weights {node.inputs[place]} that are not 8-bit constants behind a DequantizeLinear; quantise the weights too")
    zeros = found.zero_points.astype(np.int64)
    values = found.values.astype(np.int64)
    if found.values.dtype == np.uint8:
        values, zeros = values - 128, zeros - 128
    if np.any(zeros):
        raise ModelError(f"the {node} has weights with the zero point {int(zeros[np.argmax(zeros != 0)])}; quantise weights symmetrically")
    if found.scales.size > 1 and found.axis % values.ndim != outputs:
        raise ModelError(f"the {node} has scales along dimension {found.axis} of its weights; they have to run along the outputs, dimension {outputs}")
    return replace(found, values=values.astype(np.int8))


def bias_of(read: Values, node: OnnxNode, place: int, count: int) -> Doubles:
    """The bias in real numbers, zeros if there is none."""
    if len(node.inputs) <= place or not node.inputs[place]:
        return np.zeros(count)
    return np.broadcast_to(read.constant(node, place).astype(np.float64).reshape(-1), (count,))


def whole_bias(read: Values, node: OnnxNode, place: int, scales: Doubles, count: int) -> Doubles:
    """The bias in real numbers. An int32 bias becomes exact multiples of `scales`, as the file's own scale is rounded to single precision."""
    found = read.known.get(node.inputs[place]) if len(node.inputs) > place else None
    wide = np.broadcast_to(scales, (count,))
    if isinstance(found, Weights) and found.values.dtype == np.int32 and np.allclose(found.scales, wide, rtol=1e-5, atol=0) and not np.any(found.zero_points):
        return found.values.astype(np.float64).reshape(-1) * wide
    return bias_of(read, node, place, count)


def convolution(read: Values, node: OnnxNode) -> Pending:
    before = read.known.get(node.inputs[0])
    source = before.tensor if isinstance(before, Padded) else read.stored(node)
    more = before.padding if isinstance(before, Padded) else (0, 0, 0, 0)
    found = weights_of(read, node, 1, 0)
    shape = read.build.shape(source)
    if len(shape) != 4 or found.values.ndim != 4:
        raise ModelError(f"the {node} has {len(shape) - 2} spatial dimensions; only convolutions with 2 are supported")
    groups, outputs = int(node.number("group", 1)), found.values.shape[0]
    depthwise = groups > 1 and groups == shape[1] and found.values.shape[1] == 1
    if groups < 1 or outputs % groups or found.values.shape[1] * groups != shape[1]:
        raise ModelError(f"the {node} has {groups} groups of {found.values.shape[1]} channels for {shape[1]} in and {outputs} out; groups have to divide both")
    window = window_of(node, (shape[2] + more[0] + more[2], shape[3] + more[1] + more[3]), (found.values.shape[2], found.values.shape[3]))
    around = [one + other for one, other in zip(window.padding, more, strict=True)]
    window = replace(window, padding=(around[0], around[1], around[2], around[3]), groups=1 if depthwise else groups)
    weights = found.values.transpose(2, 3, 1, 0)
    if depthwise:
        weights = found.values.reshape(groups, outputs // groups, *window.kernel).transpose(2, 3, 0, 1)
    bias = whole_bias(read, node, 2, found.scales * read.build.quantisation(source).scale, outputs)
    return WeightedSum((source,), *FREE, np.ascontiguousarray(weights), found.scales, bias, window, depthwise)


def pad(read: Values, node: OnnxNode) -> Known:
    source = read.stored(node)
    given = read.constant(node, 1).reshape(-1).tolist() if len(node.inputs) > 1 else list(node.numbers("pads", ()))
    value = read.constant(node, 2).reshape(-1).tolist() if len(node.inputs) > 2 and node.inputs[2] else [0]
    has_axes = len(node.inputs) > 3 and node.inputs[3]
    plain = not has_axes and node.attributes.get("mode", "constant") == "constant" and not any(value)
    if not plain or len(given) != 8 or any(given[place] for place in (0, 1, 4, 5)) or min(given) < 0:
        raise ModelError(f"the {node} pads by {given} with {value}; only zeros around images [N, C, H, W] before a convolution are supported")
    return Padded(source, (int(given[2]), int(given[3]), int(given[6]), int(given[7])))


def gemm(read: Values, node: OnnxNode) -> Pending:
    if (node.number("alpha", 1), node.number("beta", 1), node.number("transA", 0)) != (1, 1, 0):
        raise ModelError(f"the {node} has alpha, beta or transA; only x times W plus b is supported, with W transposed or not")
    transposed = bool(node.number("transB", 0))
    return dense(read, node, weights_of(read, node, 1, 0 if transposed else 1), transposed)


def matmul(read: Values, node: OnnxNode) -> Pending:
    return dense(read, node, weights_of(read, node, 1, 1), False)


def dense(read: Values, node: OnnxNode, found: Weights, transposed: bool) -> Pending:
    source = read.stored(node)
    shape = read.build.shape(source)
    if len(shape) != 2 or found.values.ndim != 2:
        raise ModelError(f"the {node} has shapes {list(shape)} and {list(found.values.shape)}; only two matrices are supported, the second one constant")
    weights = np.ascontiguousarray(found.values.T if transposed else found.values).astype(np.int8)
    bias = whole_bias(read, node, 2, found.scales * read.build.quantisation(source).scale, weights.shape[1])
    return WeightedSum((source,), *FREE, weights, found.scales, bias)


def add(read: Values, node: OnnxNode) -> Pending:
    for one, other in ((0, 1), (1, 0)):
        before = read.known.get(node.inputs[one])
        if isinstance(before, WeightedSum) and isinstance(read.known.get(node.inputs[other]), (np.ndarray, Weights)):
            return _with_bias(node, before, read.constant(node, other))
    return two(1, read, node)


def two(sign: int, read: Values, node: OnnxNode) -> Pending:
    """The sum or difference of two tensors."""
    sources = (read.stored(node, 0), read.stored(node, 1))
    shapes = [read.build.shape(source) for source in sources]
    if shapes[0] != shapes[1]:
        raise ModelError(f"the {node} reads tensors of shapes {list(shapes[0])} and {list(shapes[1])}; only tensors of one shape are supported")
    return Sum(sources, *FREE, sign)


def concat(read: Values, node: OnnxNode) -> Pending:
    sources = tuple(read.stored(node, place) for place in range(len(node.inputs)))
    shapes = [read.build.shape(source) for source in sources]
    axis = int(node.number("axis", 1)) % len(shapes[0])
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) != 1:
        raise ModelError(f"the {node} joins tensors of shapes {' and '.join(map(str, map(list, shapes)))} along {axis}; all others have to be equal")
    return Concatenation(sources, *FREE, axis)


def _with_bias(node: OnnxNode, before: WeightedSum, constant: Array) -> Pending:
    outputs = before.bias.size
    if constant.size not in (1, outputs) or (before.low, before.high) != FREE or before.window is not None and constant.size > 1 and constant.ndim < 3:
        raise ModelError(f"the {node} adds a constant of shape {list(constant.shape)}; only one number for each of the {outputs} outputs is supported")
    return replace(before, bias=before.bias + np.broadcast_to(constant.astype(np.float64).reshape(-1), (outputs,)))


def batch_norm(read: Values, node: OnnxNode) -> Pending:
    source = read.stored(node)
    gamma, beta, mean, variance = (read.constant(node, place).astype(np.float64).reshape(-1) for place in range(1, 5))
    shape = read.build.shape(source)
    if len(shape) not in (2, 4) or not gamma.size == beta.size == mean.size == variance.size == shape[1] or node.number("training_mode", 0):
        raise ModelError(f"the {node} reads a tensor of shape {list(shape)}; only [N, C] and [N, C, H, W] are supported, with statistics for each channel")
    factors = gamma / np.sqrt(variance + node.number("epsilon", 1e-5))
    return Affine((source,), *FREE, factors, beta - mean * factors)


def limited(low: float, high: float, read: Values, node: OnnxNode) -> Known:
    """A value limited to a range: at no cost for a pending result, by a lookup table for a tensor."""
    value = read.known.get(node.inputs[0])
    return value.limited(low, high) if isinstance(value, Pending) else Function((read.stored(node),), low, high, lambda values: values)


def clip(read: Values, node: OnnxNode) -> Known:
    ends = []
    for place, name, default in ((1, "min", -math.inf), (2, "max", math.inf)):
        given = len(node.inputs) > place and node.inputs[place]
        ends.append(float(read.constant(node, place).reshape(-1)[0]) if given else node.number(name, default))
    return limited(ends[0], ends[1], read, node)


def average_pool(read: Values, node: OnnxNode) -> Pending:
    source = read.stored(node)
    window = window_of(node, read.build.shape(source)[2:], None)
    if any(window.padding) and not node.number("count_include_pad", 0):
        raise ModelError(f"the {node} has means that leave out the padding; only count_include_pad=1, or no padding, is supported")
    return Average((source,), *FREE, window)


def global_average(read: Values, node: OnnxNode) -> Pending:
    source = read.stored(node)
    return Average((source,), *FREE, Window(_image(read, node, source)))


def reduce_mean(read: Values, node: OnnxNode) -> Known:
    source = read.stored(node)
    given = read.constant(node, 1).tolist() if len(node.inputs) > 1 and node.inputs[1] else node.numbers("axes", ())
    shape = read.build.shape(source)
    if len(shape) != 4 or sorted(axis % 4 for axis in given) != [2, 3]:
        raise ModelError(f"the {node} is the mean of {list(shape)} over {list(given)}; only the mean of images over height and width is supported")
    return Average((source,), *FREE, Window(_image(read, node, source)), flat=not node.number("keepdims", 1))


def _image(read: Values, node: OnnxNode, source: str) -> tuple[int, int]:
    shape = read.build.shape(source)
    if len(shape) != 4:
        raise ModelError(f"the {node} reads a tensor of shape {list(shape)}; only images [N, C, H, W] are supported")
    return shape[2], shape[3]


def max_pool(read: Values, node: OnnxNode) -> Pending:
    source = read.stored(node)
    return Maximum((source,), *FREE, window_of(node, _image(read, node, source), None))


def flatten(read: Values, node: OnnxNode) -> Known:
    shape = _shape(read, node)
    axis = int(node.number("axis", 1))
    return _reshaped(read, node, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def reshape(read: Values, node: OnnxNode) -> Known:
    shape = _shape(read, node)
    wanted = [int(extent) for extent in read.constant(node, 1).reshape(-1)]
    wanted = [shape[place] if extent == 0 else extent for place, extent in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        wanted[wanted.index(-1)] = math.prod(shape) // rest if rest > 0 else 0
    return _reshaped(read, node, wanted)


def squeeze(read: Values, node: OnnxNode) -> Known:
    shape = _shape(read, node)
    given = read.constant(node, 1).tolist() if len(node.inputs) > 1 and node.inputs[1] else node.numbers("axes", ())
    axes = {axis % len(shape) for axis in given} or {place for place, extent in enumerate(shape) if extent == 1}
    return _reshaped(read, node, [extent for place, extent in enumerate(shape) if place not in axes])


def unsqueeze(read: Values, node: OnnxNode) -> Known:
    shape = list(_shape(read, node))
    given = read.constant(node, 1).tolist() if len(node.inputs) > 1 and node.inputs[1] else node.numbers("axes", ())
    rank = len(shape) + len(given)
    for axis in sorted(axis % rank for axis in given):
        shape.insert(axis, 1)
    return _reshaped(read, node, shape)


def _shape(read: Values, node: OnnxNode) -> tuple[int, ...]:
    """The shape of the value to reshape: a tensor, an element-wise function of one, or an input that is not quantised yet."""
    value = read.known.get(node.inputs[0], read.raw(node.inputs[0]))
    if isinstance(value, RealInput):
        return value.shape
    return read.build.shape(value.sources[0] if isinstance(value, Function) else read.stored(node))


def _reshaped(read: Values, node: OnnxNode, shape: Sequence[int]) -> Known:
    value = read.known.get(node.inputs[0], read.raw(node.inputs[0]))
    if isinstance(value, RealInput):
        return replace(value, shape=tuple(shape))
    if isinstance(value, Function):  # the same function of the reshaped tensor
        return replace(value, sources=(read.build.reshaped(value.sources[0], tuple(shape)),))
    return IntegerValue(read.build.reshaped(read.stored(node), tuple(shape)))


def same(read: Values, node: OnnxNode) -> Known:
    return read.known[node.inputs[0]] if node.inputs[0] in read.known else IntegerValue(read.stored(node))


def constant(read: Values, node: OnnxNode) -> Known:
    value = node.attributes.get("value", node.attributes.get("value_float", node.attributes.get("value_int")))
    if value is None:
        raise ModelError(f"the {node} is neither a tensor nor a number")
    return np.asarray(value)


def left(read: Values, node: OnnxNode) -> Known:
    return CallerComputed(read.stored(node), node.op.lower())


def function(call: Callable[[Doubles], Doubles], read: Values, node: OnnxNode) -> Known:
    return Function((read.stored(node),), *FREE, call)


def leaky(read: Values, node: OnnxNode) -> Known:
    slope = node.number("alpha", 0.01)
    return function(lambda x: np.where(x < 0, slope * x, x), read, node)


def hard_sigmoid(read: Values, node: OnnxNode) -> Known:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    return function(lambda x: np.clip(alpha * x + beta, 0, 1), read, node)


def window_of(node: OnnxNode, image: Sequence[int], kernel: tuple[int, int] | None) -> Window:
    """The window that the node's attributes describe; `kernel`: the kernel size of its weights, None for a pool."""
    if len(image) != 2:
        raise ModelError(f"the {node} has {len(image)} spatial dimensions; only 2 are supported")
    taps = _pair(node, "kernel_shape", kernel)
    strides, dilation = _pair(node, "strides", (1, 1)), _pair(node, "dilations", (1, 1))
    padding = node.numbers("pads", (0, 0, 0, 0))
    if kernel is not None and taps != kernel or len(padding) != 4 or min(*taps, *strides, *dilation) < 1 or min(padding) < 0:
        raise ModelError(f"the {node} has a kernel, strides, dilations or pads that fit no image: {taps}, {strides}, {dilation}, {padding}")
    found = Window(taps, strides, (padding[0], padding[1], padding[2], padding[3]), dilation)
    auto = node.attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        found = replace(found, padding=_same(found, image, auto == "SAME_LOWER"))
    elif auto == "VALID":
        found = replace(found, padding=(0, 0, 0, 0))
    if node.number("ceil_mode", 0) and any((size + sum(found.padding[k::2]) - (taps[k] - 1) * dilation[k] - 1) % strides[k] for k, size in enumerate(image)):
        raise ModelError(f"the {node} has ceil_mode, and windows that extend beyond the image; only windows inside it are supported")
    return found


def _pair(node: OnnxNode, name: str, default: tuple[int, int] | None) -> tuple[int, int]:
    found = node.numbers(name, default or ())
    if len(found) != 2:
        raise ModelError(f"the {node} has {name}={list(found)}, which has to be two numbers: for height and width")
    return found[0], found[1]


def _same(window: Window, image: Sequence[int], lower: bool) -> tuple[int, int, int, int]:
    before, after = [], []
    for size, taps, step, apart in zip(image, window.kernel, window.strides, window.dilation, strict=True):
        total = max(0, (-(-size // step) - 1) * step + (taps - 1) * apart + 1 - size)
        less, more = total // 2, total - total // 2
        before.append(more if lower else less)
        after.append(less if lower else more)
    return before[0], before[1], after[0], after[1]


OPERATORS: dict[str, Translation] = {
    "Conv": convolution, "Pad": pad, "BatchNormalization": batch_norm,
    "Gemm": gemm, "MatMul": matmul, "Add": add, "Sub": partial(two, -1), "Concat": concat, "Relu": partial(limited, 0.0, math.inf), "Clip": clip,
    "AveragePool": average_pool, "GlobalAveragePool": global_average, "ReduceMean": reduce_mean, "MaxPool": max_pool, "Flatten": flatten,
    "Reshape": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Identity": same, "Dropout": same, "Constant": constant, "Softmax": left,
    "LogSoftmax": left, "Sigmoid": partial(function, lambda x: 1 / (1 + np.exp(-x))), "Tanh": partial(function, np.tanh), "LeakyRelu": leaky,
    "HardSigmoid": hard_sigmoid, "HardSwish": partial(function, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), "Abs": partial(function, np.abs),
    "Neg": partial(function, np.negative), "Exp": partial(function, np.exp),
}  # fmt: skip
"""Translations by the type of the node."""
