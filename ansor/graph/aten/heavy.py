"""ATen's calls with reductions: convolutions, matrix products, pools, norms, softmax, attention, means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ansor.graph.aten.pool_places import adaptive_windows, pool_with_places, sliding_windows
from ansor.graph.aten.quantised import integer_dense
from ansor.graph.aten.translation import NO_TRANSLATION, AtenCall, Builder, Ref, Result, StaysWhole, Translation, Unsupported, translates
from ansor.graph.dtypes import FLOATS
from ansor.graph.ir import Value
from ansor.te.expr import computed

_CELLS = {"lstm": "LSTMCell", "gru": "GRUCell", "rnn_tanh": "RNNCell", "rnn_relu": "RNNCell"}


@translates(*(f"aten.{name}.{kind}" for name in _CELLS for kind in ("input", "data")))
def recurrent(call: AtenCall, build: Builder) -> str:
    """Steps that wait for each other are no kernel, but the parts of each step are."""
    cell = _CELLS[call.operator.split(".")[1]]
    raise StaysWhole(f"{NO_TRANSLATION}; write the recurrence as a loop over nn.{cell}, which compiles to kernels")


def _float_only(call: AtenCall) -> None:
    if call.result.dtype not in FLOATS:
        raise Unsupported(f"it is translated only for bfloat16, float32 and float64, not for {call.result.dtype}")


@translates("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default", "aten.conv1d.padding", "aten.conv2d.padding",
            "aten.conv3d.padding", "aten.convolution.default", "aten.conv_transpose1d.default", "aten.conv_transpose2d.input",
            "aten.conv_transpose3d.input")
def convolution(call: AtenCall, build: Builder) -> str:
    return _convolution(call, build)


def _convolution(call: AtenCall, build: Builder) -> str:
    _float_only(call)
    data, weight = call.tensor("input"), call.tensor("weight")
    rank = len(build.shape(weight)) - 2
    if len(build.shape(data)) == rank + 1:
        return _of_one_image(call, build, lambda inner: _convolution(inner, build), "input")
    ones = (1,) * rank
    strides, dilation = call.ints("stride", rank, ones), call.ints("dilation", rank, ones)
    inputs = [data, weight] + ([call.tensor("bias")] if call.tensor_or_none("bias") else [])
    if call.flag("transposed") or "transpose" in call.operator:
        return _transposed_convolution(call, build, inputs, strides, dilation)
    padding = _convolution_padding(call, build.shape(weight)[2:], dilation)
    return build.add(f"conv{rank}d", inputs, call.result.shape, call.result.dtype, call.name, strides=strides, padding=padding, dilation=dilation,
                     groups=call.integer("groups"), layout=CHANNELS_FIRST[rank])


def _transposed_convolution(call: AtenCall, build: Builder, inputs: list[str], strides: tuple[int, ...], dilation: tuple[int, ...]) -> str:
    rank = len(strides)
    if set(dilation) != {1}:
        raise Unsupported(f"dilated transposed convolutions are not translated (dilation={list(dilation)})")
    zeros = (0,) * rank
    padding, extra = call.ints("padding", rank, zeros), call.ints("output_padding", rank, zeros)
    if any(more >= stride for more, stride in zip(extra, strides, strict=True)):
        raise Unsupported(f"output_padding={list(extra)} is not smaller than stride={list(strides)}")
    # Zeros after the kernel's end, cut off again as padding, make its extent a multiple of the stride: each output phase then has the same taps.
    kernel = build.shape(inputs[1])[2:]
    tail = tuple(-extent % stride for extent, stride in zip(kernel, strides, strict=True))
    weight = build.known(inputs[1])
    if weight is None or not any(tail):
        tail = zeros
    else:
        inputs[1] = build.constant(f"{inputs[1]}_extended", np.pad(weight, [(0, 0), (0, 0), *((0, more) for more in tail)]))
    after = tuple(one + more for one, more in zip(padding, tail, strict=True))
    return build.add(f"conv{rank}d_transpose", inputs, call.result.shape, call.result.dtype, call.name, strides=strides, padding=padding + after,
                     output_padding=extra, groups=call.integer("groups"), layout=CHANNELS_FIRST[rank])


CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _convolution_padding(call: AtenCall, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Zeros before each dimension, then after each."""
    rank = len(kernel)
    padding = call.arguments.get("padding")
    if padding == "same":
        total = [step * (extent - 1) for step, extent in zip(dilation, kernel, strict=True)]
        return tuple(one // 2 for one in total) + tuple(one - one // 2 for one in total)
    if padding == "valid":
        return (0,) * (2 * rank)
    return call.ints("padding", rank, (0,) * rank) * 2


@translates("aten.linear.default")
def linear(call: AtenCall, build: Builder) -> str:
    _float_only(call)
    return _dense(call, build, call.tensor("input"), call.tensor("weight"), call.tensor_or_none("bias"))


def _dense(call: AtenCall, build: Builder, data: str, weight: str, bias: str | None) -> str:
    """A dense layer of `data [..., in]` by `weight [out, in]`."""
    out, size = build.shape(weight)
    rows = build.values[data].size // size
    in_bytes = integer_dense(build, data, weight, bias, call.name)
    if in_bytes is not None:
        return build.reshape(in_bytes, call.result.shape, call.name)
    flat = build.reshape(data, (rows, size))
    result = build.add("dense", [flat, weight] + ([bias] if bias else []), (rows, out), call.result.dtype, call.name)
    return build.reshape(result, call.result.shape, call.name)


@translates("aten.addmm.default")
def addmm(call: AtenCall, build: Builder) -> str:
    _float_only(call)
    call.required("scaled products are not translated", alpha=1, beta=1)
    bias, right = call.tensor("self"), call.tensor("mat2")
    if build.shape(bias) == build.shape(right)[1:]:
        return _dense(call, build, call.tensor("mat1"), build.transpose(right, (1, 0)), bias)
    return build.binary("add", _dense(call, build, call.tensor("mat1"), build.transpose(right, (1, 0)), None), bias, call.name)


@translates("aten.addbmm.default")
def addbmm(call: AtenCall, build: Builder) -> str:
    """beta * self + alpha * (the sum of the products of a batch): one product over the batch and the inner dimension."""
    _float_only(call)
    (batch, rows, inner), columns = build.shape(call.tensor("batch1")), build.shape(call.tensor("batch2"))[2]
    left = build.reshape(build.transpose(call.tensor("batch1"), (1, 0, 2)), (1, rows, batch * inner))
    right = build.reshape(call.tensor("batch2"), (1, batch * inner, columns))
    made = build.reshape(build.add("batch_matmul", [left, right], (1, rows, columns), call.result.dtype, transpose_b=False), (rows, columns))
    made, bias = (build.binary("mul", one, by) if by != 1 else one for one, by in ((made, call.number("alpha")), (call.tensor("self"), call.number("beta"))))
    return build.binary("add", made, bias, call.name)


@translates("aten._cdist_forward.default")
def distances(call: AtenCall, build: Builder) -> str:
    """The distance from every row of one matrix to every row of the other."""
    _float_only(call)
    p, (one, two) = float(call.number("p")), (call.tensor("x1"), call.tensor("x2"))
    first, second = build.shape(one), build.shape(two)
    apart = build.binary("sub", build.reshape(one, (*first[:-1], 1, first[-1])), build.reshape(two, (*second[:-2], 1, *second[-2:])))
    apart, axis = build.unary("abs", apart), len(call.result.shape)
    if p == 0:
        apart = build.cast(build.binary("ne", apart, 0.0, dtype="bool"), call.result.dtype)
    elif p not in (1.0, float("inf")):
        apart = build.binary("mul", apart, apart) if p == 2 else build.binary("pow", apart, p)
    made = build.add("max" if p == float("inf") else "sum", [apart], call.result.shape, call.result.dtype, call.name, axes=(axis,), keepdims=False)
    if p in (0.0, 1.0, float("inf")):
        return made
    return build.unary("sqrt", made) if p == 2 else build.binary("pow", made, 1 / p)


@translates("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matmul(call: AtenCall, build: Builder) -> str:
    _float_only(call)
    keys = ("self", "other") if "other" in call.arguments else ("self", "mat2")
    left, right = call.tensor(keys[0]), call.tensor(keys[1])
    first, second = build.shape(left), build.shape(right)
    if len(second) == 2 and len(first) >= 2 and build.known(right) is not None:
        return _dense(call, build, left, build.transpose(right, (1, 0)), None)
    if len(first) < 2 or len(second) < 2:
        raise Unsupported(f"products with a vector are not translated (shapes {first} and {second})")
    if len(second) == 2:
        first = (prod(first[:-1]), first[-1])  # the left side's batch only adds rows
    elif first[:-2] != second[:-2]:
        raise Unsupported(f"products whose batch dimensions differ are not translated (shapes {first} and {second})")
    batch = prod(first[:-2])
    right, transposed = _untransposed(build, right)
    columns = (second[-1], second[-2]) if transposed else second[-2:]
    inputs = [build.reshape(left, (batch, *first[-2:])), build.reshape(right, (batch, *columns))]
    result = build.add("batch_matmul", inputs, (batch, first[-2], second[-1]), call.result.dtype, call.name, transpose_b=transposed)
    return build.reshape(result, call.result.shape, call.name)


def _untransposed(build: Builder, name: str) -> tuple[str, bool]:
    """The operand of a transposition of the last two dimensions, or the array itself; and whether there was a transposition."""
    node = build.nodes.get(name)
    rank = len(build.shape(name))
    if node is None or node.op != "transpose" or node.integers("axes") != (*range(rank - 2), rank - 1, rank - 2):
        return name, False
    return node.inputs[0], True


@translates("aten.scaled_dot_product_attention.default")
def attention(call: AtenCall, build: Builder) -> str:
    """softmax(scale Q K^T + mask) V. A query whose keys are all masked gives zeros, as in PyTorch."""
    _float_only(call)
    call.required("attention with dropout is not translated", dropout_p=0.0)
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    batch_shape, (queries, depth), dtype = call.result.shape[:-2], build.shape(query)[-2:], call.result.dtype
    if call.flag("enable_gqa"):
        key, value = (_repeated_heads(build, name, build.shape(query)[-3]) for name in (key, value))
    query, key, value = (_expanded(build, name, (*batch_shape, *build.shape(name)[-2:])) for name in (query, key, value))
    batch, keys = prod(batch_shape), build.shape(key)[-2]
    given = call.arguments.get("scale")
    scale = float(given) if isinstance(given, (int, float)) else depth**-0.5
    flat = [build.reshape(name, (batch, *build.shape(name)[-2:])) for name in (query, key, value)]
    scores = build.add("batch_matmul", flat[:2], (batch, queries, keys), computed(dtype), f"{call.name}_scores", transpose_b=True)
    scores = build.reshape(build.binary("mul", scores, scale), (*batch_shape, queries, keys))
    mask = call.tensor_or_none("attn_mask")
    if call.flag("is_causal"):
        mask = build.constant("causal", np.tril(np.ones((queries, keys), dtype=bool)))
    shares = build.reshape(build.cast(_masked_softmax(build, scores, mask), dtype), (batch, queries, keys))
    result = build.add("batch_matmul", [shares, flat[2]], (batch, queries, build.shape(value)[-1]), dtype, call.name, transpose_b=False)
    return build.reshape(result, call.result.shape, call.name)


def _repeated_heads(build: Builder, name: str, heads: int) -> str:
    """Keys or values with each head as often as heads of queries share it."""
    *batch, given, rows, columns = build.shape(name)
    wide = _expanded(build, build.reshape(name, (*batch, given, 1, rows, columns)), (*batch, given, heads // given, rows, columns))
    return build.reshape(wide, (*batch, heads, rows, columns))


def _expanded(build: Builder, name: str, shape: Sequence[int]) -> str:
    return name if build.shape(name) == tuple(shape) else build.add("expand", [name], shape, build.dtype(name))


def _masked_softmax(build: Builder, scores: str, mask: str | None) -> str:
    shape, dtype = build.shape(scores), build.dtype(scores)
    axis = len(shape) - 1
    known = None if mask is None else build.known(mask)
    if mask is None or (known is not None and known.dtype == bool and known.all()):
        return build.unary("softmax", scores, axis=axis)
    if build.dtype(mask) != "bool":
        return build.unary("softmax", build.binary("add", scores, build.cast(mask, dtype)), axis=axis)
    seen = build.add("where", [mask, scores], shape, dtype, scalar=-1e30, scalar_first=False)
    shares = build.unary("softmax", seen, axis=axis)
    return build.add("where", [mask, shares], shape, dtype, scalar=0.0, scalar_first=False)


@translates("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")
def max_pool(call: AtenCall, build: Builder) -> str:
    return _pool(call, build, "max")


@translates("aten.max_pool1d_with_indices.default", "aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(call: AtenCall, build: Builder) -> list[str | None]:
    if 1 in call.used:
        return _pool_with_places(call, build)
    return [_pool(call, build, "max"), None]


def _pool_with_places(call: AtenCall, build: Builder) -> list[str | None]:
    source, rank = call.tensor("self"), int(call.operator.partition("pool")[2][0])
    kernel = call.ints("kernel_size", rank)
    strides, dilation, padding = call.ints("stride", rank, kernel), call.ints("dilation", rank, (1,) * rank), call.ints("padding", rank, (0,) * rank)
    windows = sliding_windows(build.shape(source)[-rank:], call.result.shape[-rank:], kernel, strides, padding, dilation)
    return pool_with_places(call, build, source, windows)


@translates("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def average_pool(call: AtenCall, build: Builder) -> str:
    divisor = call.arguments.get("divisor_override")
    if divisor is None:
        return _pool(call, build, "avg")
    assert isinstance(divisor, int)  # a window that extends past the end has the same divisor
    call.required("average pools with divisor_override are translated only without ceil_mode", ceil_mode=False)
    whole = _pool(replace(call, arguments={**call.arguments, "count_include_pad": True}), build, "avg")
    rank = int(call.operator.partition("pool")[2][0])
    return build.binary("mul", whole, prod(call.ints("kernel_size", rank)) / divisor, call.name)


def _pool(call: AtenCall, build: Builder, kind: str) -> str:
    _float_only(call)
    data = call.tensor("self")
    rank = int(call.operator.partition("pool")[2][0])
    shape = build.shape(data)
    if len(shape) == rank + 1:
        return _of_one_image(call, build, lambda inner: _pool(inner, build, kind))
    kernel = call.ints("kernel_size", rank)
    strides, dilation = call.ints("stride", rank, kernel), call.ints("dilation", rank, (1,) * rank)
    padding = call.ints("padding", rank, (0,) * rank) * 2
    return build.add(f"pool{rank}d", [data], call.result.shape, call.result.dtype, call.name, kernel=kernel, strides=strides, dilation=dilation,
                     padding=padding, kind=kind, ceil_mode=call.flag("ceil_mode"),
                     count_include_pad=bool(call.arguments.get("count_include_pad", True)), layout=CHANNELS_FIRST[rank])


@translates("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default",
            "aten.adaptive_avg_pool3d.default")
def adaptive_average_pool(call: AtenCall, build: Builder) -> str:
    return _adaptive(call, build, "avg")


@translates("aten.adaptive_max_pool1d.default", "aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(call: AtenCall, build: Builder) -> list[str | None]:
    if 1 in call.used:
        source, rank = call.tensor("self"), int(call.operator.partition("pool")[2][0])
        return pool_with_places(call, build, source, adaptive_windows(build.shape(source)[-rank:], call.result.shape[-rank:]))
    return [_adaptive(call, build, "max"), None]


def _of_one_image(call: AtenCall, build: Builder, translation: Callable[[AtenCall], str], key: str = "self") -> str:
    """Translate a call whose operand has no batch dimension as one that has."""
    source = call.tensor(key)
    batch = Ref(build.reshape(source, (1, *build.shape(source))))
    result = Value((1, *call.result.shape), call.result.dtype)
    made = translation(replace(call, arguments={**call.arguments, key: batch}, results=(result,)))
    return build.reshape(made, call.result.shape)


def _adaptive(call: AtenCall, build: Builder, kind: str) -> str:
    _float_only(call)
    data = call.tensor("self")
    rank = int(call.operator.partition("pool")[2][0])
    shape, result = build.shape(data), call.result.shape
    if len(shape) == rank + 1:
        return _of_one_image(call, build, lambda inner: _adaptive(inner, build, kind))
    if result[2:] == shape[2:]:
        return data
    if set(result[2:]) == {1}:
        op = "mean" if kind == "avg" else "max"
        return build.add(op, [data], result, call.result.dtype, call.name, axes=tuple(range(2, rank + 2)), keepdims=True)
    return build.add(f"adaptive_pool{rank}d", [data], result, call.result.dtype, call.name, kind=kind, layout=CHANNELS_FIRST[rank])


def _reduction(op: str) -> Translation:
    def translation(call: AtenCall, build: Builder) -> str:
        source = build.cast(call.tensor("self"), call.result.dtype)
        if op == "mean":
            _float_only(call)
        rank = len(build.shape(source))
        if rank == 0:
            return source
        axes = tuple(sorted(axis % rank for axis in call.list("dim"))) if call.arguments.get("dim") not in (None, [], ()) else tuple(range(rank))
        if not axes:
            return source
        keep = call.flag("keepdim")
        return build.add(op, [source], call.result.shape, call.result.dtype, call.name, axes=axes, keepdims=keep)

    return translation


translates("aten.mean.dim", "aten.mean.default")(_reduction("mean"))
translates("aten.sum.dim_IntList", "aten.sum.default")(_reduction("sum"))
translates("aten.amax.default", "aten.max.default")(_reduction("max"))
translates("aten.amin.default", "aten.min.default")(_reduction("min"))


@translates("aten.softmax.int", "aten._softmax.default", "aten.log_softmax.int", "aten._log_softmax.default")
def softmax(call: AtenCall, build: Builder) -> str:
    _float_only(call)
    source = build.cast(call.tensor("self"), call.result.dtype)
    rank = len(build.shape(source))
    if rank == 0:
        raise Unsupported("softmax of a single number is not translated")
    return build.unary("log_softmax" if "log" in call.operator else "softmax", source, call.name, axis=call.integer("dim") % rank)


@translates("aten.layer_norm.default", "aten.native_layer_norm.default")
def layer_norm(call: AtenCall, build: Builder) -> Result:
    _float_only(call)
    data, extents, dtype = call.tensor("input"), call.list("normalized_shape"), call.result.dtype
    scale, shift = call.tensor_or_none("weight"), call.tensor_or_none("bias")
    affine = []
    if scale or shift:
        affine = [scale or build.constant("ones", np.ones(extents, dtype)), shift or build.constant("zeros", np.zeros(extents, dtype))]
    rank = len(build.shape(data))
    axes = tuple(range(rank - len(extents), rank))
    name = build.add("layer_norm", [data, *affine], call.result.shape, dtype, call.name, axes=axes, epsilon=float(call.number("eps")))
    return name if call.operator == "aten.layer_norm.default" else [name, None, None]


@translates("aten.group_norm.default")
def group_norm(call: AtenCall, build: Builder) -> str:
    """Each group of channels of each image is a row, normalised by a layer norm without scales; the scales come after it, per channel."""
    _float_only(call)
    data, groups, shape, dtype = call.tensor("input"), call.integer("num_groups"), call.result.shape, call.result.dtype
    rows = build.reshape(data, (shape[0], groups, prod(shape[1:]) // groups))
    name = build.add("layer_norm", [rows], build.shape(rows), dtype, axes=(2,), epsilon=float(call.number("eps")))
    name = build.reshape(name, shape)
    for op, key in (("mul", "weight"), ("add", "bias")):
        parameter = call.tensor_or_none(key)
        if parameter is not None:
            name = build.binary(op, name, build.reshape(parameter, (shape[1], *(1,) * (len(shape) - 2))))
    return name


@translates("aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def batch_norm(call: AtenCall, build: Builder) -> Result:
    """A node for `x * scale + shift` per channel, both in double precision, so that folding them into weights rounds once."""
    _float_only(call)
    call.required("batch norm in training mode updates statistics", training=False)
    data = call.tensor("input")
    mean, variance = (build.required_constant(call.tensor(key)).astype(np.float64) for key in ("running_mean", "running_var"))
    gamma, beta = (call.tensor_or_none(key) for key in ("weight", "bias"))
    scale = 1.0 / np.sqrt(variance + call.number("eps"))
    if gamma is not None:
        scale = scale * build.required_constant(gamma).astype(np.float64)
    shift = -mean * scale
    if beta is not None:
        shift = shift + build.required_constant(beta).astype(np.float64)
    inputs = [data, build.constant(f"{call.name}_scale", scale), build.constant(f"{call.name}_shift", shift)]
    name = build.add("batch_norm", inputs, call.result.shape, call.result.dtype, call.name)
    return name if call.operator == "aten.batch_norm.default" else [name, None, None]


