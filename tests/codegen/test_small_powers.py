"""Powers with the exponents 2, 3 and 4 are products, for scalars and vectors; others are the library's."""

from __future__ import annotations

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.measure.kernel import Kernel

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")]
N = 37  # whole vectors and a tail


def powers(dtype: str, exponent: float) -> Kernel:
    x = te.placeholder((N,), dtype, name="x")
    out = te.compute((N,), lambda i: x[i] ** exponent, name="out")
    schedule = ansor.create_schedule(out)
    schedule[out].vectorize(schedule[out].split(out.op.axis[0], 8)[1])
    return ansor.build(schedule, [x, out])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [2, 3, 4, 2.0])
def test_products(dtype: str, exponent: float) -> None:
    kernel = powers(dtype, exponent)
    assert "pow(" not in kernel.code.text and "powf(" not in kernel.code.text
    values = np.random.default_rng(0).standard_normal(N).astype(dtype) * 3
    values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30]
    np.testing.assert_allclose(np.asarray(kernel(values)), values.astype(np.float64) ** exponent if dtype == "float64" else values**exponent, rtol=4e-7)


@pytest.mark.parametrize("exponent", [0.5, -1, 1, 5, 2.5])
def test_others_are_the_librarys(exponent: float) -> None:
    kernel = powers("float32", exponent)
    values = np.random.default_rng(0).uniform(0.1, 3, N).astype(np.float32)
    assert "powf" in kernel.code.text
    np.testing.assert_allclose(np.asarray(kernel(values)), values**np.float32(exponent), rtol=1e-6)
