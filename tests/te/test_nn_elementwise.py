"""Elementwise operators against NumPy and PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "hardswish", "hardsigmoid"])
def test_activations(run: Callable[..., Floats], array: Callable[..., Floats], name: str) -> None:
    import torch
    import torch.nn.functional as functional

    data = np.concatenate([array(5, 6) * 4, [[0, -3, 3, 6, 20, -20]]]).astype(np.float32)
    want: Floats = getattr(torch if name in ("sigmoid", "tanh") else functional, name)(torch.from_numpy(data)).numpy()
    np.testing.assert_allclose(run(getattr(nn, name), data), want, rtol=1e-3, atol=1e-5)


@pytest.mark.torch
def test_options_of_activations(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    import torch
    import torch.nn.functional as functional

    data = array(20)
    want: Floats = functional.gelu(torch.from_numpy(data), approximate="tanh").numpy()
    np.testing.assert_allclose(run(lambda d: nn.gelu(d, "tanh"), data), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(lambda d: nn.leaky_relu(d, 1.5), data), np.where(data > 0, data, data * 1.5), rtol=1e-6)
    np.testing.assert_array_equal(run(lambda d: nn.clip(d, -1, 0.5), data), data.clip(-1, 0.5))


def test_a_missing_value_stays_missing(run: Callable[..., Floats]) -> None:
    data = np.array([np.nan, 1], np.float32)
    for operator in (nn.relu, nn.relu6, nn.leaky_relu, nn.hardswish):
        assert np.isnan(run(operator, data)).tolist() == [True, False]


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "abs", "negative"])
def test_mathematics(run: Callable[..., Floats], array: Callable[..., Floats], name: str) -> None:
    data = np.abs(array(3, 4)) + 0.1
    np.testing.assert_allclose(run(getattr(nn, name), data), getattr(np, name)(data), rtol=1e-6)
    np.testing.assert_allclose(run(nn.rsqrt, data), 1 / np.sqrt(data), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power"])
@pytest.mark.parametrize(("left", "right"), [((2, 3), (2, 3)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2, 3)), ((4, 1, 3), (2, 1))])
def test_binary_operators_broadcast(run: Callable[..., Floats], array: Callable[..., Floats], name: str, left: tuple[int, ...],
                                    right: tuple[int, ...]) -> None:
    x, y = np.abs(array(*left)) + np.float32(0.5), np.abs(array(*right)) + np.float32(0.5)
    np.testing.assert_allclose(run(getattr(nn, name), x, y), getattr(np, name)(x, y), rtol=1e-5)


def test_numbers_on_either_side(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(2, 3)
    np.testing.assert_array_equal(run(lambda d: nn.subtract(1, d), data), 1 - data)
    np.testing.assert_array_equal(run(lambda d: nn.divide(d, 2.0), data), data / 2)


def test_scale_shift(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data, scale, shift = array(2, 3, 4), array(3), array(3)
    np.testing.assert_allclose(run(nn.scale_shift, data, scale, shift), data * scale[:, None] + shift[:, None], rtol=1e-5, atol=1e-6)


def test_cast_truncates(run: Callable[..., NDArray[np.int32]]) -> None:
    got = run(lambda d: nn.cast(d, "int32"), np.array([1.9, -1.9, 0.0], np.float32))
    assert got.dtype == np.int32 and got.tolist() == [1, -1, 0]


def test_relu_of_integers(run: Callable[..., NDArray[np.int8]]) -> None:
    assert run(nn.relu, np.array([-5, 7], np.int8)).tolist() == [0, 7]


D, I = te.placeholder((2, 3), name="D"), te.placeholder((2, 3), "int32", name="I")  # noqa: E741


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.add(D, te.placeholder((2, 4), name="E")), "add of D with shape (2, 3) and E with shape (2, 4); dimension -1 from the end is 3 and 4: extents"),
    (lambda: nn.add(1, 2), "asked for add of numbers only, 1 and 2; one of them has to be a tensor"),
    (lambda: nn.divide(I, 2), "asked for `I[i0, i1] / 2` on dtype int32"),
    (lambda: nn.leaky_relu(I), "asked for leaky_relu of int32 tensor I; it is defined for floats"),
    (lambda: nn.gelu(D, "erf"), "asked for gelu of D with approximate='erf'; it is 'none' or 'tanh'"),
    (lambda: nn.scale_shift(D, te.placeholder((2,), name="s"), te.placeholder((3,))),
     "scale_shift of D with shape (2, 3) along dimension 1 by s with shape (2,)"),
    (lambda: nn.cast(D, "half"), "asked for dtype 'half'"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("shape", "axis"), [((1, 3, 2, 2), 1), ((1, 3, 2, 2), -2), ((4, 3), -1)])
def test_prelu(run: Callable[..., NDArray[np.float32]], array: Callable[..., NDArray[np.float32]], shape: tuple[int, ...], axis: int) -> None:
    x, slope = array(*shape), array(shape[axis])
    wide = slope.reshape([-1 if d == axis % len(shape) else 1 for d in range(len(shape))])
    np.testing.assert_array_equal(run(lambda a, s: nn.prelu(a, s, axis), x, slope), np.where(x > 0, x, x * wide))


def test_sums_of_many(run: Callable[..., NDArray[np.float32]], array: Callable[..., NDArray[np.float32]]) -> None:
    parts = [array(2, 3) for _ in range(4)]
    np.testing.assert_allclose(run(lambda *p: nn.elementwise_sum(p), *parts), np.sum(parts, 0), rtol=1e-6)
    with pytest.raises(DeclarationError, match="give at least one, all of one shape and dtype"):
        nn.elementwise_sum([te.placeholder((2,), name="x"), te.placeholder((3,), name="y")])
