"""Putting together, taking apart, repeating and turning round, against NumPy."""

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

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack(run: Run, array: Run, axis: int) -> None:
    parts = [array(2, 3) for _ in range(3)]
    np.testing.assert_array_equal(run(lambda *p: nn.stack(p, axis), *parts), np.stack(parts, axis))


@pytest.mark.parametrize(("sections", "axis"), [(3, 1), (1, 0), ([2, 4], 1), ((5,), -2), ([1], 2)])
def test_split(sections: int | list[int], axis: int, array: Run) -> None:
    data = array(2, 12, 3)
    got = evaluate(list(nn.split(te.placeholder(data.shape, name="x"), sections, axis)), {"x": data})
    for one, want in zip(got, np.split(data, sections, axis), strict=True):
        np.testing.assert_array_equal(one, want)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_flip_repeat_and_tile(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count, reps = data.draw(st.integers(1, 3)), tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    dtype = data.draw(st.sampled_from(["float32", "int8", "bool"]))
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x = te.placeholder(shape, dtype, "x")
    for got, want in ((nn.flip(x, axis), np.flip(values, axis)), (nn.repeat(x, count, axis), np.repeat(values, count, axis)),
                      (nn.tile(x, reps), np.tile(values, reps))):
        np.testing.assert_array_equal(evaluate([got], {"x": values})[0], want)


@pytest.mark.parametrize(("shape", "like", "axis"), [((3,), (2, 3), 0), ((2,), (2, 3), [1]), ((5, 7), (5, 6, 7, 8), [1, -1])])
def test_expand_like(run: Run, array: Run, shape: tuple[int, ...], like: tuple[int, ...], axis: int | list[int]) -> None:
    data = array(*shape)
    np.testing.assert_array_equal(run(lambda x: nn.expand_like(x, te.placeholder(like, name="like"), axis), data),
                                  np.broadcast_to(np.expand_dims(data, axis), like))


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid(indexing: str, count: int, array: Run) -> None:
    parts = {f"x{k}": array(k + 2) for k in range(count)}
    tensors = [te.placeholder(values.shape, name=name) for name, values in parts.items()]
    got = evaluate(list(nn.meshgrid(tensors, indexing)), parts)
    for one, want in zip(got, np.meshgrid(*parts.values(), indexing=indexing), strict=True):  # type: ignore[call-overload]
        np.testing.assert_array_equal(one, want)


def test_layouts(run: Run, array: Run) -> None:
    data = array(1, 8, 3, 5)
    np.testing.assert_array_equal(run(lambda x: nn.layout_transform(x, "NCHW", "NHWC"), data), data.transpose(0, 2, 3, 1))
    blocked = data.reshape(1, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(run(lambda x: nn.layout_transform(x, "NCHW", "NCHW4c"), data), blocked)
    np.testing.assert_array_equal(run(lambda x: nn.layout_transform(x, "NCHW4c", "NHWC"), blocked), data.transpose(0, 2, 3, 1))
    other = data.reshape(1, 4, 2, 3, 5).transpose(3, 0, 1, 2, 4)
    np.testing.assert_array_equal(run(lambda x: nn.layout_transform(x, "NCHW4c", "HNC2cW"), blocked), other)
    np.testing.assert_array_equal(run(lambda x: nn.layout_transform(x, "HNC2cW", "NCHW4c"), other), blocked)


X = te.placeholder((2, 3), name="X")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: nn.split(X, 2, 1), "into 2 parts; 3 has to be a multiple"),
        (lambda: nn.split(X, [2, 1], 1), "indices have to ascend, from 1 to 2"),
        (lambda: nn.repeat(X, 0, 1), "at least once"),
        (lambda: nn.tile(X, (0,)), "at least 1"),
        (lambda: nn.expand_like(X, te.placeholder((2, 4, 4), name="L"), 1), "the others have to be those of the first"),
        (lambda: nn.meshgrid([X]), "takes tensors of one dimension"),
        (lambda: nn.layout_transform(X, "NC", "NHC"), "both name the same dimensions"),
        (lambda: nn.layout_transform(X, "NC", "NC2c"), "blocks have to divide"),
        (lambda: nn.layout_transform(X, "NC", "NCc"), "a capital for each dimension"),
    ],
)
def test_what_is_refused(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare()
