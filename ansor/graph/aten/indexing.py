"""ATen's calls that read elements at indices: indexing, gathering, and orders that are known at compile time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansor.graph.aten.translation import AtenCall, Builder, Ref, Unsupported, translates
from ansor.graph.ir import Array


@translates("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(call: AtenCall, build: Builder) -> str:
    """Several indices are broadcast to one shape. Its dimensions replace the first index, or come first if the indices are not adjacent."""
    source, given = call.tensor("self"), call.arguments["indices"]
    assert isinstance(given, Sequence)
    dims = tuple(place for place, one in enumerate(given) if one is not None)
    if not dims:
        return source
    places = [counted_from_front(build, _integers(build, one), build.shape(source)[dim]) for dim, one in zip(dims, (given[dim] for dim in dims), strict=True)]
    together = dims == tuple(range(dims[0], dims[0] + len(dims)))
    return look_up(build, source, places, dims, dims[0] if together else 0, call.name)


def _integers(build: Builder, name: object) -> str:
    assert isinstance(name, Ref)
    if build.dtype(name) not in ("int64", "int32"):
        raise Unsupported(f"only int32 and int64 indices are translated, not {build.dtype(name)}")
    return str(name)


def counted_from_front(build: Builder, name: str, extent: int) -> str:
    """Make negative indices, which count from the end, non-negative."""
    known = build.known(name)
    if known is not None:
        whole = known.astype(np.int64)
        return build.constant(f"{name}_places", np.where(whole < 0, whole + extent, whole)) if (whole < 0).any() else name
    behind = build.binary("lt", name, 0, dtype="bool")
    return build.add("where", [behind, build.binary("add", name, extent), name], build.shape(name), build.dtype(name))


def look_up(build: Builder, source: str, places: Sequence[str], dims: Sequence[int], at: int, hint: str) -> str:
    """Index the dimensions `dims` of `source` with `places`, which are broadcast to one shape: the result's dimensions from `at` on."""
    common = np.broadcast_shapes(*(build.shape(one) for one in places))
    rest = [extent for dim, extent in enumerate(build.shape(source)) if dim not in dims]
    shape = (*rest[:at], *common, *rest[at:])
    return build.add("index", [source, *places], shape, build.dtype(source), hint, dims=tuple(dims), at=at, common=len(common))


def reordered(build: Builder, source: str, axis: int, order: Array, hint: str) -> str:
    """The elements along one dimension in another order, possibly with repetitions."""
    return look_up(build, source, [build.constant(f"{hint}_order", order.astype(np.int32))], (axis,), axis, hint)


