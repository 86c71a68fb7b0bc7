"""Formulas beside PyTorch's own functions, and beside their limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ansor import te
from ansor.graph.scalar_functions import FORMULAS, OF_FLOAT32
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import axes_of, declared

pytestmark = pytest.mark.torch
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-6, -1e-6, 3.0, -3.0, 30.0, 1e4, float("inf"), float("-inf"), float("nan")]
INSIDE = {"lgamma": (-9.7, 40.0), "digamma": (-9.7, 40.0), "erfinv": (-1.0, 1.0)}


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "bitwise_not"])
def test_formulas(name: str) -> None:
    formula, wanted = FORMULAS[name]
    given = np.array([*np.linspace(*INSIDE.get(name, (-9.0, 9.0)), 2001), *EDGES], dtype=np.float32)
    if name == "digamma":
        given = given[np.isfinite(given)]
    x = te.placeholder(given.shape, "float32", "x")
    axes = axes_of(x.shape)
    with np.errstate(all="ignore"):
        found = evaluate([declared("y", axes, formula(x[axes]))], {x: given})[0]
    torch.testing.assert_close(torch.from_numpy(found), wanted(torch.from_numpy(given)), rtol=3e-5, atol=3e-6, equal_nan=True)


def test_small_values_of_erfc_are_not_lost() -> None:
    x = te.placeholder((1,), "float32", "x")
    axes = axes_of(x.shape)
    found = evaluate([declared("y", axes, OF_FLOAT32["erfc"][0](x[axes]))], {x: np.array([5.0], np.float32)})[0]
    assert abs(found[0] / 1.5374597e-12 - 1) < 1e-5
