"""`tvm.topi.transform`: operators that move elements, and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.expr import Expr, Number
from ansor.te.tensor import Tensor


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """`nn.expand_dims`."""
    return nn.expand_dims(a, axis, num_newaxis)


def expand_like(a: Tensor, shape_like: Tensor, axis: int | Sequence[int]) -> Tensor:
    """`nn.expand_like`."""
    return nn.expand_like(a, shape_like, axis)


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """`nn.transpose`."""
    return nn.transpose(a, axes)


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """`nn.flip`."""
    return nn.flip(a, axis)


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """`nn.reverse_sequence`."""
    return nn.reverse_sequence(a, seq_lengths, seq_axis, batch_axis)


def strided_slice(
    a: Tensor, begin: Sequence[int | None], end: Sequence[int | None], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:  # fmt: skip
    """`nn.strided_slice`; strides that are missing at the end are 1. slice_mode "size": `end` holds extents, -1 for all that is left.

    Raises DeclarationError for tensors as bounds: the shape of the result would depend on their values.
    """
    if any(isinstance(bounds, Tensor) for bounds in (begin, end, strides)):
        raise DeclarationError(f"asked for strided_slice of {a.name} with tensors as bounds, on whose values the shape would depend; give Python integers")
    steps = [*(strides or ()), *[1] * (len(begin) - len(strides or ()))]
    if slice_mode == "size":
        end = [None if size is None or size < 0 else (first or 0) + size for first, size in zip(begin, end, strict=True)]
        steps = [1] * len(begin)
    elif slice_mode != "end":
        raise DeclarationError(f"asked for strided_slice of {a.name} with slice_mode {slice_mode!r}; it is 'end' or 'size'")
    return nn.strided_slice(a, begin, end, steps, axes)


def strided_set(a: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None) -> Tensor:
    """`nn.strided_set`."""
    return nn.strided_set(a, v, begin, end, strides)


def reshape(a: Tensor, newshape: int | Sequence[int]) -> Tensor:
    """`nn.reshape`."""
    return nn.reshape(a, newshape)


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """`nn.squeeze`."""
    return nn.squeeze(a, axis)


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """`nn.concatenate`."""
    return nn.concatenate(a_tuple, axis)


def stack(a: Sequence[Tensor], axis: int) -> Tensor:
    """`nn.stack`."""
    return nn.stack(a, axis)


def split(ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """`nn.split`."""
    return nn.split(ary, indices_or_sections, axis)


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """`nn.take`. Mode "fast", in which TVM reads whatever is at a place outside, is "clip" here. Raises DeclarationError for `batch_dims`."""
    if batch_dims:
        raise DeclarationError(f"asked for take of {a.name} with batch_dims={batch_dims}; use topi.gather, or te.compute")
    return nn.take(a, indices, axis, "clip" if mode == "fast" else mode)


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """`nn.gather`."""
    return nn.gather(data, axis, indices)


def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """`nn.gather_nd`."""
    return nn.gather_nd(a, indices)


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """`nn.matmul`."""
    return nn.matmul(a, b, transp_a, transp_b)


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    """`nn.tensordot`."""
    return nn.tensordot(a, b, axes)


def arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: str = "float32") -> Tensor:
    """`nn.arange`."""
    return nn.arange(start, stop, step, dtype)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str) -> tuple[Tensor, ...]:
    """`nn.meshgrid`."""
    return nn.meshgrid(a_tuple, indexing)


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """`nn.repeat`."""
    return nn.repeat(a, repeats, axis)


def tile(a: Tensor, reps: int | Sequence[int]) -> Tensor:
    """`nn.tile`."""
    return nn.tile(a, reps)


def layout_transform(array: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """`nn.layout_transform`."""
    return nn.layout_transform(array, src_layout, dst_layout)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """`nn.shape_of`."""
    return nn.shape_of(array, dtype)


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """`nn.sequence_mask`."""
    return nn.sequence_mask(data, valid_length, mask_value, axis)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """`nn.size_of`."""
    return nn.size_of(array, dtype)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`nn.where`."""
    return nn.where(condition, x, y)


def one_hot(indices: Tensor, on_value: Number | Expr, off_value: Number | Expr, depth: int, axis: int, dtype: str) -> Tensor:
    """`nn.one_hot`."""
    return nn.one_hot(indices, on_value, off_value, depth, axis, dtype)


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """`nn.unravel_index`."""
    return nn.unravel_index(indices, shape)


def sparse_to_dense(sparse_indices: Tensor, output_shape: Sequence[int], sparse_values: Tensor, default_value: Number | Tensor = 0) -> Tensor:
    """`nn.sparse_to_dense`."""
    return nn.sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value)


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """`nn.matrix_set_diag`."""
    return nn.matrix_set_diag(data, diagonal, k, align)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """`nn.advanced_index`."""
    return nn.advanced_index(data, indices)
