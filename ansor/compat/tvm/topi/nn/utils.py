"""`tvm.topi.nn.utils`: converts paddings to numbers for each side."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # missing names raise
from ansor.te.nn.layout import Padding, paddings


def get_pad_tuple(padding: Padding, kernel: Sequence[int]) -> tuple[int, ...]:
    """The padding before each dimension of the kernel, then after each: top, left, bottom, right.

    padding: one number, one or two for each dimension, VALID or SAME; kernel: height, width. Raises DeclarationError for anything else.
    """
    before, after = get_pad_tuple_generic(padding, kernel)
    return (*before, *after)


get_pad_tuple1d = get_pad_tuple3d = get_pad_tuple
"""The same function, for kernels of one and of three dimensions."""


def get_pad_tuple_generic(padding: Padding, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding before and after each dimension of the kernel."""
    sides = paddings("get_pad_tuple", padding, kernel)
    return tuple(before for before, _ in sides), tuple(after for _, after in sides)