@translates("aten.index_select.default")
def index_select(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    rank = len(build.shape(source))
    if rank == 0:
        return source
    axis = call.integer("dim") % rank
    places = build.reshape(call.tensor("index"), (build.values[call.tensor("index")].size,))
    return look_up(build, source, [places], (axis,), axis, call.name)


@translates("aten.take.default")
def take(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    size = build.values[source].size
    places = counted_from_front(build, call.tensor("index"), size)
    return look_up(build, build.reshape(source, (size,)), [places], (0,), 0, call.name)


@translates("aten.gather.default")
def gather(call: AtenCall, build: Builder) -> str:
    source, places = call.tensor("self"), call.tensor("index")
    rank = len(build.shape(source))
    if rank == 0 or not build.shape(places):
        return build.reshape(source, call.result.shape)
    return build.add("gather", [source, places], call.result.shape, call.result.dtype, call.name, axis=call.integer("dim") % rank)


@translates("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(call: AtenCall, build: Builder) -> str:
    source, rank = call.tensor("self"), len(build.shape(call.tensor("self")))
    first, second = call.integer("dim1") % rank, call.integer("dim2") % rank
    offset = call.integer("offset")
    along = np.arange(call.result.shape[-1], dtype=np.int32)
    places = {first: along + max(-offset, 0), second: along + max(offset, 0)}
    dims = sorted(places)
    return look_up(build, source, [build.constant(f"{call.name}_places", places[dim]) for dim in dims], dims, rank - 2, call.name)


@translates("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(call: AtenCall, build: Builder) -> str:
    """The operand is contiguous and covers its memory: the reader has checked that."""
    source, size = call.tensor("self"), build.values[call.tensor("self")].size
    shape, strides, begin = call.result.shape, call.list("stride"), call.arguments.get("storage_offset") or 0
    assert isinstance(begin, int)
    place = np.full(shape, begin, np.int64)
    for axis, stride in enumerate(strides):
        place += np.arange(shape[axis]).reshape([-1 if axis == one else 1 for one in range(len(shape))]) * stride
    if place.size and not 0 <= place.min() <= place.max() < size:
        raise Unsupported("it reads outside its operand")
    return look_up(build, build.reshape(source, (size,)), [build.constant(f"{call.name}_places", place)], (0,), 0, call.name)


@translates("aten.unfold.default")
def unfold(call: AtenCall, build: Builder) -> str:
    """Windows along one dimension; their elements become the last dimension."""
    source, width, step = call.tensor("self"), call.integer("size"), call.integer("step")
    rank = len(build.shape(source))
    axis = call.integer("dimension") % max(rank, 1)
    if rank == 0:
        return build.reshape(source, call.result.shape)
    windows = np.arange(call.result.shape[axis])[:, None] * step + np.arange(width)
    made = look_up(build, source, [build.constant(f"{call.name}_places", windows)], (axis,), axis, call.name)
    return build.transpose(made, [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1], call.name)


@translates("aten.flip.default", "prims.rev.default")
def flip(call: AtenCall, build: Builder) -> str:
    made = call.tensor("self" if "self" in call.arguments else "a")
    rank = len(build.shape(made))
    for axis in call.list("dims"):
        made = reordered(build, made, axis % rank, np.arange(build.shape(made)[axis % rank])[::-1], call.name)
    return made


@translates("aten.roll.default")
def roll(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    shape = build.shape(source)
    if not shape:
        return source
    dims = call.arguments.get("dims")
    flat = dims in (None, [], ())
    made = build.reshape(source, (build.values[source].size,)) if flat else source
    for shift, axis in zip(call.list("shifts"), [0] if flat else call.list("dims"), strict=True):
        axis %= len(build.shape(made))
        made = reordered(build, made, axis, np.roll(np.arange(build.shape(made)[axis]), shift), call.name)
    return build.reshape(made, shape, call.name)


@translates("aten.repeat_interleave.self_int")
def repeat_interleave(call: AtenCall, build: Builder) -> str:
    source, dim = call.tensor("self"), call.arguments.get("dim")
    if dim is None:
        source, dim = build.reshape(source, (build.values[source].size,)), 0
    assert isinstance(dim, int)
    axis = dim % max(len(build.shape(source)), 1)
    order = np.repeat(np.arange(build.shape(source)[axis]), call.integer("repeats"))
    return reordered(build, source, axis, order, call.name)


@translates("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default", "aten.replication_pad1d.default",
            "aten.replication_pad2d.default", "aten.replication_pad3d.default", "aten._pad_circular.default")
def pad_from_inside(call: AtenCall, build: Builder) -> str:
    return padded_from_inside(build, call.tensor("self"), call.list("padding" if "padding" in call.arguments else "pad"), _mode(call.operator), call.name)


def _mode(operator: str) -> str:
    return "reflect" if "reflection" in operator else "edge" if "replication" in operator else "wrap"


def padded_from_inside(build: Builder, made: str, widths: Sequence[int], mode: str, hint: str) -> str:
    """Pad an array with its own elements. `widths` as PyTorch lists them, the last dimension first; `mode`: NumPy's name."""
    if min(widths) < 0:
        raise Unsupported(f"negative padding is not translated (pad={list(widths)})")
    rank = len(build.shape(made))
    for place in range(len(widths) // 2):
        axis, before, after = rank - 1 - place, widths[2 * place], widths[2 * place + 1]
        if before or after:
            order: Array = np.pad(np.arange(build.shape(made)[axis]), (before, after), mode=mode)  # type: ignore[call-overload]  # one of three words
            made = reordered(build, made, axis, order, hint)
    return made
