"""What sliding-window operators share: layouts by letters, strides and paddings, the extents of the output.

A layout is a word such as NCHW: one letter per dimension. N is the batch, C the channels, D, H and W the spatial dimensions;
kernels have O (output channels) and I (input channels of one group) instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeVar

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr, Operand, Reduce, cast, computed
from ansor.te.scalar import sum as sum_over
from ansor.te.size import Size
from ansor.te.tensor import Tensor

Sizes = int | Sequence[int]
Padding = int | str | Sequence[int]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial dimension under a sliding window, in elements."""

    letter: str
    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def span(self) -> int:
        """Elements from the first to the last tap."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def output(self) -> int:
        """Number of places where the whole window fits."""
        return (self.size + self.before + self.after - self.span) // self.stride + 1


def whole_numbers(value: int | Iterable[int]) -> tuple[int, ...]:
    """One or several whole numbers, with NumPy's converted to Python's. Anything else is returned unchanged, for the caller to refuse."""
    given = tuple(value) if isinstance(value, Iterable) else (value,)
    return tuple(one if isinstance(one, Size) else int(one) if isinstance(one, Integral) else one for one in given)


def checked_layout(operator: str, what: str, layout: str, letters: str, examples: str) -> str:
    """`layout`. Raises DeclarationError unless it arranges exactly `letters`."""
    if sorted(layout) != sorted(letters):
        raise DeclarationError(
            f"asked for {operator} with {what} {layout!r}; it has to arrange the letters {', '.join(letters)}, each once, such as {examples}"
        )
    return layout


def spatial_of(operator: str, what: str, layout: str) -> str:
    """The spatial letters of a data layout of 1 to 3 spatial dimensions, in the order D, H, W."""
    spatial = "DHW"[-(len(layout) - 2):] if 3 <= len(layout) <= 5 else "HW"
    checked_layout(operator, what, layout, "NC" + spatial, f"NC{spatial} or N{spatial}C")
    return spatial


def in_layout(layout: str, values: Mapping[str, Item]) -> tuple[Item, ...]:
    """The values of the letters, in the order of the layout."""
    return tuple(values[letter] for letter in layout)


def extents(operator: str, tensor: Tensor, role: str, layout: str) -> dict[str, int]:
    """The extent of each letter. Raises DeclarationError when the rank is not the layout's."""
    if tensor.ndim != len(layout):
        raise DeclarationError(
            f"asked for {operator} of {role} {tensor.name} with shape {tensor.shape}, which has {tensor.ndim} dimensions; "
            f"layout {layout} needs {len(layout)}: reshape it, or name its layout"
        )
    return dict(zip(layout, tensor.shape, strict=True))


def sizes(operator: str, what: str, value: Sizes, count: int, least: int = 1) -> tuple[int, ...]:
    """One integer per spatial dimension; a single integer stands for all."""
    found = whole_numbers(value)
    given = found if isinstance(value, Iterable) else found * count
    if len(given) != count or any(not isinstance(one, int) or one < least for one in given):
        raise DeclarationError(f"asked for {operator} with {what} {value!r}; give an integer of at least {least}, or {count} of them")
    return given


def paddings(operator: str, padding: Padding, spans: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of each spatial dimension.

    `padding`: an integer, one per dimension, all befores then all afters (top, left, bottom, right), "VALID" (none) or "SAME" (the span
    minus one in total; the odd element goes before, as in TVM).
    """
    count = len(spans)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise DeclarationError(f"asked for {operator} with padding {padding!r}; the known words are 'VALID' and 'SAME'")
        return [(span // 2, span - 1 - span // 2) if padding == "SAME" else (0, 0) for span in spans]
    found = whole_numbers(padding)
    given = found if isinstance(padding, Iterable) else found * count
    if len(given) == count:
        given = given * 2
    if len(given) != 2 * count or any(not isinstance(one, int) or one < 0 for one in given):
        raise DeclarationError(
            f"asked for {operator} with padding {padding!r}; give an integer of at least 0, one for each of the {count} spatial dimensions, "
            f"or {2 * count}: all befores, then all afters"
        )
    return list(zip(given[:count], given[count:], strict=True))


def windows(operator: str, data: Tensor, sizes_of: Mapping[str, int], kernels: Mapping[str, int], strides: Sizes, padding: Padding,
            dilation: Sizes, spatial: str) -> dict[str, Window]:
    """The window of each spatial letter. Raises DeclarationError when a kernel is larger than the padded data."""
    count = len(spatial)
    steps = sizes(operator, "strides", strides, count)
    spread = sizes(operator, "dilation", dilation, count)
    spans = [(kernels[letter] - 1) * spread[k] + 1 for k, letter in enumerate(spatial)]
    pads = paddings(operator, padding, spans)
    result = {}
    for k, letter in enumerate(spatial):
        window = Window(letter, sizes_of[letter], kernels[letter], steps[k], spread[k], *pads[k])
        if window.span > window.size + window.before + window.after:
            raise DeclarationError(
                f"asked for {operator} of {data.name} with a kernel of {window.kernel} in dimension {letter} (spanning {window.span} with dilation "
                f"{window.dilation}), where the data has {window.size} plus padding {window.before} + {window.after}; "
                "pad more, or use a smaller kernel"
            )
        result[letter] = window
    return result


def tap_axis(name: str, extent: int) -> Axis | Const:
    """A reduce axis, or plain 0 for a single value: a loop of one iteration would only enlarge the search space."""
    return Axis(name, extent, "reduce") if extent > 1 else Const(0, "int32")


def summed(body: Expr, taps: Sequence[Axis | Const]) -> Expr:
    """The sum of `body` over the taps that are axes; `body` itself if none is."""
    axes = [tap for tap in taps if isinstance(tap, Axis)]
    return sum_over(body, axis=axes) if axes else body


def reduced(combiner: str, body: Expr, taps: Sequence[Axis | Const]) -> Expr:
    """Like `summed`, with another combiner."""
    axes = tuple(tap for tap in taps if isinstance(tap, Axis))
    return Reduce(combiner, body, axes, body.dtype) if axes else body


def product_dtype(operator: str, data: Tensor, kernel: Tensor, out_dtype: str | None) -> str:
    """The dtype to multiply and add in, which is that of the result: float32 for bfloat16.

    Raises DeclarationError when the dtypes differ and `out_dtype` is not given.
    """
    if out_dtype is None and data.dtype != kernel.dtype:
        raise DeclarationError(
            f"asked for {operator} of {data.dtype} tensor {data.name} and {kernel.dtype} tensor {kernel.name}; "
            "give out_dtype= (both are converted to it), or two tensors of one dtype"
        )
    return computed(out_dtype or data.dtype)


def product(left: Expr, right: Expr, dtype: str) -> Expr:
    """left times right, both converted to `dtype` first."""
    return cast(dtype, left) * cast(dtype, right)


def tap_position(out: Operand, tap: Expr, window: Window) -> Expr:
    """Where a tap of the window at output place `out` reads the padded data."""
    assert isinstance(out, Expr)
    return out * window.stride + tap * window.dilation
