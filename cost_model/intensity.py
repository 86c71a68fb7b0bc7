"""Arithmetic intensity: operations per byte, as a curve over how many of the innermost loops are run."""

from __future__ import annotations

import numpy as np

from ansor.cost_model.feature_table import CURVE_POINTS
from ansor.cost_model.nest import Matrix, Nest


def intensity_curve(nest: Nest, touched_bytes: Matrix, operations: float) -> Matrix:
    """float64 [CURVE_POINTS, n]: log2(1 + operations / byte) at equal steps of log2(iterations), linear between boundaries.

    touched_bytes: [loops + 1, n], by boundary; operations: per iteration.
    """
    curve = np.zeros((CURVE_POINTS, nest.count))
    if not operations:
        return curve
    intensity = np.log2(nest.inside * operations / touched_bytes + 1.0)
    done = np.log2(nest.inside)
    samples = np.arange(CURVE_POINTS)[:, None] * (done[0] / (CURVE_POINTS - 1))
    curve += intensity[-1]
    part = np.empty_like(curve)
    for boundary in range(len(nest.loops) - 1, -1, -1):
        rise = intensity[boundary] - intensity[boundary + 1]
        # A real loop does at least twice the iterations; one of extent 1 has no rise, so its width does not matter.
        width = np.maximum(done[boundary] - done[boundary + 1], 0.5)
        np.subtract(samples, done[boundary + 1], out=part)
        part /= width
        np.clip(part, 0.0, 1.0, out=part)
        part *= rise
        curve += part
    return np.maximum(curve, 0.0, out=curve)
