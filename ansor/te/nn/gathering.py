"""Operators that read or write at places given by tensors of integers.

Places outside a tensor are clamped to its nearest element unless stated otherwise, so that no program reads out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr, Number, Reduce, as_expr, cast, is_float
from ansor.te.nn.layout import whole_numbers
from ansor.te.nn.reduction import dimension_of
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, axes_of, declared


def gather(data: Tensor, axis: int, indices: Tensor, name: str = "gather") -> Tensor:
    """Elements of `data` at places `indices` along dimension `axis`: out[i, j, k] = data[i, indices[i, j, k], k] for axis 1. The shape is that of `indices`."""
    chosen = dimension_of(name, data, axis)
    fits = indices.ndim == data.ndim and all(d == chosen or have <= extent for d, (have, extent) in enumerate(zip(indices.shape, data.shape, strict=True)))
    if not fits:
        raise DeclarationError(
            f"asked for {name} of {data.name} with shape {data.shape} along dimension {chosen} at {indices.name} with shape {indices.shape}; both need the "
            "same number of dimensions, and the others may not be larger in the second"
        )
    axes = axes_of(indices.shape)
    return declared(name, axes, data[(*axes[:chosen], place(name, indices, axes, data.shape[chosen]), *axes[chosen + 1:])])


def gather_nd(a: Tensor, indices: Tensor, name: str = "gather_nd") -> Tensor:
    """Elements or slices of `a`: each column of indices [k, ...] holds the first k indices. The shape is indices.shape[1:] + a.shape[k:].

    Float places are truncated.
    """
    depth = indices.shape[0] if indices.ndim else 0
    if not 1 <= depth <= a.ndim:
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} at {indices.name} with shape {indices.shape}; its first extent is how many dimensions are "
            f"indexed: 1 to {a.ndim}"
        )
    axes = axes_of((*indices.shape[1:], *a.shape[depth:]))
    column, rest = axes[:indices.ndim - 1], axes[indices.ndim - 1:]
    found = [place(name, indices, (as_expr(d), *column), a.shape[d]) for d in range(depth)]
    return declared(name, axes, a[(*found, *rest)])


def advanced_index(data: Tensor, indices: Sequence[Tensor], name: str = "advanced_index") -> Tensor:
    """data[indices[0], indices[1], ...] as in NumPy: the index tensors are broadcast to one shape, which replaces the first dimensions."""
    if not 1 <= len(indices) <= data.ndim:
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} at {len(indices)} index tensors; give 1 to {data.ndim}")
    rank = max(tensor.ndim for tensor in indices)
    shape = tuple(max(tensor.shape[d + tensor.ndim - rank] for tensor in indices if d + tensor.ndim >= rank) for d in range(rank))
    axes = axes_of((*shape, *data.shape[len(indices):]))
    found = []
    for d, tensor in enumerate(indices):
        own = axes[rank - tensor.ndim:rank]
        if any(extent not in (1, axis.extent) for extent, axis in zip(tensor.shape, own, strict=True)):
            raise DeclarationError(f"asked for {name} of {data.name} at indices of shapes {[t.shape for t in indices]}, which cannot be broadcast to one shape")
        at = tuple(axis if extent == axis.extent else as_expr(0) for extent, axis in zip(tensor.shape, own, strict=True))
        found.append(place(name, tensor, at, data.shape[d]))
    return declared(name, axes, data[(*found, *axes[rank:])])


def one_hot(indices: Tensor, on_value: Number | Expr, off_value: Number | Expr, depth: int, axis: int = -1, dtype: str = "float32",
            name: str = "one_hot") -> Tensor:
    """on_value where the place along a new dimension `axis` of extent `depth` equals the value of `indices`, else off_value."""
    chosen = axis + indices.ndim + 1 if axis < 0 else axis
    if not 0 <= chosen <= indices.ndim or depth < 1:
        raise DeclarationError(f"asked for {name} of {indices.name} with shape {indices.shape} along dimension {axis} of extent {depth}; the dimension is in "
                               f"{-indices.ndim - 1}..{indices.ndim}, the extent at least 1")
    axes = axes_of((*indices.shape[:chosen], depth, *indices.shape[chosen:]))
    wanted = _integer(name, indices)[axes[:chosen] + axes[chosen + 1:]]
    on, off = (value.astype(dtype) if isinstance(value, Expr) else as_expr(value, dtype) for value in (on_value, off_value))
    return declared(name, axes, if_then_else(cast("int64", wanted) == cast("int64", axes[chosen]), on, off))


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0, name: str = "sequence_mask") -> Tensor:
    """`data` with `mask_value` from place valid_length[b] on along dimension `axis`, 0 or 1; b is the place along the other of these two."""
    if axis not in (0, 1) or data.ndim < 2 or valid_length.shape != (data.shape[1 - axis],):
        raise DeclarationError(
            f"asked for {name} of {data.name} with shape {data.shape} along dimension {axis} by {valid_length.name} with shape {valid_length.shape}; the "
            "dimension is 0 or 1, with one length for each element of the other dimension"
        )
    axes = axes_of(data.shape)
    length = _integer(name, valid_length)[axes[1 - axis]]
    return declared(name, axes, if_then_else(cast(length.dtype, axes[axis]) < length, data[axes], as_expr(mask_value, data.dtype)))


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0, name: str = "reverse_sequence") -> Tensor:
    """`a` with the first seq_lengths[b] elements along `seq_axis` in reverse order, b along `batch_axis`; lengths are clamped to 1 and the extent."""
    along, batch = dimension_of(name, a, seq_axis), dimension_of(name, a, batch_axis)
    if seq_lengths.shape != (a.shape[batch],):
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} by {seq_lengths.name} with shape {seq_lengths.shape}; it has to be one length for each of the "
            f"{a.shape[batch]} along dimension {batch}"
        )
    axes = axes_of(a.shape)
    length = cast("int32", greater(lesser(_integer(name, seq_lengths)[axes[batch]], a.shape[along]), 1))
    turned = if_then_else(axes[along] < length, length - 1 - axes[along], axes[along])
    return declared(name, axes, a[(*axes[:along], turned, *axes[along + 1:])])


def unravel_index(indices: Tensor, shape: Tensor, name: str = "unravel_index") -> Tensor:
    """The coordinates, in a tensor of that shape, of the elements at `indices` in memory order: [len(shape), ...], in the dtype of `shape`."""
    if shape.ndim != 1 or not shape.dtype.startswith("int"):
        raise DeclarationError(f"asked for {name} with the shape {shape!r}; it is a tensor of one dimension, of integers")
    axes = axes_of((shape.shape[0], *indices.shape))
    dimension, rest = axes[0], cast("int64", indices[axes[1:]])
    found: list[Expr] = []
    for d in reversed(range(shape.shape[0])):
        extent = cast("int64", shape[d])
        found.insert(0, rest % extent)
        rest = rest // extent
    value = found[-1]
    for d in reversed(range(len(found) - 1)):
        value = if_then_else(dimension == d, found[d], value)
    return declared(name, axes, cast(shape.dtype, value))


def sparse_to_dense(sparse_indices: Tensor, output_shape: Sequence[int], sparse_values: Tensor, default_value: Number | Tensor = 0,
                    name: str = "sparse_to_dense") -> Tensor:
    """A tensor of `output_shape`: sparse_values[i] at place sparse_indices[i], `default_value` (a number, or a tensor of rank 0) elsewhere.

    sparse_indices is [n, rank], [n] for rank 1, or of rank 0 for one place; if places repeat, the last value wins.
    """
    rank = len(output_shape)
    good = {0: rank == 1, 1: rank == 1, 2: sparse_indices.shape[1:] == (rank,)}.get(sparse_indices.ndim, False)
    if not good or sparse_values.shape not in ((), sparse_indices.shape[:1]):
        raise DeclarationError(
            f"asked for {name} of places {sparse_indices.name} with shape {sparse_indices.shape} and values {sparse_values.name} with shape "
            f"{sparse_values.shape} in a tensor of shape {tuple(output_shape)}; places are [n, {rank}], and values [n] or one"
        )
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    axes, entry = axes_of(tuple(output_shape)), Axis("entry", count, "reduce")
    places = _integer(name, sparse_indices)
    index: list[tuple[Expr, ...]] = [(entry, as_expr(d))[:sparse_indices.ndim] for d in range(rank)]
    here = all_of(*(places[at] == cast(places.dtype, axis) for at, axis in zip(index, axes, strict=True)))
    which = declared(f"{name}_entry", axes, Reduce("max", if_then_else(here, entry, as_expr(-1)), (entry,), "int32"))
    axes = axes_of(tuple(output_shape))
    value = sparse_values[(greater(which[axes], 0),)[:sparse_values.ndim]]
    other = default_value[()] if isinstance(default_value, Tensor) else as_expr(default_value, value.dtype)
    return declared(name, axes, if_then_else(which[axes] >= 0, value, cast(value.dtype, other)))


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT", name: str = "matrix_set_diag") -> Tensor:
    """The matrices [..., rows, columns] of `data` with diagonals replaced: `k` is one diagonal (0: the main one, 1: above it), or the first and last of many.

    diagonal is [..., length], or for several [..., last - first + 1, longest length], the highest first. `align` gives the side of its row on which a shorter
    diagonal is stored: first for diagonals above the main one, then for those below.
    """
    first, *rest = whole_numbers(k)
    last = rest[0] if rest else first
    rows, columns = data.shape[-2:] if data.ndim >= 2 else (0, 0)
    sides = align.split("_")
    if not -rows < first <= last < columns or len(sides) != 2 or not {*sides} <= {"LEFT", "RIGHT"}:
        raise DeclarationError(f"asked for {name} of {data.name} with shape {data.shape} on the diagonals {k}, aligned {align!r}; diagonals are in "
                               f"{1 - rows}..{columns - 1}, sides 'LEFT' or 'RIGHT', one for those above and one for those below, such as 'RIGHT_LEFT'")
    lengths = [min(rows + min(d, 0), columns - max(d, 0)) for d in range(first, last + 1)]
    wanted = (*data.shape[:-2], *((last - first + 1,) if first != last else ()), max(lengths))
    if diagonal.shape != wanted or diagonal.dtype != data.dtype:
        raise DeclarationError(f"asked for {name} of {data.name} ({data.dtype}, shape {data.shape}) on the diagonals {first}..{last} with {diagonal!r}; "
                               f"it has to be {data.dtype} of shape {wanted}")
    axes = axes_of(data.shape)
    row, column = axes[-2:]
    value: Expr = data[axes]
    for d, length in zip(range(first, last + 1), lengths, strict=True):
        side = sides[0] if d >= 0 else sides[1]
        along = (column if d <= 0 else row) + (max(lengths) - length if side == "RIGHT" else 0)
        at = (*axes[:-2], *((as_expr(last - d),) if first != last else ()), along)
        value = if_then_else(column - row == d, diagonal[at], value)
    return declared(name, axes, value)


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None, name: str = "strided_set") -> Tensor:
    """`a` with the elements of `v` at a[begin[0]:end[0]:strides[0], ...]; negative values in these tensors mean the same as in Python.

    Dimensions for which a tensor has no entry are taken whole, with stride 1.
    """
    if v.ndim != a.ndim or any(tensor.ndim != 1 or tensor.size > a.ndim for tensor in (begin, end, *([strides] if strides else []))):
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} by {v!r}, {begin!r}, {end!r} and {strides!r}; values have as many dimensions as the tensor, "
            "and the others one, of at most that extent"
        )
    axes = axes_of(a.shape)
    inside: list[Expr] = []
    index: list[Expr] = []
    for d, (axis, extent) in enumerate(zip(axes, a.shape, strict=True)):
        step = cast("int32", strides[d]) if strides is not None and d < strides.size else as_expr(1)
        low, high = as_expr(0), as_expr(extent)
        first = _bounded(begin[d], extent, step) if d < begin.size else if_then_else(step < 0, high - 1, low)
        stop = _bounded(end[d], extent, step) if d < end.size else if_then_else(step < 0, low - 1, high)
        distance = axis - first
        ahead = all_of(distance >= 0, axis < stop)
        behind = all_of(distance <= 0, axis > stop)
        inside += [if_then_else(step < 0, behind, ahead), distance % step == 0]
        index.append(greater(lesser(distance // step, v.shape[d] - 1), 0))
    return declared(name, axes, if_then_else(all_of(*inside), v[tuple(index)], a[axes]))


def place(name: str, indices: Tensor, at: Sequence[Expr], extent: int) -> Expr:
    """The place that `indices` holds at `at`, clamped to 0..extent - 1."""
    value = indices[tuple(at)]
    if is_float(value.dtype) or value.dtype in ("int8", "int16", "uint8"):
        value = cast("int32", value)                       # the extent may not fit a narrow type
    if not value.dtype.startswith("int"):
        raise DeclarationError(f"asked for {name} at {indices.name}, which has dtype {indices.dtype}; indices are integers: use te.nn.cast first")
    return greater(lesser(value, extent - 1), 0)


def _bounded(value: Expr, extent: int, step: Expr) -> Expr:
    """One end of a slice, counted from the front: 0..extent, or -1..extent - 1 for a negative step."""
    given = cast("int32", value)
    counted = if_then_else(given < 0, given + extent, given)
    forward, backward = lesser(greater(counted, 0), extent), lesser(greater(counted, -1), extent - 1)
    return if_then_else(step < 0, backward, forward)


def _integer(name: str, tensor: Tensor) -> Tensor:
    if not (tensor.dtype.startswith("int") or tensor.dtype == "uint8"):
        raise DeclarationError(f"asked for {name} with {tensor.name}, which has dtype {tensor.dtype}; it holds integers: use te.nn.cast first")
    return tensor
