"""Arithmetic intensity: operations per byte, as a curve over how many of the innermost loops are run."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.cost_model.feature_table import CURVE_POINTS
from ansor.cost_model.nest import Nest
from ansor.ir.columns import Row, larger, log2, smaller


def intensity_curve(nest: Nest, touched_bytes: Sequence[Row], operations: float) -> list[Row]:
    """CURVE_POINTS times log2(1 + operations / byte) at equal steps of log2(iterations), linear between boundaries.

    touched_bytes: by boundary; operations: per iteration.
    """
    if not operations:
        return [0.0] * CURVE_POINTS
    intensity = [log2(inside * operations / touched + 1.0) for inside, touched in zip(nest.inside, touched_bytes, strict=True)]
    done = [log2(inside) for inside in nest.inside]
    levels = range(len(nest.loops))
    rises = [intensity[level] - intensity[level + 1] for level in levels]
    # A real loop does at least twice the iterations; one of extent 1 has no rise, so its width does not matter.
    widths = [larger(done[level] - done[level + 1], 0.5) for level in levels]
    curve = []
    for point in range(CURVE_POINTS):
        sample = done[0] * (point / (CURVE_POINTS - 1))
        value = intensity[-1]
        for level in reversed(levels):
            value = value + smaller(larger((sample - done[level + 1]) / widths[level], 0.0), 1.0) * rises[level]
        curve.append(larger(value, 0.0))
    return curve
