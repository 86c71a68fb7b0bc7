"""Which dimensions of arrays follow the length of a network's inputs, as data. Needs no PyTorch: loaded networks cut their results with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array = NDArray[np.generic]
A = TypeVar("A", Array, "torch.Tensor")


@dataclass(frozen=True, slots=True)
class Span:
    """A dimension that follows the length: [outer, length, inner] elements, flattened. zero: whether all elements beyond the end are known to be 0,
    or NaN if those before it are NaN, as the weights of a softmax are."""

    axis: int
    outer: int = 1
    inner: int = 1
    zero: bool = False

    def extent(self, length: int) -> int:
        """The extent of the dimension for inputs of a length."""
        return self.outer * length * self.inner

    @property
    def plain(self) -> bool:
        """Whether the dimension is the sequence itself."""
        return self.outer == self.inner == 1

    def at(self, axis: int) -> Span:
        """The same in another dimension, with unknown values beyond the end."""
        return Span(axis, self.outer, self.inner)


Spans = tuple[Span, ...]
"""The dimensions of an array that follow the length, in order."""


def span_at(spans: Spans, axis: int) -> Span | None:
    """The span of a dimension, None if it does not follow the length."""
    return next((one for one in spans if one.axis == axis), None)


@dataclass(frozen=True)
class Padding:
    """How a network for calls of `least` to `length` elements is called: with inputs of `length` elements, and the true length as the keyword argument
    `keyword`, int32 of shape (1,). `ends`: for each result that is an array, the dimensions that follow the length."""

    keyword: str
    ends: tuple[Spans | None, ...]
    length: int
    least: int


def padding_of(data: Mapping[str, Any]) -> Padding:
    """From the form in JSON, `dataclasses.asdict`."""
    ends = tuple(None if one is None else tuple(Span(**span) for span in one) for one in data["ends"])
    return Padding(data["keyword"], ends, data["length"], data["least"])


def before(array: A, spans: Spans, length: int, end: int) -> A:
    """The elements of an array that lie before an end, for all its spans: inputs of that length give the same shape."""
    for span in spans:
        array = _before(array, span, length, end)
    return array


def cut(array: Array, ends: Spans | None, length: int, end: int) -> Array:
    """The same as an array of its own, if it is not whole."""
    return array if not ends or end == length else np.ascontiguousarray(before(array, ends, length, end))


def _before(array: A, span: Span, length: int, end: int) -> A:
    first, rest = array.shape[: span.axis], array.shape[span.axis + 1 :]
    apart = array.reshape(*first, span.outer, length, span.inner, *rest)
    inside: Any = (*(slice(None),) * (span.axis + 1), slice(end))  # NumPy and PyTorch type indices differently
    kept: A = apart[inside]
    return kept.reshape(*first, span.extent(end), *rest)
