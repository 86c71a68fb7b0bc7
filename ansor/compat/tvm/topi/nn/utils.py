"""`tvm.topi.nn.utils`: converts paddings to numbers for each side."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # missing names raise
from ansor.te.nn.layout import Padding, paddings


def get_pad_tuple(padding: Padding, kernel: Sequence[int]) -> tuple[int, int, int, int]:
    """Top, left, bottom, right. padding: one, two or four numbers, VALID or SAME; kernel: height, width. Raises DeclarationError for anything else."""
    (top, bottom), (left, right) = paddings("get_pad_tuple", padding, kernel)
    return top, left, bottom, right


def get_pad_tuple1d(padding: Padding, kernel: Sequence[int]) -> tuple[int, int]:
    """Left, right. padding: one or two numbers, VALID or SAME; kernel: width. Raises DeclarationError for anything else."""
    ((left, right),) = paddings("get_pad_tuple1d", padding, kernel)
    return left, right


def get_pad_tuple3d(padding: Padding, kernel: Sequence[int]) -> tuple[int, int, int, int, int, int]:
    """Front, top, left, back, bottom, right. padding: one, three or six numbers, VALID or SAME; kernel: depth, height, width."""
    (front, back), (top, bottom), (left, right) = paddings("get_pad_tuple3d", padding, kernel)
    return front, top, left, back, bottom, right


def get_pad_tuple_generic(padding: Padding, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding before and after each dimension of the kernel."""
    sides = paddings("get_pad_tuple_generic", padding, kernel)
    return tuple(before for before, _ in sides), tuple(after for _, after in sides)
