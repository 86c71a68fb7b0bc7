"""Padding with a constant, or with mirrored elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr, Number, cast, const, is_float
from ansor.te.nn.layout import Window
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else
from ansor.te.scalar import max as greater
from ansor.te.scalar import min as lesser
from ansor.te.tensor import Tensor, declared


def pad(data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: Number = 0.0, name: str = "pad") -> Tensor:
    """`data` with `pad_before[d]` elements of `pad_value` before and `pad_after[d]` after it, in each dimension d; after defaults to before."""
    before, after = _amounts(data, pad_before, pad_after)
    return _padded(data, _longer(data, before, after), before, after, pad_value, name)


def mirror_pad(data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, mode: str = "SYMMETRIC", name: str = "mirror_pad") -> Tensor:
    """`data` padded like `pad`, but with its own elements mirrored at its ends: "SYMMETRIC" repeats the first and last element, "REFLECT" does not."""
    before, after = _amounts(data, pad_before, pad_after)
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise DeclarationError(f"asked for {name} of {data.name} with mode {mode!r}; it is 'SYMMETRIC' or 'REFLECT'")
    edge = int(mode == "SYMMETRIC")  # 1 if the end elements are repeated
    if any(max(first, last) >= extent + edge for first, last, extent in zip(before, after, data.shape, strict=True)):
        raise DeclarationError(
            f"asked for {name} of {data.name} with shape {data.shape} by {before} and {after}, mode {mode!r}; there are not enough elements to mirror"
        )
    axes = _longer(data, before, after)
    index: list[Expr] = []
    for axis, first, last, extent in zip(axes, before, after, data.shape, strict=True):
        place = greater(axis - first, first - edge - axis) if first else axis
        index.append(lesser(place, 2 * extent - 2 + edge - place) if last else place)
    return declared(name, axes, data[tuple(index)])


def pad_windows(data: Tensor, layout: str, windows: Mapping[str, Window], pad_value: Number = 0.0, name: str = "pad") -> Tensor:
    """`data` padded for its windows, or `data` itself if they need no padding."""
    if not any(window.before or window.after for window in windows.values()):
        return data
    before = tuple(windows[letter].before if letter in windows else 0 for letter in layout)
    after = tuple(windows[letter].after if letter in windows else 0 for letter in layout)
    axes = tuple(Axis(letter.lower(), before[k] + data.shape[k] + after[k]) for k, letter in enumerate(layout))
    return _padded(data, axes, before, after, pad_value, name)


def _amounts(data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    before = tuple(pad_before)
    after = tuple(pad_after) if pad_after is not None else before
    for what, amounts in (("pad_before", before), ("pad_after", after)):
        if len(amounts) != data.ndim or any(amount < 0 for amount in amounts):
            raise DeclarationError(
                f"asked to pad tensor {data.name} of shape {data.shape} with {what}={amounts}; give {data.ndim} integers of at least 0, one per dimension"
            )
    return before, after


def _longer(data: Tensor, before: Sequence[int], after: Sequence[int]) -> tuple[Axis, ...]:
    return tuple(Axis(f"i{k}", before[k] + extent + after[k]) for k, extent in enumerate(data.shape))


def _padded(data: Tensor, axes: tuple[Axis, ...], before: Sequence[int], after: Sequence[int], pad_value: Number, name: str) -> Tensor:
    value = data[tuple(axis - amount for axis, amount in zip(axes, before, strict=True))]
    inside: list[Expr] = []
    for axis, first, extent, last in zip(axes, before, data.shape, after, strict=True):
        inside += [axis >= first] if first else []
        inside += [axis < first + extent] if last else []
    if not inside:
        return declared(name, axes, cast(data.dtype, value))
    filler = const(pad_value if is_float(data.dtype) else _whole(pad_value), data.dtype)
    return declared(name, axes, cast(data.dtype, if_then_else(all_of(*inside), value, filler)))


def _whole(value: Number) -> Number:
    return int(value) if isinstance(value, float) and value.is_integer() else value
