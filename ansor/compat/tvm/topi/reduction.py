"""`tvm.topi.reduction`."""

from __future__ import annotations

from ansor.te import nn
from ansor.te.nn.reduction import Dimensions
from ansor.te.tensor import Tensor


def sum(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.sum`."""
    return nn.sum(data, axis, keepdims)


def prod(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.prod`."""
    return nn.prod(data, axis, keepdims)


def max(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.max`."""
    return nn.max(data, axis, keepdims)


def min(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.min`."""
    return nn.min(data, axis, keepdims)


def all(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.all`."""
    return nn.all(data, axis, keepdims)


def any(data: Tensor, axis: Dimensions = None, keepdims: bool = False) -> Tensor:
    """`nn.any`."""
    return nn.any(data, axis, keepdims)


def argmax(data: Tensor, axis: Dimensions = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """`nn.argmax`."""
    return nn.argmax(data, axis, keepdims, select_last_index)


def argmin(data: Tensor, axis: Dimensions = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """`nn.argmin`."""
    return nn.argmin(data, axis, keepdims, select_last_index)
