"""Verifies outputs against a reference computed in double precision.

Integers and bools must be equal. For floats, every element x with reference r must satisfy

    |x - r| <= (8 + max(2 * sqrt(L), one-sided)) * (eps * scale + sensitivity) + tiny

The bound is multiplied by the tolerance that the program's algorithm states (1 for the declaration's own algorithm).

    eps, tiny     of the output's dtype; tiny is its smallest normal number
    L             length of the longest chain of additions behind the output
    scale         largest finite |r| of the output
    sensitivity   how far the output moves when every input moves by up to one eps of itself
    one-sided     measured growth of errors that do not cancel, see below

If intermediate results have a narrower dtype (float16), it replaces the output's own. Inputs move by eps of that dtype or of float32, or of float64 if all
floats of a declaration have that dtype.

bfloat16 is a storage format: sums are in float32. An output rounded to it once may be off by half a step of its own value, |r| / 256, more than a float32
output. If intermediate results are rounded to it too, the operations around the sums make larger errors, but the sums do not:

    |x - r| <= 8 * (eps * scale + sensitivity) + 2 * sqrt(L) * (eps * scale + sensitivity of moves by eps) + tiny      eps of bfloat16, then of float32

Each of L additions, in any order, makes a rounding error of at most eps/2 of a partial sum. These errors are independent enough
to grow with sqrt(L). The constant 8 covers the elementwise operations around the sum. There is one bound for the whole output,
because elements made small by cancellation have errors as large as those of the large elements. If all elements are small
(one long sum that happens to end near 0), `sensitivity` covers the error: it grows with sqrt(L) times a term. It is tiny if nothing cancels.

Repeated terms are rounded the same way every time, so the errors of a sum whose terms have one sign grow with L: adding 0.1 a million times in float32 gives
an error of 1 %. How fast they grow depends on the values, so it is measured. The plain program of a task is its declaration in its own dtypes, without a
schedule. It adds in order, which is a bad order: summing in parts has smaller partial sums, hence smaller rounding errors. If `off` is its largest error,

    one-sided = min(3 * off / (eps * scale + sensitivity), L / 4, 1 / (4 * eps))

The factor is 3 because other orders may be worse. L / 4 is the maximum: each partial sum adds half an eps of itself, and is half of the result on average. An
element of the plain program that is off by more has jumped, and counts as moved. A result that is off by more than about a quarter of the scale is refused,
whatever its order of additions. Only sums of at least `MEASURED_FROM` terms have a plain program: for shorter ones, the bound allows more than L / 4 anyway.
Sums in float16 stagnate: once a partial sum is 2048 times a term, adding the term changes nothing. So in float16, one-sided is min(L / 4, 1 / (4 * eps)),
without measuring. The same holds in float64: nothing more exact exists to measure it with, and no real mistake is that small.

Outputs that saturate (tanh and sigmoid of large sums, exp(min(x, 1))) have the scale of their limits, and hardly any element moves. The few unsaturated
elements have the errors of sums much larger than the output, and move as far. So each element has its own sensitivity, in place of the output's:

    max(sensitivity, moved, 3 * (moved - eps * scale))        moved: the farthest that this element moved

The factor is 3 because the few runs may happen to move an element only a little. An element that jumps (floor, a comparison) widens only its own bound.
Elements of sums and products move no farther than eps * scale. The wider bound is capped at a quarter of the scale, or at twice what the element moved if
that is more: in float16 it would otherwise allow anything.

Otherwise the scale does not depend on the inputs: the outputs of a softmax over 50,000 elements are about 1e-5, and an error of 1e-7 is large there. Only if
the whole reference is rounding noise of double precision (below 1e-10 of the inputs, as for a - a) is the scale that of the inputs, at most 1.

Where the reference is NaN, nothing is compared (implementations of maximum may differ on NaN). Infinities must agree.
An element that still holds the fill pattern was never written, or was computed from such an element.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ansor.support.bfloat16 import BFLOAT16, EPSILON
from ansor.support.text import clip

# Fill patterns of an output's elements, in turn. The first is a quiet NaN with our own payload: arithmetic propagates it, so reading an unwritten output shows.
# A maximum with the previous contents may drop a NaN, but not a very large number; a minimum does not drop its negative.
_UNWRITTEN = {2: (0x7EA5, 0x7BA5, 0xFBA5), 4: (0x7FE5A5A5, 0x7F25A5A5, 0xFF25A5A5), 8: (0x7FFDA5A5A5A5A5A5, 0x7FE5A5A5A5A5A5A5, 0xFFE5A5A5A5A5A5A5)}
_UNWRITTEN_BYTES = (0xA5, 0x5A)  # of integers and bools
# Fill words of a workspace, in turn. Before the first call: NaN (far below 0 as an integer) and a large number; then: a large number and its negative.
_WORDS = tuple(bytes.fromhex(first * 2 + second * 2) for first, second in (("dadadaff", "5a5a5a5a"), ("5a5a5a5a", "dadadada")))
MEASURED_FROM = 128  # terms of a sum: errors of shorter sums stay below 8 + 2 * sqrt(L), even if none cancel
_AROUND = 8  # roundings of the operations around a sum
_NOTHING = 1e-10  # of the inputs: what double precision leaves of an exact zero, below any meaningful output
_USUAL = 0.9  # share of elements that `sensitivity` covers: the others may have jumped (floor, a comparison)
_FARTHER = 3  # how far an element may be off, as a multiple of its move beyond its output's rounding, or of the plain program's error
PART = 1 << 18
"""Elements that are compared at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """How far an output moves when inputs move by up to one eps. usual: its sensitivity. each: the farthest that each element moves, in the output's shape.
    off: the plain program's largest error, without the last rounding to bfloat16."""

    usual: float = 0.0
    each: NDArray[np.float32] | None = None  # None: not known
    off: float = 0.0

    def and_of(self, expected: NDArray[np.generic], other: NDArray[np.generic]) -> "Sensitivity":
        """These moves, combined with those from `expected` to `other` after one more change of the inputs. Outputs that are not floats do not move."""
        if expected.dtype.kind != "f" or not expected.size:
            return self
        away = _moved(expected, other)
        farthest = np.where(np.isfinite(away), np.minimum(away, np.finfo(np.float32).max), 0.0).astype(np.float32)
        each = farthest if self.each is None else np.maximum(self.each, farthest)
        return Sensitivity(max(self.usual, _usual(away)), each, self.off)


