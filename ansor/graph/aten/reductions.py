"""ATen's reductions other than sums, means and extremes: any and all, argmin and argmax, variances, running sums."""

from __future__ import annotations

from math import prod

import numpy as np

from ansor.graph.aten.translation import AtenCall, Builder, StaysWhole, Translation, Unsupported, translates
from ansor.graph.dtypes import FLOATS
from ansor.te.expr import computed

LONGEST_SCAN = 512
"""The longest dimension for which a running sum becomes a kernel: the kernel adds up all previous elements anew for each element."""


def _axes(call: AtenCall, rank: int, key: str = "dim") -> tuple[int, ...]:
    """The dimensions to reduce, all of them by default."""
    given = call.arguments.get(key)
    return tuple(range(rank)) if given in (None, [], ()) else tuple(sorted(axis % rank for axis in call.list(key))) if rank else ()


def _truth(op: str) -> Translation:
    def translation(call: AtenCall, build: Builder) -> str:
        if call.result.dtype != "bool":
            raise Unsupported("only boolean results are translated")
        source = build.cast(build.cast(call.tensor("self"), "bool"), "uint8")
        axes = _axes(call, len(build.shape(source)))
        if axes:
            source = build.add(op, [source], call.result.shape, "uint8", call.name, axes=axes, keepdims=call.flag("keepdim"))
        return build.cast(source, "bool")

    return translation


translates("aten.any.default", "aten.any.dim", "aten.any.dims")(_truth("max"))
translates("aten.all.default", "aten.all.dim", "aten.all.dims")(_truth("min"))


@translates("aten.argmax.default", "aten.argmin.default")
def place_of_extreme(call: AtenCall, build: Builder) -> str:
    return _place(call, build, call.operator.split(".")[1])


def _place(call: AtenCall, build: Builder, op: str) -> str:
    source = call.tensor("self")
    if build.dtype(source) == "bool":
        source = build.cast(source, "uint8")
    shape = build.shape(source)
    dim = call.arguments.get("dim")
    keep = call.flag("keepdim")
    result = call.results[-1].shape
    if not shape:
        return build.constant(call.name, np.zeros(result, np.int64))
    axes = tuple(range(len(shape))) if dim is None else (call.integer("dim") % len(shape),)
    name = build.add(op, [source], result, "int32", call.name, axes=axes, keepdims=keep)
    return build.cast(name, "int64")


@translates("aten.max.dim", "aten.min.dim")
def extreme_and_place(call: AtenCall, build: Builder) -> list[str | None]:
    source = call.tensor("self")
    if build.dtype(source) == "bool" or not build.shape(source):
        raise Unsupported("only extremes of numbers along a dimension are translated")
    op = call.operator.split(".")[1]
    axis = call.integer("dim") % len(build.shape(source))
    value = build.add(op, [source], call.result.shape, call.result.dtype, call.name, axes=(axis,), keepdims=call.flag("keepdim"))
    return [value, _place(call, build, f"arg{op}")]


@translates("aten.prod.default", "aten.prod.dim_int", "prims.prod.default")
def product(call: AtenCall, build: Builder) -> str:
    key = "dim" if call.operator != "prims.prod.default" else "dims"
    source = build.cast(call.tensor("self" if key == "dim" else "inp"), call.result.dtype)
    axes = _axes(call, len(build.shape(source)), key)
    if not axes:
        return source
    return build.add("prod", [source], call.result.shape, call.result.dtype, call.name, axes=axes, keepdims=call.flag("keepdim"))


@translates("prims.sum.default", "prims.amax.default", "prims.amin.default")
def primitive(call: AtenCall, build: Builder) -> str:
    op = {"sum": "sum", "amax": "max", "amin": "min"}[call.operator.split(".")[1]]
    source = build.cast(call.tensor("inp"), call.result.dtype)
    axes = _axes(call, len(build.shape(source)), "dims")
    return build.add(op, [source], call.result.shape, call.result.dtype, call.name, axes=axes, keepdims=False) if axes else source


def _moments(call: AtenCall, build: Builder, source: str, axes: tuple[int, ...], keep: bool) -> tuple[str, str]:
    """Variance and mean, in two passes over the elements. The variance divides by their number minus `correction`."""
    shape, given_dtype = build.shape(source), build.dtype(source)
    if given_dtype not in FLOATS:
        raise Unsupported(f"it is translated only for bfloat16, float32 and float64, not for {given_dtype}")
    dtype = computed(given_dtype)
    source = build.cast(source, dtype)
    given = call.arguments.get("correction")
    correction = 1.0 if given is None else float(call.number("correction"))
    count = prod(shape[axis] for axis in axes)
    if count <= correction:
        raise Unsupported(f"the variance of {count} elements with a correction of {correction:g} is not translated")
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    mean = build.add("mean", [source], kept, dtype, axes=axes, keepdims=True)
    apart = build.binary("sub", source, mean)
    squares = build.add("sum", [build.binary("mul", apart, apart)], kept, dtype, axes=axes, keepdims=True)
    variance = build.binary("mul", squares, 1.0 / (count - correction))
    result = kept if keep else tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    return build.cast(build.reshape(variance, result), given_dtype), build.cast(build.reshape(mean, result), given_dtype)


@translates("aten.var.correction", "aten.std.correction", "prims.var.default")
def variance(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self" if "self" in call.arguments else "inp")
    axes = _axes(call, len(build.shape(source)), "dim" if "self" in call.arguments else "dims")
    made, _ = _moments(call, build, source, axes, call.flag("keepdim"))
    return build.unary("sqrt", made, call.name) if "std" in call.operator else made


@translates("aten.var_mean.correction", "aten.std_mean.correction")
def variance_and_mean(call: AtenCall, build: Builder) -> list[str | None]:
    source = call.tensor("self")
    made, mean = _moments(call, build, source, _axes(call, len(build.shape(source))), call.flag("keepdim"))
    return [build.unary("sqrt", made, call.name) if "std" in call.operator else made, mean]


@translates("aten.cumsum.default", "aten.cumprod.default")
def running(call: AtenCall, build: Builder) -> str:
    source = build.cast(call.tensor("self"), call.result.dtype)
    rank = len(build.shape(source))
    if rank == 0:
        return source
    axis = call.integer("dim") % rank
    if call.result.shape[axis] > LONGEST_SCAN:
        raise StaysWhole(f"a kernel would take {call.result.shape[axis]}^2 / 2 steps for it")
    return build.add(call.operator.split(".")[1], [source], call.result.shape, call.result.dtype, call.name, axis=axis)
