"""ONNX's convolutions, pooling and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import torch
import torch.nn.functional as f

from ansor.onnx.call import Call, computes


def _pads(call: Call, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Zeros to add before and after each dimension."""
    rank, how = len(kernel), _padding(call)
    if how == "VALID":
        return [(0, 0)] * rank
    if how in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for extent, width, stride, step in zip(extents, kernel, strides, dilation, strict=True):
            total = max((ceil(extent / stride) - 1) * stride + step * (width - 1) + 1 - extent, 0)
            found.append((total // 2, total - total // 2) if how == "SAME_UPPER" else (total - total // 2, total // 2))
        return found
    pads = call.listed("pads", (0,) * (2 * rank))
    return list(zip(pads[:rank], pads[rank:], strict=True))


def _padding(call: Call) -> str:
    return call.word("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def _pad_arguments(pads: Sequence[tuple[int, int]]) -> list[int]:
    """Paddings in PyTorch's order: last dimension first."""
    return [amount for pair in reversed(pads) for amount in pair]


@computes("Conv")
def convolution(call: Call) -> torch.Tensor:
    x, weight = call.tensor(0), call.tensor(1)
    rank = weight.dim() - 2
    strides, dilation = call.listed("strides", (1,) * rank), call.listed("dilations", (1,) * rank)
    pads = _pads(call, x.shape[2:], weight.shape[2:], strides, dilation)
    if any(low != high for low, high in pads):
        x, pads = f.pad(x, _pad_arguments(pads)), [(0, 0)] * rank
    if rank not in (1, 2, 3):
        raise call.refused(f"{rank} spatial dimensions")
    function = (f.conv1d, f.conv2d, f.conv3d)[rank - 1]
    return function(x, weight, call.optional(2), tuple(strides), tuple(low for low, _ in pads), tuple(dilation), call.integer("group", 1))


@computes("ConvTranspose")
def transposed_convolution(call: Call) -> torch.Tensor:
    x, weight = call.tensor(0), call.tensor(1)
    rank = weight.dim() - 2
    strides, dilation, extra = (call.listed(name, (value,) * rank) for name, value in (("strides", 1), ("dilations", 1), ("output_padding", 0)))
    full = [(n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in zip(x.shape[2:], strides, dilation, weight.shape[2:], extra, strict=True)]
    wanted = call.node.attributes.get("output_shape")
    how = _padding(call)
    pads = list(zip(call.listed("pads", (0,) * 2 * rank)[:rank], call.listed("pads", (0,) * 2 * rank)[rank:], strict=True))
    if wanted is not None or how.startswith("SAME"):
        sizes = call.listed("output_shape", [n * s for n, s in zip(x.shape[2:], strides, strict=True)])[-rank:]
        totals = [max(have - want, 0) for have, want in zip(full, sizes, strict=True)]
        extra = [more + max(want - have, 0) for more, have, want in zip(extra, full, sizes, strict=True)]
        pads = [(t // 2, t - t // 2) if how == "SAME_UPPER" else (t - t // 2, t // 2) for t in totals]
    common = tuple(min(pair) for pair in pads)
    if rank not in (1, 2, 3) or any(more >= max(stride, step) for more, stride, step in zip(extra, strides, dilation, strict=True)):
        raise call.refused(f"{rank} spatial dimensions, or an output padding of {extra}")
    function = (f.conv_transpose1d, f.conv_transpose2d, f.conv_transpose3d)[rank - 1]
    made = function(x, weight, call.optional(2), tuple(strides), common, tuple(extra), call.integer("group", 1), tuple(dilation))
    for axis, ((low, high), least) in enumerate(zip(pads, common, strict=True), start=2):
        made = made.narrow(axis, low - least, made.shape[axis] - low - high + 2 * least)
    return made


@computes("MaxPool", "AveragePool", "LpPool")
def pool(call: Call) -> torch.Tensor | tuple[torch.Tensor, ...]:
    x, kernel = call.tensor(), call.listed("kernel_shape", ())
    rank = len(kernel)
    if rank not in (1, 2, 3):
        raise call.refused(f"{rank} spatial dimensions")
    strides, dilation = call.listed("strides", (1,) * rank), call.listed("dilations", (1,) * rank)
    pads = _pads(call, x.shape[2:], kernel, strides, dilation)
    ceil_mode = bool(call.integer("ceil_mode", 0))
    if len(call.node.outputs) == 1 and call.node.op != "LpPool" and x.dtype.is_floating_point and _is_of_torch(call, pads, kernel, dilation):
        return _plain_pool(call, x, (kernel, strides, dilation), [low for low, _ in pads], ceil_mode)
    inside = _reaching(pads, x.shape[2:], kernel, strides, dilation) if ceil_mode else pads
    if call.node.op == "MaxPool":
        if len(call.node.outputs) > 1:
            return _pool_with_places(call, x, kernel, strides, dilation)
        low = -float("inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
        x = f.pad(x, _pad_arguments(inside), value=low) if any(map(any, inside)) else x
        return (f.max_pool1d, f.max_pool2d, f.max_pool3d)[rank - 1](x, kernel, strides, 0, tuple(dilation))
    return _sums(call, x, kernel, strides, dilation, inside)


def _is_of_torch(call: Call, pads: Sequence[tuple[int, int]], kernel: Sequence[int], dilation: Sequence[int]) -> bool:
    """Whether PyTorch's pooling supports this padding."""
    even = all(low == high and 2 * low <= width for (low, high), width in zip(pads, kernel, strict=True))
    return even and (call.node.op == "MaxPool" or set(dilation) == {1})


def _plain_pool(call: Call, x: torch.Tensor, windows: tuple[list[int], list[int], list[int]], padding: list[int], ceil_mode: bool) -> torch.Tensor:
    kernel, strides, dilation = windows
    rank = len(kernel)
    if call.node.op == "MaxPool":
        return (f.max_pool1d, f.max_pool2d, f.max_pool3d)[rank - 1](x, kernel, strides, padding, dilation, ceil_mode)
    return (f.avg_pool1d, f.avg_pool2d, f.avg_pool3d)[rank - 1](x, kernel, strides, padding, ceil_mode, bool(call.integer("count_include_pad", 0)))


def _pool_with_places(call: Call, x: torch.Tensor, kernel: list[int], strides: list[int], dilation: list[int]) -> tuple[torch.Tensor, ...]:
    rank, pads = len(kernel), _pads(call, x.shape[2:], kernel, strides, dilation)
    if any(low != high for low, high in pads) or call.integer("storage_order", 0):
        raise call.refused("indices of maxima with uneven padding or in column order")
    function = (f.max_pool1d, f.max_pool2d, f.max_pool3d)[rank - 1]
    value, place = function(x, kernel, strides, tuple(low for low, _ in pads), tuple(dilation), bool(call.integer("ceil_mode", 0)), return_indices=True)
    size = 1
    for extent in x.shape[2:]:
        size *= extent
    images = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *(1,) * rank)
    return value, place + images * size  # ONNX counts over all images and channels


def _reaching(pads: Sequence[tuple[int, int]], extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
              dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Padding that lets windows extend beyond the end, but not start there."""
    found = []
    for (low, high), extent, width, stride, step in zip(pads, extents, kernel, strides, dilation, strict=True):
        span = step * (width - 1) + 1
        places = ceil((extent + low + high - span) / stride) + 1
        places -= (places - 1) * stride >= extent + low
        found.append((low, max((places - 1) * stride + span - extent - low, 0)))
    return found


def _sums(call: Call, x: torch.Tensor, kernel: list[int], strides: list[int], dilation: list[int], pads: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Sums over windows, as a convolution of each channel with ones, divided as the operator requires."""
    rank, p = len(kernel), call.integer("p", 2)
    norm = call.node.op == "LpPool"
    value = x.abs() ** p if norm else x
    ones = torch.ones(1, 1, *kernel, dtype=x.dtype)
    function = (f.conv1d, f.conv2d, f.conv3d)[rank - 1]

    def summed(given: torch.Tensor) -> torch.Tensor:
        flat = f.pad(given, _pad_arguments(pads)).reshape(-1, 1, *(n + low + high for n, (low, high) in zip(given.shape[2:], pads, strict=True)))
        made = function(flat, ones, None, tuple(strides), 0, tuple(dilation))
        return made.reshape(*given.shape[:2], *made.shape[2:])

    if norm:
        return summed(value) ** (1.0 / p)
    counted = torch.ones(1, 1, *x.shape[2:], dtype=x.dtype)
    if call.integer("count_include_pad", 0):
        own = _pads(call, x.shape[2:], kernel, strides, dilation)
        counted = f.pad(counted, _pad_arguments(own), value=1.0)
        pads_of = [(low - a, high - b) for (low, high), (a, b) in zip(pads, own, strict=True)]
        wide = f.pad(counted, _pad_arguments(pads_of))
        return summed(value) / function(wide, ones, None, tuple(strides), 0, tuple(dilation))
    return summed(value) / summed(counted)


@computes("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: Call) -> torch.Tensor:
    x = call.tensor()
    axes = tuple(range(2, x.dim()))
    if call.node.op == "GlobalLpPool":
        p = call.integer("p", 2)
        return (x.abs() ** p).sum(axes, True) ** (1.0 / p)
    return x.mean(axes, True) if call.node.op == "GlobalAveragePool" else x.amax(axes, True)


@computes("MatMul")
def matmul(call: Call) -> torch.Tensor:
    return torch.matmul(call.tensor(0), call.tensor(1))


@computes("Gemm")
def gemm(call: Call) -> torch.Tensor:
    left, right = call.tensor(0), call.tensor(1)
    left = left.t() if call.integer("transA", 0) else left
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    if call.integer("transB", 0) and call.has(2) and alpha == beta == 1.0 and call.tensor(2).shape == right.shape[:1]:
        return f.linear(left, right, call.tensor(2))
    made = left @ (right.t() if call.integer("transB", 0) else right)
    made = made * alpha if alpha != 1.0 else made
    made = made + (call.tensor(2) * beta if beta != 1.0 else call.tensor(2)) if call.has(2) else made
    return made.to(left.dtype)  # also for integers


@computes("Einsum")
def einsum(call: Call) -> torch.Tensor:
    return torch.einsum(call.text("equation", ""), *call.tensors())


@computes("GridSample")
def grid_sample(call: Call) -> torch.Tensor:
    how = {"linear": "bilinear", "cubic": "bicubic"}.get(call.text("mode", "linear"), call.text("mode", "linear"))
    return f.grid_sample(call.tensor(0), call.tensor(1), how, call.text("padding_mode", "zeros"), bool(call.integer("align_corners", 0)))
