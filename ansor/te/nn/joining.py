"""Operators that join, split, repeat and reverse tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Const, Expr
from ansor.te.nn.layout import whole_numbers
from ansor.te.nn.reduction import dimension_of, dimensions_of
from ansor.te.nn.shape import concatenate, expand_dims, strided_slice
from ansor.te.tensor import Tensor, axes_of, declared

_ZERO = Const(0, "int32")


def stack(tensors: Sequence[Tensor], axis: int = 0, name: str = "stack") -> Tensor:
    """Stack tensors of one shape along a new dimension `axis`."""
    return concatenate([expand_dims(tensor, axis, name=f"{name}_{position}") for position, tensor in enumerate(tensors)], axis, name)


def split(a: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split") -> tuple[Tensor, ...]:
    """Parts of `a` along dimension `axis`: a number of equal parts, or parts cut before the given places."""
    chosen = dimension_of(name, a, axis)
    extent = a.shape[chosen]
    if not isinstance(indices_or_sections, Iterable):
        (sections,) = whole_numbers(indices_or_sections)
        if sections < 1 or extent % sections:
            raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} along dimension {chosen} into {sections} parts; {extent} has to be "
                                   "a multiple of that number")
        cuts = list(range(0, extent, extent // sections))
    else:
        cuts = [0, *whole_numbers(indices_or_sections)]
    ends = [*cuts[1:], extent]
    if any(not 0 <= begin < end <= extent for begin, end in zip(cuts, ends, strict=True)):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} along dimension {chosen} at {cuts[1:]}; indices have to ascend, "
                               f"from 1 to {extent - 1}")
    whole = [(0, size) for size in a.shape]
    parts = [[*whole[:chosen], cut, *whole[chosen + 1:]] for cut in zip(cuts, ends, strict=True)]
    return tuple(strided_slice(a, [b for b, _ in part], [e for _, e in part], name=f"{name}_{position}") for position, part in enumerate(parts))


def flip(a: Tensor, axis: int = 0, name: str = "flip") -> Tensor:
    """`a` with dimension `axis` in reverse order."""
    chosen = dimension_of(name, a, axis)
    axes = axes_of(a.shape)
    return declared(name, axes, a[(*axes[:chosen], a.shape[chosen] - 1 - axes[chosen], *axes[chosen + 1:])])


def repeat(a: Tensor, repeats: int, axis: int, name: str = "repeat") -> Tensor:
    """Repeat every slice along dimension `axis` `repeats` times in a row."""
    chosen = dimension_of(name, a, axis)
    if repeats < 1:
        raise DeclarationError(f"asked for {name} of {a.name} {repeats} times; repeat it at least once")
    axes = axes_of((*a.shape[:chosen], a.shape[chosen] * repeats, *a.shape[chosen + 1:]))
    return declared(name, axes, a[(*axes[:chosen], axes[chosen] // repeats, *axes[chosen + 1:])])


def tile(a: Tensor, reps: int | Sequence[int], name: str = "tile") -> Tensor:
    """`a` repeated as a whole, reps[d] times along dimension d; the shorter of the shape and `reps` is extended with leading ones."""
    times = whole_numbers(reps)
    if any(count < 1 for count in times):
        raise DeclarationError(f"asked for {name} of {a.name} by {times}; every number has to be at least 1")
    lead = max(len(times) - a.ndim, 0)
    times = (1,) * (a.ndim - len(times)) + times
    extents = (1,) * lead + a.shape
    axes = axes_of(tuple(extent * count for extent, count in zip(extents, times, strict=True)))
    return declared(name, axes, a[tuple(axis if axis.extent == extent else axis % extent for axis, extent in zip(axes[lead:], a.shape, strict=True))])


def expand_like(a: Tensor, shape_like: Tensor, axis: int | Sequence[int], name: str = "expand_like") -> Tensor:
    """`a` repeated along new dimensions `axis`, so that it has the shape of `shape_like`."""
    added = dimensions_of(name, shape_like, axis)
    axes = axes_of(shape_like.shape)
    kept = [place for dimension, place in enumerate(axes) if dimension not in added]
    if tuple(place.extent for place in kept) != a.shape:
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} to {shape_like.name} with shape {shape_like.shape} by dimensions {axis}; "
            "the others have to be those of the first"
        )
    return declared(name, axes, a[tuple(kept)])


def meshgrid(tensors: Sequence[Tensor], indexing: str = "ij", name: str = "meshgrid") -> tuple[Tensor, ...]:
    """For each one-dimensional tensor, its values along its own dimension of the common grid; "xy" swaps the first two dimensions."""
    if indexing not in ("ij", "xy") or any(tensor.ndim != 1 for tensor in tensors):
        raise DeclarationError(f"asked for {name} of {', '.join(map(repr, tensors))} with indexing {indexing!r}; it takes tensors of one dimension, "
                               "and 'ij' or 'xy'")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = tuple(tensors[position].size for position in order)
    results = []
    for position, tensor in enumerate(tensors):
        axes = axes_of(shape)
        results.append(declared(f"{name}_{position}", axes, tensor[axes[order.index(position)]]))
    return tuple(results)


def layout_transform(a: Tensor, src_layout: str, dst_layout: str, name: str = "layout_transform") -> Tensor:
    """`a` with its dimensions rearranged. In a layout such as NCHW16c, `16c` means blocks of 16 elements of C."""
    source, target = _dimensions(name, src_layout), _dimensions(name, dst_layout)
    if len(source) != a.ndim or {letter.upper() for letter, _ in source} != {letter.upper() for letter, _ in target}:
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} from {src_layout} to {dst_layout}; the first has one letter for each "
                               "dimension, and both name the same dimensions")
    for (letter, block), extent in zip(source, a.shape, strict=True):
        if block not in (0, extent):
            raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} from {src_layout}; dimension {letter} has extent {extent}, not {block}")
    full = {letter: extent * _block(source, letter) for (letter, _), extent in zip(source, a.shape, strict=True) if letter.isupper()}
    if any(full[letter] % _block(target, letter) for letter in full):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} to {dst_layout}; blocks have to divide {full}")
    axes = axes_of(tuple(block or full[letter] // _block(target, letter) for letter, block in target))
    places: dict[str, Expr] = dict.fromkeys(full, _ZERO)
    for (letter, _), axis in sorted(zip(target, axes, strict=True), key=lambda pair: pair[0][0].islower()):
        if axis.extent > 1:
            places[letter.upper()] = axis * _block(target, letter) + places[letter.upper()] if letter.isupper() else places[letter.upper()] + axis
    index = [_part(places[letter.upper()], letter, _block(source, letter.upper()), extent) for (letter, _), extent in zip(source, a.shape, strict=True)]
    return declared(name, axes, a[tuple(index)])


def _part(place: Expr, letter: str, block: int, extent: int) -> Expr:
    """The index along a source dimension when the whole dimension that it is part of is at `place`."""
    if extent == 1:
        return _ZERO
    return place // block if letter.isupper() else place % block


def _block(layout: Sequence[tuple[str, int]], letter: str) -> int:
    """The block size of `letter` in a layout; 1 without blocks, and for the blocks themselves."""
    return math.prod(block for other, block in layout if other == letter.lower()) if letter.isupper() else 1


def _dimensions(name: str, layout: str) -> list[tuple[str, int]]:
    """(letter, extent of a block, or 0) for each dimension: NCHW16c gives N, C, H, W with 0 and c with 16."""
    found: list[tuple[str, int]] = []
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
            continue
        found.append((letter, int(digits) if digits else 0))
        digits = ""
    letters = [letter for letter, _ in found]
    wrong = any(letter.islower() != bool(block) or letter.upper() not in letters for letter, block in found)
    if digits or wrong or len(set(letters)) != len(letters):
        raise DeclarationError(f"asked for {name} with the layout {layout!r}; write it as NCHW or NCHW16c: a capital for each dimension, "
                               "and a number with a small letter for blocks of one")
    return found