INSENSITIVE = Sensitivity()


def fill_unwritten(output: NDArray[np.generic], again: int = 0) -> None:
    """Fill a contiguous output with a pattern that no correct kernel leaves behind. `again`: 1 before a second call, for a different value at each place."""
    if output.dtype.name == BFLOAT16 or output.dtype.kind == "f":
        patterns = _patterns(output)
        for place, pattern in enumerate(patterns):
            output.view(f"u{output.itemsize}").reshape(-1)[(place - again) % len(patterns) :: len(patterns)] = pattern
        return
    elements = output.reshape(-1).view(np.uint8).reshape(-1, output.itemsize)
    for place, byte in enumerate(_UNWRITTEN_BYTES):
        elements[(place + again) % len(_UNWRITTEN_BYTES) :: len(_UNWRITTEN_BYTES)] = byte


def fill_workspace(workspace: NDArray[np.uint8], again: int = 0) -> None:
    """Fill a workspace with values that reveal a read before a write. `again`: as for outputs."""
    both = np.frombuffer(_WORDS[again], np.uint8)
    whole = workspace[: workspace.size // both.size * both.size]
    whole.reshape(-1, both.size)[...] = both
    workspace[whole.size :] = both[: workspace.size - whole.size]


def _patterns(output: NDArray[np.generic]) -> tuple[int, ...]:
    """The fill patterns of a float output's elements, in turn, as unsigned integers."""
    return tuple(one >> 16 for one in _UNWRITTEN[4]) if output.dtype.name == BFLOAT16 else _UNWRITTEN[output.itemsize]


def _unwritten(output: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Which elements of a float output hold a pattern."""
    held, found = output.view(f"u{output.itemsize}"), np.zeros(output.shape, np.bool_)
    for pattern in _patterns(output):
        found |= held == pattern
    return found


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next larger number of a float dtype."""
    return EPSILON if dtype == BFLOAT16 else float(np.finfo(dtype).eps)


def tolerance(dtype: str, reduction: int, scale: float, input_scale: float = 1.0, sensitivity: float = 0.0, measured: float = 0.0) -> float:
    """The largest allowed absolute difference of a float output computed in `dtype`, see the module docstring. `measured`: see `growth`."""
    return float(_bound(dtype, growth(dtype, reduction, measured), _meant(scale, input_scale), np.asarray(sensitivity)))


def tolerances(dtype: str, reduction: int, scale: float, input_scale: float, moves: Sensitivity) -> NDArray[np.float64]:
    """The `tolerance` of each element, in the output's shape; of shape () if all elements have the same."""
    measured = measured_growth(dtype, scale, input_scale, moves)
    usual = np.asarray(tolerance(dtype, reduction, scale, input_scale, moves.usual, measured))
    if moves.each is None:
        return usual
    meant, moved = _meant(scale, input_scale), moves.each.astype(np.float64)
    beyond = _FARTHER * (moved - epsilon(dtype) * meant)
    own = _bound(dtype, growth(dtype, reduction, measured), meant, np.maximum(np.maximum(moves.usual, moved), beyond))
    most = np.maximum(meant / 4, 2 * moved)
    return np.asarray(np.maximum(usual, np.minimum(own, most)))


def _bound(dtype: str, steps: float, scale: float, sensitivity: NDArray[np.float64]) -> NDArray[np.float64]:
    limits = np.finfo("float32" if dtype == BFLOAT16 else dtype)
    eps = float(limits.eps)
    if dtype == BFLOAT16:
        sums = (steps - _AROUND) * (eps * scale + sensitivity * eps / EPSILON)
        return np.asarray(_AROUND * (EPSILON * scale + sensitivity) + sums + float(limits.tiny))
    return np.asarray(steps * (eps * scale + sensitivity) + float(limits.tiny))


def _meant(scale: float, input_scale: float) -> float:
    """The scale, or that of the inputs (at most 1) if the reference is only rounding noise."""
    return min(1.0, input_scale) if scale <= _NOTHING * input_scale else scale


def growth(dtype: str, reduction: int, measured: float = 0.0) -> float:
    """How many eps of the scale a result computed in `dtype` may be off. `measured`: the growth of errors that do not cancel."""
    most = min(reduction, 1 / epsilon(dtype)) / 4
    return _AROUND + max(2 * sqrt(reduction), most if dtype in ("float16", "float64") else min(measured, most))


def measured_growth(dtype: str, scale: float, input_scale: float, moves: Sensitivity) -> float:
    """How many times (eps * scale + sensitivity) a program may be off, judging by the plain program's error."""
    return _FARTHER * moves.off / (epsilon(dtype) * _meant(scale, input_scale) + moves.usual) if moves.off else 0.0


def largest_of(expected: NDArray[np.generic], dtype: str) -> float:
    """The scale of a reference: its largest magnitude that is finite in `dtype`."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(expected, np.float64).astype(dtype).astype(np.float64)
    return float(np.abs(rounded[np.isfinite(rounded)]).max(initial=0.0))


def with_plain(moves: Sensitivity, expected: NDArray[np.generic], found: NDArray[np.generic], reduction: int) -> Sensitivity:
    """Add what an output's plain program found to its moves. An element that is off by more than rounding explains has jumped, and counts as moved."""
    if expected.dtype.kind != "f":
        return moves
    wide, stored = np.asarray(expected, np.float64), found.dtype.name == BFLOAT16
    dtype = "float32" if stored else found.dtype.name
    away = _moved(wide, np.asarray(found, np.float64)) - (EPSILON / 2 * np.abs(wide) if stored else 0.0)
    moved = moves.usual if moves.each is None else np.maximum(moves.usual, moves.each)
    rounded = away <= (_AROUND + reduction / 4) * (epsilon(dtype) * largest_of(wide, dtype) + moved)
    each = moves.each
    if each is not None:
        jumped = np.where(rounded | ~np.isfinite(away), 0.0, np.minimum(away, np.finfo(np.float32).max))
        each = np.maximum(each, jumped.astype(np.float32))
    return replace(moves, off=float(away[rounded].max(initial=0.0)), each=each)


def moves_of(expected: NDArray[np.generic], moved: Sequence[NDArray[np.generic]]) -> Sensitivity:
    """How far an output moves, given its values after small changes of the inputs."""
    found = INSENSITIVE
    for other in moved:
        found = found.and_of(expected, other)
    return found


def _moved(expected: NDArray[np.generic], other: NDArray[np.generic]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.abs(np.subtract(other, expected, dtype=np.float64)), np.float64)


def _usual(away: NDArray[np.float64]) -> float:
    finite = away[np.isfinite(away)]
    return float(np.quantile(finite, _USUAL)) if finite.size else 0.0


def difference(
    name: str, found: NDArray[np.generic], expected: NDArray[np.generic], *, reduction: int = 1, input_scale: float = 1.0, moves: Sensitivity = INSENSITIVE,
    stated: float = 1.0, rounding: str = "",
) -> str:
    """A sentence about how output `name` differs from the reference (same shape), '' if it is right.

    The module docstring explains `reduction`, `input_scale` (largest |input|) and `moves`; `stated`: the algorithm's tolerance;
    `rounding`: the dtype it was computed in, '' for its own.
    """
    if found.dtype.kind == "b":  # byte by byte: 0xA5 is true to NumPy, but not a valid bool
        found, expected = found.view(np.uint8), expected.astype(np.bool_).view(np.uint8)
    as_given, stored = found, found.dtype.name == BFLOAT16
    if stored:
        found = found.astype(np.float32)
    if found.dtype.kind != "f":
        return _report(name, found, expected, found != expected, "")
    dtype = rounding or found.dtype.name
    compared = _Comparison(found, expected, dtype, reduction, input_scale, moves, stated, EPSILON / 2 if stored else 0.0)
    if compared.all_close():
        return ""
    wrong = compared.wrong()
    unwritten = _unwritten(as_given) & (wrong | np.isnan(expected))
    if unwritten.any():
        return f"output {name!r}: {_count(unwritten)} never written, first at {_first(unwritten)}"
    return _report(name, found, expected, wrong, f", allowed difference {compared.allowed_at(int(np.argmax(wrong))):.3g}" if wrong.any() else "")


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """A float output and its reference, compared in parts: a candidate's memory is limited, and may not hold all elements as doubles.

    dtype: the dtype whose rounding errors are allowed; step: a further allowance, relative to the element; others as for `difference`.
    """

    found: NDArray[np.generic]
    expected: NDArray[np.generic]
    dtype: str
    reduction: int
    input_scale: float
    moves: Sensitivity
    stated: float
    step: float

    def all_close(self) -> bool:
        """The usual case, in few passes: everything is finite and close. False is inconclusive."""
        if not self.expected.size:
            return True
        scale = max(float(self.expected.max()), -float(self.expected.min()))
        if not scale < float(np.finfo(self.found.dtype.name).max):
            return False
        measured = measured_growth(self.dtype, scale, self.input_scale, self.moves)
        allowed = self.stated * tolerance(self.dtype, self.reduction, scale, self.input_scale, self.moves.usual, measured)
        return all(self._close(found, expected, allowed) for _, found, expected in self._parts())

    def _close(self, found: NDArray[np.generic], expected: NDArray[np.generic], allowed: float) -> bool:
        with np.errstate(invalid="ignore"):
            away = np.subtract(found, expected, dtype=np.float64)
            if self.step:
                away = np.maximum(np.abs(away) - self.step * np.abs(expected), 0.0)
            return float(away.max()) <= allowed and float(away.min()) >= -allowed

    def wrong(self) -> NDArray[np.bool_]:
        """Which elements are wrong, in the output's shape."""
        scale, wrong = self._scale(), np.empty(self.found.size, np.bool_)
        for part, found, expected in self._parts():
            wrong[part] = ~self._right(found, expected, self._allowed(part, scale))
        return wrong.reshape(self.found.shape)

    def allowed_at(self, place: int) -> float:
        """The allowed difference of the element at a place in memory order."""
        return float(self._allowed(slice(place, place + 1), self._scale()).max())

    def _right(self, found: NDArray[np.generic], expected: NDArray[np.generic], allowed: NDArray[np.float64]) -> NDArray[np.bool_]:
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.asarray(expected, dtype=np.float64)
            rounded = wide.astype(found.dtype).astype(np.float64)  # values beyond the dtype's range become infinite
            greatest = float(np.finfo(found.dtype.name).max)
            away = np.abs(np.clip(found.astype(np.float64), -greatest, greatest) - wide)  # overflow counts as the greatest number
            close = away <= allowed + self.step * np.abs(wide)
            return np.where(np.isfinite(rounded), close, np.isnan(wide) | (found == rounded) | (np.isfinite(wide) & close))

    def _scale(self) -> float:
        return max((largest_of(expected, self.found.dtype.name) for _, _, expected in self._parts()), default=0.0)

    def _allowed(self, part: slice, scale: float) -> NDArray[np.float64]:
        each = self.moves.each
        moves = Sensitivity(self.moves.usual, None if each is None else each.reshape(-1)[part], self.moves.off)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.stated * tolerances(self.dtype, self.reduction, scale, self.input_scale, moves))

    def _parts(self) -> Iterator[tuple[slice, NDArray[np.generic], NDArray[np.generic]]]:
        found, expected = self.found.reshape(-1), self.expected.reshape(-1)
        for begin in range(0, found.size, PART):
            part = slice(begin, begin + PART)
            yield part, found[part], expected[part]


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
