"""Pooling against PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]
WINDOWS = [(3, 2, 1), ((2, 3), (2, 2), (1, 1)), (2, 2, 0), (3, 3, 0), (3, 1, 1)]


def last(array: Floats) -> Floats:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


@pytest.mark.torch
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), WINDOWS)
def test_pool2d(run: Callable[..., Floats], array: Callable[..., Floats], kernel: int, stride: int, padding: int, ceil_mode: bool) -> None:
    import torch
    import torch.nn.functional as functional

    data = array(2, 3, 9, 8)
    for include in (True, False):
        average: Floats = functional.avg_pool2d(torch.from_numpy(data), kernel, stride, padding, ceil_mode, include).numpy()
        got = run(lambda d, include=include: nn.pool2d(d, kernel, stride, 1, padding, "avg", ceil_mode, "NCHW", include), data)
        np.testing.assert_allclose(got, average, rtol=1e-5, atol=1e-6)
    for dilation in (1, 2):
        greatest: Floats = functional.max_pool2d(torch.from_numpy(data), kernel, stride, padding, dilation, ceil_mode).numpy()
        got = run(lambda d, dilation=dilation: nn.pool2d(d, kernel, stride, dilation, padding, "max", ceil_mode), data)
        np.testing.assert_array_equal(got, greatest)
        got = run(lambda d, dilation=dilation: nn.pool2d(d, kernel, stride, dilation, padding, "max", ceil_mode, "NHWC"), last(data))
        np.testing.assert_array_equal(got, last(greatest))


@pytest.mark.torch
def test_pool1d_and_pool3d(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    import torch
    import torch.nn.functional as functional

    line, cube = array(1, 2, 9), array(1, 2, 5, 6, 7)
    want: Floats = functional.max_pool1d(torch.from_numpy(line), 3, 2, 1).numpy()
    np.testing.assert_array_equal(run(lambda d: nn.pool1d(d, 3, 2, 1, 1), line), want)
    want = functional.avg_pool3d(torch.from_numpy(cube), (2, 3, 3), 2, 1).numpy()
    np.testing.assert_allclose(run(lambda d: nn.pool3d(d, (2, 3, 3), 2, 1, 1, "avg"), cube), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("include", [True, False])
def test_dilated_average(run: Callable[..., Floats], array: Callable[..., Floats], include: bool) -> None:
    data = array(1, 1, 9)
    got = run(lambda d: nn.pool1d(d, 3, 2, 3, (2, 1), "avg", False, "NCW", include), data)
    for place in range(got.shape[2]):
        taps = [place * 2 - 2 + 3 * tap for tap in range(3)]
        inside = [data[0, 0, at] for at in taps if 0 <= at < 9]
        assert got[0, 0, place] == pytest.approx(sum(inside) / (3 if include else len(inside)), rel=1e-5)


def test_integers_are_padded_with_their_least_value(run: Callable[..., NDArray[np.int8]]) -> None:
    data = np.full((1, 1, 3, 3), -100, np.int8)
    assert (run(lambda d: nn.pool2d(d, 3, 1, 1, 1), data) == -100).all()


@pytest.mark.torch
@pytest.mark.parametrize("size", [1, 2, 3, (9, 8), (5, 7), (4, 4), (12, 8)])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pool(run: Callable[..., Floats], array: Callable[..., Floats], size: int | tuple[int, int], kind: str) -> None:
    import torch
    import torch.nn.functional as functional

    data = array(2, 3, 9, 8)
    oracle = functional.adaptive_avg_pool2d if kind == "avg" else functional.adaptive_max_pool2d
    want: Floats = oracle(torch.from_numpy(data), size).numpy()
    np.testing.assert_allclose(run(lambda d: nn.adaptive_pool(d, size, kind), data), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(lambda d: nn.adaptive_pool(d, size, kind, "NHWC"), last(data)), last(want), rtol=1e-5, atol=1e-6)


def test_global_pool(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(2, 3, 4, 5)
    np.testing.assert_allclose(run(nn.global_pool, data), data.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run(lambda d: nn.global_pool(d, "max", "NCHW"), data), data.max((2, 3), keepdims=True))
    np.testing.assert_allclose(run(lambda d: nn.global_pool(d, layout="NCW"), data[0]), data[0].mean(2, keepdims=True), rtol=1e-5, atol=1e-6)


DATA = te.placeholder((1, 8, 6, 6), name="D")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.pool2d(DATA, 2, pool_type="mean"), "asked for pool2d of D with pool_type 'mean'; it is 'max' or 'avg'"),
    (lambda: nn.pool2d(te.placeholder((1, 1, 4, 4), "int8", name="D"), 2, pool_type="avg"),
     "pool2d of int8 tensor D with pool_type 'avg'; averages need floats"),
    (lambda: nn.pool2d(DATA, 7), "asked for pool2d of D with a kernel of 7 in dimension H (spanning 7 with dilation 1), where the data has 6"),
    (lambda: nn.pool2d(DATA, 2, layout="NC"), "asked for pool2d with layout 'NC'"),
    (lambda: nn.pool2d(DATA, (2, 2, 2)), "asked for pool2d with kernel (2, 2, 2); give an integer of at least 1, or 2 of them"),
    (lambda: nn.pool1d(DATA, 2), "asked for pool1d of data D with shape (1, 8, 6, 6), which has 4 dimensions; layout NCW needs 3"),
    (lambda: nn.adaptive_pool(DATA, 0), "asked for adaptive_pool with output_size 0"),
    (lambda: nn.adaptive_pool(DATA, 1, layout="NCQ"), "asked for adaptive_pool with layout 'NCQ'; it has to arrange the letters N, C, W"),
    (lambda: nn.global_pool(DATA, "sum"), "asked for global_pool of D with pool_type 'sum'"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)
