"""Predicts a model's errors on programs from its errors on similar measured ones.

A Gaussian process (kriging): a model's errors on measured programs are assumed to be a sample of a random function that hardly differs between
similar programs; its mean given these errors is the model's expected error elsewhere. The covariance of two programs falls
exponentially with their distance, which allows a rough function: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 2.2 and 4.2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.distance_library import Distances, distances_from
from ansor.cost_model.network import read_array, written_array
from ansor.support.blas import one_blas_thread

RANGE = 0.15
"""Distance, in log time, over which the covariance falls by e. For programs of 121 held-out tasks, learned from 8, 16 and 32 others, this and its double
ordered the most pairs; a half and three times as much were within 0.1 %."""

NOISE = 0.1
"""Variance of the part that does not carry over, relative to the part that does."""

DECIMALS = 9
"""Coefficients are rounded to this, so that the order of sums in a solver (threads) does not matter."""

Points = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Kriging:
    """points: [n, width], where errors are known; coefficients: [n]. Called with points [m, width], it returns the expected error of each, [m].

    Raises ValueError for other shapes.
    """

    points: Points
    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.coefficients.shape != (len(self.points),):
            raise ValueError(f"a coefficient for each point is needed; found {self.coefficients.shape} for points of shape {self.points.shape}")

    def __call__(self, points: Points) -> NDArray[np.float64]:
        expected: NDArray[np.float64] = (_covariance(self._distances(points)) * self.coefficients).sum(axis=1)
        return expected

    @cached_property
    def _distances(self) -> Distances:
        return distances_from(self.points)

    def document(self) -> dict[str, object]:
        """The JSON form."""
        return {"points": written_array(self.points, "<f4"), "coefficients": written_array(self.coefficients, "<f8")}


def kriging_from_document(document: Mapping[str, Any]) -> Kriging:
    """What `document` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    return Kriging(read_array(document["points"], "<f4", np.float32), read_array(document["coefficients"], "<f8", np.float64))


def fit_kriging(points: Points, errors: NDArray[np.float64], weights: NDArray[np.float64]) -> Kriging:
    """errors, weights: [n] of points [n, width]; an error with a small weight counts more as noise."""
    covariance = _covariance(distances_from(points)(points)) + np.diag(NOISE / weights)
    with one_blas_thread():
        coefficients = np.asarray(np.linalg.solve(covariance, errors), np.float64)
    return Kriging(points, coefficients.round(DECIMALS))


def _covariance(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    np.multiply(distances, -1 / RANGE, out=distances)
    return np.exp(distances, out=distances)
