"""ATen's calls that move elements without computing: views, permutations, slices, concatenation, padding, look-ups."""

from __future__ import annotations

from math import prod

from ansor.graph.aten.indexing import padded_from_inside
from ansor.graph.aten.translation import AtenCall, Builder, translates


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


@translates("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.flatten.using_ints", "aten.unflatten.int",
            "aten.unsqueeze.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.view_as.default",
            "aten.reshape_as.default")
def reshape(call: AtenCall, build: Builder) -> str:
    return build.reshape(call.tensor("self"), call.result.shape, call.name)


@translates("aten.permute.default")
def permute(call: AtenCall, build: Builder) -> str:
    axes = call.list("dims")
    return build.transpose(call.tensor("self"), [_axis(axis, len(axes)) for axis in axes], call.name)


@translates("aten.transpose.int", "aten.t.default", "aten.numpy_T.default", "aten.mT.default")
def transpose(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    rank = len(build.shape(source))
    axes = list(range(rank))
    first, second = call.arguments.get("dim0", -2), call.arguments.get("dim1", -1)
    assert isinstance(first, int) and isinstance(second, int)
    if rank < 2:
        return source
    if call.operator == "aten.numpy_T.default":
        return build.transpose(source, axes[::-1], call.name)
    a, b = _axis(first, rank), _axis(second, rank)
    axes[a], axes[b] = b, a
    return build.transpose(source, axes, call.name)


@translates("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def expand(call: AtenCall, build: Builder) -> str:
    source, shape = call.tensor("self"), call.result.shape
    if prod(shape) == build.values[source].size:
        return build.reshape(source, shape, call.name)
    return build.add("expand", [source], shape, call.result.dtype, call.name)


@translates("aten.repeat.default")
def repeat(call: AtenCall, build: Builder) -> str:
    source, shape = call.tensor("self"), call.result.shape
    times = call.list("repeats")
    old = (1,) * (len(shape) - len(build.shape(source))) + build.shape(source)
    # [a, b] repeated (m, n) is [1, a, 1, b] broadcast to [m, a, n, b], viewed as [m a, n b]
    apart = [extent for pair in zip((1,) * len(old), old, strict=True) for extent in pair]
    wide = [extent for pair in zip(times, old, strict=True) for extent in pair]
    if prod(wide) == prod(apart):
        return build.reshape(source, shape, call.name)
    return build.reshape(build.add("expand", [build.reshape(source, apart)], wide, call.result.dtype), shape, call.name)


@translates("aten.cat.default", "aten.concat.default")
def concat(call: AtenCall, build: Builder) -> str:
    return _concat(call, build)


def _concat(call: AtenCall, build: Builder) -> str:
    parts = [build.cast(name, call.result.dtype) for name in call.tensors("tensors") if build.values[name].size]
    axis = _axis(call.integer("dim"), len(call.result.shape))
    return parts[0] if len(parts) == 1 else build.add("concat", parts, call.result.shape, call.result.dtype, call.name, axis=axis)


@translates("aten.stack.default")
def stack(call: AtenCall, build: Builder) -> str:
    axis = _axis(call.integer("dim"), len(call.result.shape))
    shape = [1 if i == axis else extent for i, extent in enumerate(call.result.shape)]
    parts = [build.reshape(build.cast(name, call.result.dtype), shape) for name in call.tensors("tensors")]
    return build.add("concat", parts, call.result.shape, call.result.dtype, call.name, axis=axis)


def _sliced(build: Builder, source: str, axis: int, start: int, extent: int, step: int, hint: str) -> str:
    """`extent` elements of `axis` from `start` on, each `step`-th."""
    shape = build.shape(source)
    if extent == shape[axis]:
        return source
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    steps = tuple(step if i == axis else 1 for i in range(len(shape)))
    result = shape[:axis] + (extent,) + shape[axis + 1 :]
    return build.add("slice", [source], result, build.dtype(source), hint, starts=starts, steps=steps)


def _start(value: object, extent: int) -> int:
    start = value if isinstance(value, int) else 0
    return min(max(start + extent if start < 0 else start, 0), extent)


@translates("aten.slice.Tensor", "aten.narrow.default")
def slice_(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    axis = _axis(call.integer("dim"), len(call.result.shape))
    step = call.arguments.get("step", 1)
    assert isinstance(step, int)
    start = _start(call.arguments.get("start"), build.shape(source)[axis])
    return _sliced(build, source, axis, start, call.result.shape[axis], step, call.name)


@translates("aten.select.int")
def select(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    axis = _axis(call.integer("dim"), len(build.shape(source)))
    start = _axis(call.integer("index"), build.shape(source)[axis])
    return build.reshape(_sliced(build, source, axis, start, 1, 1, call.name), call.result.shape, call.name)


@translates("aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default", "aten.unsafe_split.Tensor", "aten.unsafe_chunk.default")
def split(call: AtenCall, build: Builder) -> list[str | None]:
    source = call.tensor("self")
    axis = _axis(call.integer("dim"), len(build.shape(source)))
    parts: list[str | None] = []
    start = 0
    for index, result in enumerate(call.results):
        parts.append(_sliced(build, source, axis, start, result.shape[axis], 1, f"{call.name}_{index}"))
        start += result.shape[axis]
    return parts


@translates("aten.unbind.int")
def unbind(call: AtenCall, build: Builder) -> list[str | None]:
    source = call.tensor("self")
    axis = _axis(call.integer("dim"), len(build.shape(source)))
    hint = call.name
    return [build.reshape(_sliced(build, source, axis, i, 1, 1, hint), result.shape, hint) for i, result in enumerate(call.results)]


PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""PyTorch's names of padding modes, and NumPy's."""


@translates("aten.constant_pad_nd.default", "aten.pad.default")
def pad(call: AtenCall, build: Builder) -> str:
    widths = call.list("pad")
    mode = call.arguments.get("mode", "constant")
    if mode in PAD_MODES:
        return padded_from_inside(build, call.tensor("self"), widths, PAD_MODES[str(mode)], call.name)
    source = call.tensor("self")
    rank = len(build.shape(source))
    for index in range(len(widths) // 2):  # negative padding removes elements
        axis, low, high = rank - 1 - index, -min(widths[2 * index], 0), -min(widths[2 * index + 1], 0)
        source = _sliced(build, source, axis, low, build.shape(source)[axis] - low - high, 1, call.name)
    widths = tuple(max(width, 0) for width in widths)
    if not any(widths):
        return source
    before, after = [0] * rank, [0] * rank
    for index in range(len(widths) // 2):  # PyTorch lists the last dimension first
        before[rank - 1 - index], after[rank - 1 - index] = widths[2 * index], widths[2 * index + 1]
    value = call.arguments.get("value") or 0
    return build.add("pad", [source], call.result.shape, call.result.dtype, call.name, before=tuple(before), after=tuple(after), value=value)


@translates("aten.pixel_shuffle.default")
def pixel_shuffle(call: AtenCall, build: Builder) -> str:
    source, factor = call.tensor("self"), call.integer("upscale_factor")
    *batch, channels, height, width = build.shape(source)
    images, fewer = prod(batch), channels // factor**2
    apart = build.reshape(source, (images, fewer, factor, factor, height, width))
    return build.reshape(build.transpose(apart, (0, 1, 4, 2, 5, 3)), call.result.shape, call.name)


@translates("aten.embedding.default")
def embedding(call: AtenCall, build: Builder) -> str:
    return build.add("embedding", [call.tensor("weight"), call.tensor("indices")], call.result.shape, call.result.dtype, call.name)


@translates("aten.copy.default")
def copy(call: AtenCall, build: Builder) -> str:
    """The second operand in the shape and dtype of the first."""
    source = build.cast(call.tensor("src"), call.result.dtype)
    if build.shape(source) == call.result.shape:
        return source
    return build.add("expand", [source], call.result.shape, call.result.dtype, call.name)


@translates("prims.broadcast_in_dim.default")
def broadcast_in_dim(call: AtenCall, build: Builder) -> str:
    """Dimension `i` of the operand is dimension `broadcast_dimensions[i]` of the result."""
    source, shape = call.tensor("a"), call.result.shape
    apart = [1] * len(shape)
    for extent, dim in zip(build.shape(source), call.list("broadcast_dimensions"), strict=True):
        apart[dim] = extent
    source = build.reshape(source, apart)
    return source if tuple(apart) == shape else build.add("expand", [source], shape, call.result.dtype, call.name)


@translates("prims.collapse.default", "prims.collapse_view.default", "prims.split_dim.default", "prims.squeeze.default", "prims.reshape.default")
def primitive_reshape(call: AtenCall, build: Builder) -> str:
    return build.reshape(call.tensor("a"), call.result.shape, call.name)


@translates("prims.transpose.default")
def primitive_transpose(call: AtenCall, build: Builder) -> str:
    return build.transpose(call.tensor("a"), call.list("permutation"), call.name)


@translates("prims.cat.default")
def primitive_concat(call: AtenCall, build: Builder) -> str:
    return _concat(call, build)
