"""Padding and operators that move elements, against NumPy."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.evaluate import evaluate
from ansor.te import nn
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]


def body(tensor: Tensor) -> str:
    assert tensor.compute is not None
    return str(tensor.compute.body)


def test_pad(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(3, 4)
    np.testing.assert_array_equal(run(lambda d: nn.pad(d, (1, 0), (0, 2)), data), np.pad(data, ((1, 0), (0, 2))))
    np.testing.assert_array_equal(run(lambda d: nn.pad(d, (1, 2), pad_value=-math.inf), data), np.pad(data, ((1, 1), (2, 2)), constant_values=-np.inf))
    np.testing.assert_array_equal(run(lambda d: nn.pad(d, (0, 0)), data), data)


def test_only_padded_sides_are_guarded() -> None:
    assert body(nn.pad(te.placeholder((3, 4), name="D"), (1, 0), (0, 0))) == "select((i0 >= 1), D[(i0 - 1), i1], 0.0)"
    assert body(nn.pad(te.placeholder((3, 4), "int8", name="D"), (0, 0), (0, 2), 3.0)) == "select((i1 < 4), D[i0, i1], 3)"


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenate(run: Callable[..., Floats], array: Callable[..., Floats], axis: int) -> None:
    shapes = [[2, 3, 4] for _ in range(3)]
    for k, shape in enumerate(shapes):
        shape[axis] = k + 1
    parts = [array(*shape) for shape in shapes]
    np.testing.assert_array_equal(run(lambda *p: nn.concatenate(p, axis), *parts), np.concatenate(parts, axis))


@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (-1, 1, 0)])
def test_transpose(run: Callable[..., Floats], array: Callable[..., Floats], axes: tuple[int, ...] | None) -> None:
    data = array(2, 3, 4)
    np.testing.assert_array_equal(run(lambda d: nn.transpose(d, axes), data), data.transpose(axes))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_reshape(data: st.DataObject) -> None:
    def factored(size: int) -> tuple[int, ...]:
        shape = []
        while size > 1:
            shape.append(data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0])))
            size //= shape[-1]
        return tuple(shape)

    size = data.draw(st.sampled_from([1, 2, 12, 24, 36, 60]))
    old, new = factored(size), factored(size)
    values = np.arange(size, dtype=np.int32).reshape(old)
    (got,) = evaluate([nn.reshape(te.placeholder(old, "int32", "x"), new)], {"x": values})
    np.testing.assert_array_equal(got, values.reshape(new))


def test_reshape_keeps_whole_dimensions_apart() -> None:
    data = te.placeholder((2, 6, 8), name="D")
    assert body(nn.reshape(data, (2, 6, 4, 2))) == "D[i0, i1, ((i2 * 2) + i3)]"
    assert body(nn.reshape(data, (12, -1))) == "D[(i0 // 6), (i0 % 6), i1]"
    assert body(nn.reshape(te.placeholder((2, 6, 1, 1), name="D"), (2, 6))) == "D[i0, i1, 0, 0]"


def test_flatten_squeeze_and_expand(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(2, 1, 3, 1)
    np.testing.assert_array_equal(run(nn.flatten, data), data.reshape(2, 3))
    np.testing.assert_array_equal(run(lambda d: nn.flatten(d, 0, 2), data), data.reshape(6, 1))
    np.testing.assert_array_equal(run(nn.squeeze, data), data.squeeze())
    np.testing.assert_array_equal(run(lambda d: nn.squeeze(d, -1), data), data.squeeze(-1))
    np.testing.assert_array_equal(run(lambda d: nn.expand_dims(d, 1, 2), data), data[:, None, None])
    np.testing.assert_array_equal(run(lambda d: nn.expand_dims(d, -1), data), data[..., None])


@pytest.mark.parametrize(("begin", "end", "strides"), [((1, 0), (3, 4), None), ((0,), (4,), (2,)), ((-1, 1), (-5, 5), (-1, 3)), ((0, -2), (9, 99), None)])
def test_strided_slice(run: Callable[..., Floats], array: Callable[..., Floats], begin: tuple[int, ...], end: tuple[int, ...],
                       strides: tuple[int, ...] | None) -> None:
    data = array(4, 5)
    want = data[tuple(slice(*ends) for ends in zip(begin, end, strides or (1,) * len(begin), strict=True))]
    np.testing.assert_array_equal(run(lambda d: nn.strided_slice(d, begin, end, strides), data), want)


def test_broadcast_to(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data = array(3, 1)
    np.testing.assert_array_equal(run(lambda d: nn.broadcast_to(d, (2, 3, 4)), data), np.broadcast_to(data, (2, 3, 4)))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(run: Callable[..., Floats], array: Callable[..., Floats], axis: int | None, dtype: type[np.signedinteger]) -> None:
    data, places = array(3, 4, 5), np.array([[0, 2], [-4, 99]], dtype)
    np.testing.assert_array_equal(run(lambda d, p: nn.take(d, p, axis), data, places), np.take(data, places, axis, mode="clip"))
    np.testing.assert_array_equal(run(lambda d, p: nn.take(d, p, axis, "wrap"), data, places), np.take(data, places, axis, mode="wrap"))


def test_places_as_bytes(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data, places = array(300), np.array([0, 255, 200], np.uint8)
    np.testing.assert_array_equal(run(lambda d, p: nn.take(d, p, 0), data, places), data[places])


def test_indices_narrower_than_the_extent(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data, places = array(1000), np.array([127, -1], np.int8)
    np.testing.assert_array_equal(run(lambda d, p: nn.take(d, p, 0, "wrap"), data, places), data[[127, 999]])


def test_embedding(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    weight, places = array(10, 4), np.array([[1, 9, 3]], np.int64)
    np.testing.assert_array_equal(run(nn.embedding, places, weight), weight[places])


D, E = te.placeholder((2, 3), name="D"), te.placeholder((2, 4), name="E")
INDEX = te.placeholder((2,), "int32", name="I")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.pad(D, (1,)), "asked to pad tensor D of shape (2, 3) with pad_before=(1,); give 2 integers of at least 0, one per dimension"),
    (lambda: nn.pad(D, (1, 1), (0, -1)), "with pad_after=(0, -1)"),
    (lambda: nn.concatenate([]), "asked for concatenate of no tensor"),
    (lambda: nn.concatenate([D, E]),
     "along dimension 0 of D (float32, shape (2, 3)) and E (float32, shape (2, 4)); dtype, rank and all other extents"),
    (lambda: nn.concatenate([D, te.placeholder((2, 3), "int8", name="F")]), "and F (int8, shape (2, 3)); dtype"),
    (lambda: nn.transpose(D, (0, 0)), "asked for transpose of D with shape (2, 3) by axes (0, 0); each of 0..1 has to occur once"),
    (lambda: nn.reshape(D, (4, -1)), "asked for reshape of D with shape (2, 3), 6 elements, to shape (4, -1); give extents of that product"),
    (lambda: nn.reshape(D, (-1, -1)), "to shape (-1, -1)"),
    (lambda: nn.flatten(D, 1, 0), "from dimension 1 to 0, which comes before it"),
    (lambda: nn.squeeze(D, 0), "asked for squeeze of D with shape (2, 3) in dimension 0, which has extent 2; it has to be 1"),
    (lambda: nn.expand_dims(D, 3), "asked for expand_dims of D with shape (2, 3) at dimension 3, 1 times; the dimension is in -3..2"),
    (lambda: nn.strided_slice(D, (0,), (2, 3)), "give one value each for the same dimensions, the leading ones or those of axes=, at most 2, and no stride 0"),
    (lambda: nn.strided_slice(D, (2,), (2,)), "asked for strided_slice 2:2:1 of D with shape (2, 3) in dimension 0, which is empty"),
    (lambda: nn.broadcast_to(D, (3, 3)), "asked for broadcast_to of D with shape (2, 3) to shape (3, 3)"),
    (lambda: nn.broadcast_to(D, (3,)), "asked for broadcast_to of D with shape (2, 3) to shape (3,)"),
    (lambda: nn.take(D, INDEX, 0, "fast"), "asked for take of D with mode 'fast'; it is 'clip' or 'wrap'"),
    (lambda: nn.take(D, E, 0), "asked for take of D at E, which has dtype float32; indices are integers"),
    (lambda: nn.embedding(INDEX, te.placeholder((3,), name="W")), "asked for embedding with weight W of shape (3,); it has to have two dimensions"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)
