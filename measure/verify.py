"""Is an output right? Compared with a reference computed in double precision.

Integers and bools must be equal. For floats the bound on every element x with reference r is

    |x - r| <= eps * (8 + 2 * sqrt(L)) * scale        scale = max(largest finite |r| of the output, largest |input|, 1)

with eps of the output's dtype and L the length of the longest reduction behind it. Adding L numbers in whatever order
makes rounding errors of at most eps/2 of a partial sum each; they are independent enough to grow with sqrt(L), and
partial sums are about as large as the largest outputs. For sums of products of our inputs the typical error is 1/20 of
the bound or less, while a forgotten or doubled term is of the size of an input squared: far above it. The constant 8 pays
for the elementwise operations around the sum. The bound is one for the whole output because elements that came out
small by cancellation have errors of the size of the large ones. It is not for ill-conditioned work, such as exp of large sums.

Where the reference is NaN nothing is compared (maximum and NaN differ lawfully). Infinities must agree.
An element that still holds the pattern of the fill was never written, or was made from such an element.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ansor.text import clip

UNWRITTEN_BYTE = 0xA5  # integers and bools are filled with it
# Quiet NaNs with a payload of our own: arithmetic passes it on, so reading an unwritten output shows, too.
_UNWRITTEN_NAN = {4: 0x7FE5A5A5, 8: 0x7FFDA5A5A5A5A5A5}


def fill_unwritten(output: NDArray[np.generic]) -> None:
    """Fill a contiguous output with what no correct kernel leaves behind."""
    if output.dtype.kind == "f":
        output.view(f"u{output.itemsize}")[...] = _UNWRITTEN_NAN[output.itemsize]
    else:
        output.view(np.uint8)[...] = UNWRITTEN_BYTE


def tolerance(dtype: str, reduction: int, scale: float) -> float:
    """Largest allowed absolute difference of a float output, as the head of this file explains."""
    return float(np.finfo(dtype).eps) * (8 + 2 * sqrt(reduction)) * max(scale, 1.0)


def difference(
    name: str, found: NDArray[np.generic], expected: NDArray[np.generic], *, reduction: int = 1, input_scale: float = 1.0
) -> str:
    """A sentence about how output `name` differs from the reference (same shape), '' when it is right."""
    if found.dtype.kind == "b":  # byte for byte: 0xA5 is true to NumPy, but no bool
        found, expected = found.view(np.uint8), expected.astype(np.bool_).view(np.uint8)
    if found.dtype.kind != "f":
        return _report(name, found, expected, found != expected, "")
    if _all_close(found, expected, reduction, input_scale):
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(expected, dtype=np.float64)
        rounded = wide.astype(found.dtype).astype(np.float64)  # beyond the dtype's range is infinite
        finite = np.isfinite(rounded)
        largest = float(np.abs(rounded[finite]).max()) if finite.any() else 0.0
        allowed = tolerance(found.dtype.name, reduction, max(largest, input_scale))
        close = np.abs(found.astype(np.float64) - wide) <= allowed
        right = np.where(finite, close, np.isnan(wide) | (found == rounded))
    unwritten = found.view(f"u{found.itemsize}") == _UNWRITTEN_NAN[found.itemsize]
    if unwritten.any():
        return f"output {name!r}: {_count(unwritten)} never written, first at {_first(unwritten)}"
    return _report(name, found, expected, ~right, f", allowed difference {allowed:.3g}")


def _all_close(
    found: NDArray[np.generic], expected: NDArray[np.generic], reduction: int, input_scale: float
) -> bool:
    """The usual case, in few passes: everything is finite and close. False may mean anything."""
    if not expected.size:
        return True
    scale = max(float(expected.max()), -float(expected.min()), input_scale)
    if not scale < float(np.finfo(found.dtype.name).max):
        return False
    with np.errstate(invalid="ignore"):
        away = np.subtract(found, expected, dtype=np.float64)
        allowed = tolerance(found.dtype.name, reduction, scale)
        return float(away.max()) <= allowed and float(away.min()) >= -allowed


def _report(
    name: str, found: NDArray[np.generic], expected: NDArray[np.generic], wrong: NDArray[np.bool_], note: str
) -> str:
    if not wrong.any():
        return ""
    where = _first(wrong)
    return clip(f"output {name!r}: {_count(wrong)} wrong, first at {where}: found {found[where]}, expected {expected[where]}{note}")


def _count(marks: NDArray[np.bool_]) -> str:
    return f"{int(np.count_nonzero(marks))} of {marks.size} elements"


def _first(marks: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(marks)), marks.shape))
