"""Arithmetic intensity: operations per byte, as a curve over how many innermost loops run."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.cost_model.feature_table import CURVE_POINTS
from ansor.cost_model.nest import Nest
from ansor.ir.columns import Row, excess, larger, log2, log2_of_one_more, multiply_add


def intensity_curve(nest: Nest, touched_bytes: Sequence[Row], operations: float) -> list[Row]:
    """CURVE_POINTS times log2(1 + operations / byte) at equal steps of log2(iterations), linear between boundaries.

    touched_bytes: by boundary; operations: per iteration.
    """
    if not operations:
        return [0.0] * CURVE_POINTS
    intensity = [log2_of_one_more(inside * operations / touched) for inside, touched in zip(nest.counts.inside, touched_bytes, strict=True)]
    done = [log2(inside) for inside in nest.counts.inside]
    # The slope of the curve changes at every boundary. A real loop at least doubles the iterations; one of extent 1 has no rise, so its width does not
    # matter.
    slopes = [(intensity[level] - intensity[level + 1]) / larger(done[level] - done[level + 1], 0.5) for level in range(len(nest.loops))]
    turns = [slope - before for slope, before in zip(slopes, [*slopes, 0.0][1:], strict=True)]
    curve = [intensity[-1]]
    for point in range(1, CURVE_POINTS - 1):
        sample = done[0] * (point / (CURVE_POINTS - 1))
        value = intensity[-1]
        for turn, start in zip(turns, done[1:], strict=True):
            value = multiply_add(turn, excess(sample, start), value)
        curve.append(larger(value, 0.0))
    return [*curve, intensity[0]]
