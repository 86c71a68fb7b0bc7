"""A smooth model of row times: log time = bias + linear + square of each standardised feature, fitted by ridge regression.

Trees cannot extrapolate and need many programs; a bowl in every feature is useful after 16. So this comes first
and trees correct it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.training_set import LIMIT, TINY
from ansor.ir.feature_rows import FeatureRows
from ansor.support.blas import one_blas_thread

RIDGE = 300.0
"""Strong, as there are more features than programs, and a bowl that fits 16 of them diverges on the next. Learned from the first 16 trials of
68 operators, the rank correlation with the later ones was 0.29 with 0.3, 0.61 with 300, and 0.63 for the estimate alone."""
ITERATIONS = 6
CLIP = 4.0
"""Standard deviations at which a feature is clipped: a square must not diverge on a program unlike all others."""

BLOCK = 512
"""Rows at a time, so that intermediates stay in the caches: 4,000 rows take a twentieth of the time."""

DECIMALS = 6
"""Row logs are rounded to this, so that the order of sums in a matrix product (batch size, threads) does not matter."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothModel:
    """`mean`, `scale`, `linear`, `square`: float32 `[features]`; scale is 0 for a feature that never varied."""

    bias: float
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    linear: NDArray[np.float32]
    square: NDArray[np.float32]

    def row_logs(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Log time of each row, `[r]`."""
        logs, room = np.empty(len(rows), np.float32), np.empty((min(BLOCK, len(rows)), rows.shape[1]), np.float32)
        with np.errstate(invalid="ignore"):  # with five columns, OpenBLAS for AVX-512 also computes with lanes that nobody wrote, and drops them
            for begin in range(0, len(rows), BLOCK):
                block = rows[begin : begin + BLOCK]
                standard = _standardised(block, self.mean, self.scale, room[: len(block)])
                some = logs[begin : begin + BLOCK]
                np.matmul(standard, self.linear, out=some)
                some += np.square(standard, out=standard) @ self.square
        return np.round(logs.astype(np.float64) + self.bias, DECIMALS)

    def document(self) -> dict[str, object]:
        """As plain lists, for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "linear", "square")}
        return {"bias": self.bias, **arrays}


def smooth_from_document(document: dict[str, float | Sequence[float]]) -> SmoothModel:
    """Reads what `document` made. Raises KeyError, TypeError or ValueError for anything else."""
    arrays = {name: np.asarray(document[name], np.float32) for name in ("mean", "scale", "linear", "square")}
    return SmoothModel(bias=float(np.asarray(document["bias"])), **arrays)


def fit_smooth(features: FeatureRows, slowness: NDArray[np.float64], weights: NDArray[np.float64],
               base: NDArray[np.float64]) -> SmoothModel:
    """Weighted least squares on log slowness `[n]`, where a program's slowness is the sum of exp(base + row log) over its rows.

    Gauss-Newton with a ridge; always solvable, even with fewer programs than features.
    """
    mean = features.rows.mean(axis=0, dtype=np.float64)
    deviation = features.rows.std(axis=0, dtype=np.float64)
    varies = deviation > 1e-6 * (1e-9 + np.abs(mean))
    scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0)
    standard = _standardised(features.rows, mean.astype(np.float32), scale.astype(np.float32)).astype(np.float64)
    columns = np.concatenate([np.ones((len(standard), 1)), standard, standard**2 / 2], axis=1)
    penalty = np.full(columns.shape[1], RIDGE)
    penalty[0] = 1e-3
    present, first = np.unique(features.segment, return_index=True)
    weight, wanted = weights[present], slowness[present]
    solution = np.zeros(columns.shape[1])
    with one_blas_thread():
        for _ in range(ITERATIONS):
            times = np.exp(np.clip(base + columns @ solution, -LIMIT, LIMIT))
            total = np.maximum(np.add.reduceat(times, first), TINY)
            share = times / np.repeat(total, np.diff(first, append=len(times)))
            slopes = np.add.reduceat(columns * share[:, None], first, axis=0)
            normal = slopes.T @ (slopes * weight[:, None]) + np.diag(penalty)
            downhill = slopes.T @ (weight * (wanted - np.log(total))) - penalty * solution
            solution = solution + np.linalg.solve(normal, downhill)
    solution = np.round(solution, DECIMALS)
    width = features.width
    return SmoothModel(float(solution[0]), mean.astype(np.float32), scale.astype(np.float32),
                       solution[1:width + 1].astype(np.float32), (solution[width + 1:] / 2).astype(np.float32))


def _standardised(
    rows: NDArray[np.float32], mean: NDArray[np.float32], scale: NDArray[np.float32], out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    standard = np.subtract(rows, mean, out=out)
    standard *= scale
    return np.clip(standard, -CLIP, CLIP, out=standard)
