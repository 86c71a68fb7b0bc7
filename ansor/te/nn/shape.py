"""Operators that move elements: concatenate, transpose, reshape, slices, and data-dependent reads (take, embedding)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr, cast
from ansor.te.nn.layout import whole_numbers
from ansor.te.nn.reduction import dimension_of, dimensions_of
from ansor.te.scalar import if_then_else
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, axes_of, declared

_ZERO = Const(0, "int32")


def concatenate(tensors: Sequence[Tensor], axis: int = 0, name: str = "concatenate") -> Tensor:
    """The tensors, one after another along dimension `axis`."""
    if not tensors:
        raise DeclarationError(f"asked for {name} of no tensor; give at least one")
    first = tensors[0]
    chosen = dimension_of(name, first, axis)
    for tensor in tensors[1:]:
        if tensor.dtype != first.dtype or _other(tensor.shape, chosen) != _other(first.shape, chosen):
            raise DeclarationError(
                f"asked for {name} along dimension {chosen} of {first.name} ({first.dtype}, shape {first.shape}) and {tensor.name} ({tensor.dtype}, "
                f"shape {tensor.shape}); dtype, rank and all other extents have to be equal"
            )
    ends = [0]
    for tensor in tensors:
        ends.append(ends[-1] + tensor.shape[chosen])
    axes = axes_of((*first.shape[:chosen], ends[-1], *first.shape[chosen + 1:]))
    body: Expr | None = None
    for tensor, start, end in reversed(list(zip(tensors, ends, ends[1:], strict=False))):
        value = tensor[(*axes[:chosen], axes[chosen] - start, *axes[chosen + 1:])]
        body = value if body is None else if_then_else(axes[chosen] < end, value, body)
    assert body is not None
    return declared(name, axes, body)


def transpose(a: Tensor, axes: Sequence[int] | None = None, name: str = "transpose") -> Tensor:
    """Reorder dimensions: output dimension d is dimension axes[d] of `a`; None reverses them."""
    order = tuple(reversed(range(a.ndim))) if axes is None else tuple(d + a.ndim if d < 0 else d for d in axes)
    if sorted(order) != list(range(a.ndim)):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} by axes {axes}; each of 0..{a.ndim - 1} has to occur once")
    out = axes_of(tuple(a.shape[d] for d in order))
    index = {d: axis for d, axis in zip(order, out, strict=True)}
    return declared(name, out, a[tuple(index[d] for d in range(a.ndim))])


def reshape(a: Tensor, newshape: int | Sequence[int], name: str = "reshape") -> Tensor:
    """The same elements in memory order under another shape; one extent may be -1.

    Groups of dimensions with equal products are handled separately, so that most reads need no division.
    """
    shape = _completed(name, a, whole_numbers(newshape))
    axes = axes_of(shape)
    index: list[Expr] = []
    for olds, news in _matching(a.shape, shape):
        flat = _flattened([axes[d] for d in news])
        index += _unflattened(flat, [a.shape[d] for d in olds])
    return declared(name, axes, a[tuple(index)])


def flatten(data: Tensor, start_axis: int = 1, end_axis: int = -1, name: str = "flatten") -> Tensor:
    """Dimensions start_axis..end_axis joined into one; by default all but the first."""
    first, last = dimension_of(name, data, start_axis), dimension_of(name, data, end_axis)
    if first > last:
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} from dimension {start_axis} to {end_axis}, which comes before it")
    return reshape(data, (*data.shape[:first], math.prod(data.shape[first:last + 1]), *data.shape[last + 1:]), name)


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None, name: str = "squeeze") -> Tensor:
    """Remove the dimensions `axis`, which have extent 1; None: all such dimensions."""
    chosen = [d for d, extent in enumerate(a.shape) if extent == 1] if axis is None else dimensions_of(name, a, axis)
    for d in chosen:
        if a.shape[d] != 1:
            raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} in dimension {d}, which has extent {a.shape[d]}; it has to be 1")
    kept = [d for d in range(a.ndim) if d not in chosen]
    axes = axes_of(tuple(a.shape[d] for d in kept))
    index = dict(zip(kept, axes, strict=True))
    return declared(name, axes, a[tuple(index.get(d, _ZERO) for d in range(a.ndim))])


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1, name: str = "expand_dims") -> Tensor:
    """Insert `num_newaxis` dimensions of extent 1 before dimension `axis` (a negative axis counts from the end; -1 appends)."""
    place = axis + a.ndim + 1 if axis < 0 else axis
    if not 0 <= place <= a.ndim or num_newaxis < 1:
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} at dimension {axis}, {num_newaxis} times; "
            f"the dimension is in {-a.ndim - 1}..{a.ndim}, the number at least 1"
        )
    axes = axes_of((*a.shape[:place], *(1,) * num_newaxis, *a.shape[place:]))
    return declared(name, axes, a[axes[:place] + axes[place + num_newaxis:]])


def strided_slice(a: Tensor, begin: Sequence[int | None], end: Sequence[int | None], strides: Sequence[int] | None = None,
                  axes: Sequence[int] | None = None,
                  name: str = "strided_slice") -> Tensor:
    """a[begin[0]:end[0]:strides[0], ...] with Python's meaning of negative values; missing trailing dimensions are taken whole.

    axes: the dimensions that the values are for, instead of the leading ones.
    """
    steps = tuple(strides) if strides is not None else (1,) * len(begin)
    which = tuple(range(len(begin))) if axes is None else tuple(dimension_of(name, a, axis) for axis in axes)
    if not len(begin) == len(end) == len(steps) == len(set(which)) == len(which) <= a.ndim or 0 in steps:
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} by begin={tuple(begin)}, end={tuple(end)}, strides={steps}, axes={axes}; "
            f"give one value each for the same dimensions, the leading ones or those of axes=, at most {a.ndim}, and no stride 0"
        )
    ranges = [range(extent) for extent in a.shape]
    for d, first, last, step in zip(which, begin, end, steps, strict=True):
        ranges[d] = range(a.shape[d])[first:last:step]
        if not ranges[d]:
            raise DeclarationError(f"asked for {name} {first}:{last}:{step} of {a.name} with shape {a.shape} in dimension {d}, which is empty")
    out = axes_of(tuple(map(len, ranges)))
    return declared(name, out, a[tuple(axis * taken.step + taken.start for axis, taken in zip(out, ranges, strict=True))])


def broadcast_to(a: Tensor, shape: Sequence[int], name: str = "broadcast_to") -> Tensor:
    """`a` repeated along dimensions of extent 1, and along new leading dimensions, to `shape`."""
    wanted = tuple(shape)
    lead = len(wanted) - a.ndim
    if lead < 0 or any(have not in (1, want) for have, want in zip(a.shape, wanted[max(lead, 0):], strict=True)):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} to shape {wanted}; its extents have to be equal to the last of these, or 1")
    axes = axes_of(wanted)
    return declared(name, axes, a[tuple(axis if have == axis.extent else _ZERO for axis, have in zip(axes[lead:], a.shape, strict=True))])


def take(a: Tensor, indices: Tensor, axis: int | None = None, mode: str = "clip", name: str = "take") -> Tensor:
    """Slices of `a` along dimension `axis` (None: of `a` flattened) at the places that the integer tensor `indices` holds.

    In the output, the dimensions of `indices` replace that one. Places outside are clamped to the nearest end (mode "clip") or wrap around (mode "wrap").
    """
    if mode not in ("clip", "wrap"):
        raise DeclarationError(f"asked for {name} of {a.name} with mode {mode!r}; it is 'clip' or 'wrap'")
    if not (indices.dtype.startswith("int") or indices.dtype == "uint8"):
        raise DeclarationError(f"asked for {name} of {a.name} at {indices.name}, which has dtype {indices.dtype}; indices are integers: use te.nn.cast first")
    if axis is None:
        a, axis = reshape(a, -1, f"{name}_flat"), 0
    chosen = dimension_of(name, a, axis)
    axes = axes_of((*a.shape[:chosen], *indices.shape, *a.shape[chosen + 1:]))
    place = indices[axes[chosen:chosen + indices.ndim]]
    if place.dtype in ("int8", "int16", "uint8"):
        place = cast("int32", place)  # the extent may not fit the narrow type
    extent = a.shape[chosen]
    bounded = lesser(greater(place, 0), extent - 1) if mode == "clip" else place % extent
    return declared(name, axes, a[(*axes[:chosen], bounded, *axes[chosen + indices.ndim:])])


def embedding(indices: Tensor, weight: Tensor, name: str = "embedding") -> Tensor:
    """Row indices[...] of weight [rows, features], for each index: [..., features]. Argument order as in `torch.nn.functional.embedding`."""
    if weight.ndim != 2:
        raise DeclarationError(f"asked for {name} with weight {weight.name} of shape {weight.shape}; it has to have two dimensions: rows, features")
    return take(weight, indices, 0, "clip", name)


def _other(shape: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    return shape[:dimension] + shape[dimension + 1:]


def _completed(name: str, a: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    known = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and known and a.size % known == 0:
        shape = tuple(a.size // known if extent == -1 else extent for extent in shape)
    if math.prod(shape) != a.size or any(extent < 1 for extent in shape):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape}, {a.size} elements, to shape {shape}; give extents of that product")
    return shape


def _matching(olds: tuple[int, ...], news: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The smallest consecutive groups of dimensions of both shapes with equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    old = new = 0
    while old < len(olds) or new < len(news):
        left: list[int] = []
        right: list[int] = []
        size_left = size_right = 1
        while not (left or right) or size_left != size_right:
            if old < len(olds) and (size_left <= size_right or new == len(news)):
                left.append(old)
                size_left *= olds[old]
                old += 1
            else:
                right.append(new)
                size_right *= news[new]
                new += 1
        groups.append((left, right))
    return groups


def _flattened(axes: Sequence[Axis]) -> Expr:
    flat: Expr = _ZERO
    for axis in axes:
        flat = flat * axis.extent + axis if axis.extent > 1 else flat
    return flat


def _unflattened(flat: Expr, extents: Sequence[int]) -> list[Expr]:
    index: list[Expr] = []
    inner = math.prod(extents)
    for position, extent in enumerate(extents):
        outermost = all(before == 1 for before in extents[:position])
        inner //= extent
        place = flat // inner
        index.append(_ZERO if extent == 1 else place if outermost else place % extent)
    return index
