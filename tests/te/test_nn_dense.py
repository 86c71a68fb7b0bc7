"""Matrix products and the capsule convolution against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]


def close(got: Floats, want: Floats) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7), (7,)])
def test_dense(run: Callable[..., Floats], array: Callable[..., Floats], shape: tuple[int, ...]) -> None:
    data, weight, bias = array(*shape), array(4, 7), array(4)
    close(run(nn.dense, data, weight), data @ weight.T)
    close(run(nn.dense, data, weight, bias), data @ weight.T + bias)


def test_dense_of_one_input_has_no_reduction(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data, weight = array(5, 1), array(4, 1)
    close(run(nn.dense, data, weight), data @ weight.T)


def test_dense_of_small_integers(run: Callable[..., NDArray[np.int32]]) -> None:
    data, weight = np.full((2, 300), 127, np.int8), np.full((3, 300), -128, np.int8)
    got = run(lambda d, w: nn.dense(d, w, out_dtype="int32"), data, weight)
    assert got.dtype == np.int32 and (got == 127 * -128 * 300).all()


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul_and_batch_matmul(run: Callable[..., Floats], array: Callable[..., Floats], transpose_a: bool, transpose_b: bool) -> None:
    a, b = array(2, 3, 4), array(2, 4, 5)
    x = np.ascontiguousarray(a.swapaxes(1, 2)) if transpose_a else a
    y = np.ascontiguousarray(b.swapaxes(1, 2)) if transpose_b else b
    close(run(lambda s, t: nn.batch_matmul(s, t, transpose_a, transpose_b), x, y), a @ b)
    close(run(lambda s, t: nn.matmul(s, t, transpose_a, transpose_b), x[0], y[0]), a[0] @ b[0])


def test_batches_of_extent_one_are_repeated(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    a, b = array(2, 1, 3, 4), array(1, 6, 4, 5)
    close(run(lambda s, t: nn.batch_matmul(s, t, transpose_b=False), a, b), a @ b)


def test_batch_matmul_transposes_its_second_operand_by_default(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    a, b = array(2, 3, 4), array(2, 5, 4)
    close(run(nn.batch_matmul, a, b), a @ b.swapaxes(1, 2))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_bias_add(run: Callable[..., Floats], array: Callable[..., Floats], axis: int) -> None:
    data = array(2, 3, 4)
    bias = array(data.shape[axis])
    shape = [1, 1, 1]
    shape[axis] = -1
    close(run(lambda d, b: nn.bias_add(d, b, axis), data, bias), data + bias.reshape(shape))


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_capsule_conv2d(run: Callable[..., Floats], array: Callable[..., Floats], stride: int, padding: int) -> None:
    data, kernel = array(1, 5, 6, 2, 3, 4), array(3, 3, 3, 2, 4, 5)
    padded = np.pad(data, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0), (0, 0), (0, 0)))
    height, width = ((extent + 2 * padding - 3) // stride + 1 for extent in (5, 6))
    want = np.zeros((1, height, width, 2, 2, 5), np.float32)
    for h in range(height):
        for w in range(width):
            patch = padded[:, h * stride:h * stride + 3, w * stride:w * stride + 3]
            want[:, h, w] = np.einsum("nhwikc,hwkjco->nijo", patch, kernel)
    close(run(lambda d, k: nn.capsule_conv2d(d, k, stride, padding), data, kernel), want)


X, W = te.placeholder((2, 3), name="X"), te.placeholder((4, 5), name="W")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.dense(X, W),
     "asked for dense of X with extent 3 in its last dimension and weight W with shape (4, 5); weight is [out, in] and takes 5 inputs"),
    (lambda: nn.dense(X, te.placeholder((4,), name="W")), "weight W with shape (4,); data needs at least one dimension, weight two: [out, in]"),
    (lambda: nn.dense(X, te.placeholder((4, 3), "int8", name="W")), "asked for dense of float32 tensor X and int8 tensor W; give out_dtype="),
    (lambda: nn.dense(X, te.placeholder((4, 3)), te.placeholder((3,), name="b")),
     "asked to add bias b of shape (3,) to dense of shape (2, 4) along dimension -1"),
    (lambda: nn.matmul(X, W),
     "of X with shape (2, 3) and W with shape (4, 5), transpose_a=False, transpose_b=False; their inner extents are 3 and 4"),
    (lambda: nn.matmul(X, te.placeholder((1, 3, 4), name="W")),
     "asked for matmul of X with shape (2, 3) and W with shape (1, 3, 4); they need two dimensions"),
    (lambda: nn.batch_matmul(X, W), "they need the same number of dimensions, at least three"),
    (lambda: nn.batch_matmul(te.placeholder((2, 3, 4)), te.placeholder((3, 5, 4))),
     "batch dimension 0 is 2 and 3: they have to be equal, or one of them 1"),
    (lambda: nn.capsule_conv2d(te.placeholder((1, 5, 5, 2, 3, 4), name="D"), te.placeholder((3, 3, 2, 2, 4, 5), name="K")),
     "capsule columns of the data and capsule rows of the kernel are 3 and 2, and have to be equal"),
    (lambda: nn.capsule_conv2d(X, W), "layout NHWIKC needs 6"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)
