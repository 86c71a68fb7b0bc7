"""Reductions and normalisations against NumPy and PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.nn.normalization import NEGLIGIBLE, log_softmax_above, softmax_above
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]


def close(got: Floats, want: Floats) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_log_softmax(run: Callable[..., Floats], array: Callable[..., Floats], axis: int) -> None:
    import torch
    import torch.nn.functional as functional

    data = array(3, 4, 5) * 30  # exponents that overflow unless the maximum is taken off
    close(run(lambda d: nn.softmax(d, axis), data), functional.softmax(torch.from_numpy(data), axis).numpy())
    close(run(lambda d: nn.log_softmax(d, axis), data), functional.log_softmax(torch.from_numpy(data), axis).numpy())


def test_softmax_may_leave_out_what_is_negligible(run: Callable[..., Floats]) -> None:
    """The exponential of -76 is a normal number, that of -100 a subnormal one."""
    data = np.array([[0, -74, -76, -100, -np.inf], [1, 2, 3, np.nan, -100]], np.float32)
    whole, short = (run(lambda d, least=least: softmax_above(least, d, -1, "s"), data) for least in (None, NEGLIGIBLE))
    assert list(whole[0] > 0) == [True, True, True, True, False]
    assert list(short[0] > 0) == [True, True, False, False, False] and np.array_equal(short[0, :2], whole[0, :2])
    assert np.isnan(short[1]).all()
    whole, short = (run(lambda d, least=least: log_softmax_above(least, d, -1, "s"), data) for least in (None, NEGLIGIBLE))
    assert np.array_equal(whole, short, equal_nan=True)


@pytest.mark.torch
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("axis", [(-1,), (1, 2), (0, 1, 2)])
def test_layer_norm(run: Callable[..., Floats], array: Callable[..., Floats], axis: tuple[int, ...], affine: bool) -> None:
    import torch
    import torch.nn.functional as functional

    data = array(3, 4, 5) + 100  # a large mean, where the mean of squares less the square of the mean would be noise
    shape = tuple(data.shape[d] for d in axis)
    given = (array(*shape), array(*shape)) if affine else ()
    weight, bias = map(torch.from_numpy, given) if affine else (None, None)
    want: Floats = functional.layer_norm(torch.from_numpy(data), shape, weight, bias, 1e-3).numpy()
    got = run(lambda d, gamma=None, beta=None: nn.layer_norm(d, gamma, beta, axis, 1e-3), data, *given)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-4)


@pytest.mark.torch
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm(run: Callable[..., Floats], array: Callable[..., Floats], affine: bool) -> None:
    import torch
    import torch.nn.functional as functional

    data, mean, variance = array(2, 3, 4, 5), array(3), np.abs(array(3)) + 0.5
    given = (array(3), array(3)) if affine else ()
    weight, bias = map(torch.from_numpy, given) if affine else (None, None)
    want: Floats = functional.batch_norm(torch.from_numpy(data), torch.from_numpy(mean), torch.from_numpy(variance), weight, bias, eps=1e-4).numpy()
    close(run(lambda d, m, v, gamma=None, beta=None: nn.batch_norm(d, gamma, beta, m, v, 1, 1e-4), data, mean, variance, *given), want)
    turned = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    got = run(lambda d, m, v, gamma=None, beta=None: nn.batch_norm(d, gamma, beta, m, v, -1, 1e-4), turned, mean, variance, *given)
    close(got, np.moveaxis(want, 1, -1))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(run: Callable[..., Floats], array: Callable[..., Floats], axis: int | tuple[int, ...] | None, keepdims: bool) -> None:
    data = array(3, 4, 5)
    close(run(lambda d: nn.sum(d, axis, keepdims), data), data.sum(axis, keepdims=keepdims))
    close(run(lambda d: nn.prod(d, axis, keepdims), data), data.prod(axis, keepdims=keepdims))
    close(run(lambda d: nn.max(d, axis, keepdims), data), data.max(axis, keepdims=keepdims))
    close(run(lambda d: nn.min(d, axis, keepdims), data), data.min(axis, keepdims=keepdims))
    close(run(lambda d: nn.mean(d, axis, keepdims), data), data.mean(axis, keepdims=keepdims))
    close(run(lambda d: nn.norm(d, axis, keepdims), data), np.sqrt((data**2).sum(axis, keepdims=keepdims)))


def test_l2_normalize(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(3, 4)
    data[1] = 0
    close(run(nn.l2_normalize, data), data / np.sqrt(np.maximum((data**2).sum(1, keepdims=True), 1e-12)))


DATA = te.placeholder((2, 3), name="D")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.softmax(DATA, 2), "asked for softmax of D with shape (2, 3) over dimensions 2; give different ones in -2..1"),
    (lambda: nn.softmax(te.placeholder((2, 3), "int32", name="D")),
     "asked for softmax of int32 tensor D; it is defined for floats: use te.nn.cast first"),
    (lambda: nn.sum(DATA, (0, -2)), "asked for sum of D with shape (2, 3) over dimensions (0, -2); give different ones"),
    (lambda: nn.layer_norm(DATA, te.placeholder((2,), name="g"), None), "with gamma g (float32, shape (2,)); gamma has to be float32 of shape (3,)"),
    (lambda: nn.batch_norm(DATA, None, None, te.placeholder((3,), name="m"), te.placeholder((2,), name="v")),
     "asked for batch_norm of D (float32, shape (2, 3)) over dimensions (1,) with moving_var v (float32, shape (2,)); moving_var has to be float32"),
    (lambda: nn.mean(te.placeholder((2, 3), "int8", name="D")), "asked for mean of int8 tensor D"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("size", "axis"), [(5, 1), (3, 1), (1, 1), (3, -1), (7, 0)])
def test_local_response(run: Callable[..., Floats], array: Callable[..., Floats], size: int, axis: int) -> None:
    import torch

    data = array(2, 6, 3, 4)
    moved = torch.from_numpy(np.moveaxis(data, axis, 1))
    want = np.moveaxis(torch.nn.functional.local_response_norm(moved, size, 0.1, 0.6, 2.0).numpy(), 1, axis)
    np.testing.assert_allclose(run(lambda x: nn.lrn(x, size, axis, 0.1, 0.6, 2.0), data), want, rtol=1e-5)
