"""Reads and writes at places that tensors hold, against NumPy."""

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
STRIDED_SET: Callable[..., te.Tensor] = nn.strided_set
KINDS = ["int8", "int32", "int64", "uint8"]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 7, 5)), (0, (4, 2, 5)), (1, (4, 10, 5)), (2, (4, 7, 2)), (-1, (3, 7, 9))])
def test_gather(run: Run, array: Run, axis: int, shape: tuple[int, ...], dtype: str) -> None:
    data = array(4, 7, 5)
    places = np.random.default_rng(0).integers(0, data.shape[axis], shape).astype(dtype)
    rest = data[tuple(slice(None) if d == axis % 3 else slice(extent) for d, extent in enumerate(shape))]
    np.testing.assert_array_equal(run(lambda d, p: nn.gather(d, axis, p), data, places), np.take_along_axis(rest, places.astype(int), axis))


def test_places_outside_are_moved_to_the_end(run: Run) -> None:
    data = np.arange(5, dtype=np.float32)
    assert run(lambda d, p: nn.gather(d, 0, p), data, np.array([-9, 99, 2], np.int8)).tolist() == [0, 4, 2]
    assert run(nn.gather_nd, data, np.array([[-9, 99, 2]], np.int64)).tolist() == [0, 4, 2]


@pytest.mark.parametrize("dtype", [*KINDS, "float32"])
@pytest.mark.parametrize(("shape", "places"), [((4,), [[1, 3, 2]]), ((2, 3), [[1]]), ((2, 3), [[1], [0]]), ((2, 3, 4), [[1, 0], [0, 2], [3, 1]]),
                                               ((2, 3, 4), [[[1, 0], [0, 1]], [[0, 2], [1, 2]]])])
def test_gather_nd(run: Run, array: Run, shape: tuple[int, ...], places: list[object], dtype: str) -> None:
    data, at = array(*shape), np.array(places)
    np.testing.assert_array_equal(run(nn.gather_nd, data, at.astype(dtype)), data[tuple(at)])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shapes", [[(2,), (2,), (1,)], [(4, 1), (1, 7)], [(1, 2, 1), (1, 2, 7)], [(3,)], [(2, 3), (3,), ()]])
def test_advanced_index(shapes: list[tuple[int, ...]], dtype: str, array: Run) -> None:
    data, generator = array(10, 5, 6), np.random.default_rng(1)
    places = [np.asarray(generator.integers(0, extent, shape), dtype) for extent, shape in zip(data.shape, shapes, strict=False)]
    tensors = [te.placeholder(at.shape, dtype, f"i{d}") for d, at in enumerate(places)]
    (got,) = evaluate([nn.advanced_index(te.placeholder(data.shape, name="d"), tensors)], {"d": data} | {f"i{d}": at for d, at in enumerate(places)})
    np.testing.assert_array_equal(got, data[tuple(at.astype(int) for at in places)])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("shape", "axis"), [((3,), -1), ((2, 2), 0), ((2, 2), 1), ((3, 2, 4), -2), ((), 0)])
def test_one_hot(run: Run, shape: tuple[int, ...], axis: int, dtype: str) -> None:
    places = np.asarray(np.random.default_rng(2).integers(0, 6, shape), dtype)
    want = np.moveaxis(np.where(np.eye(5)[np.minimum(places, 5) % 5] * (places[..., None] < 5), 2, -1), -1, axis)
    np.testing.assert_array_equal(run(lambda p: nn.one_hot(p, 2, te.const(-1, "int32"), 5, axis, "float32"), places), want)


@pytest.mark.parametrize(("shape", "axis"), [((5, 10), 0), ((5, 10), 1), ((3, 4, 5, 2), 0), ((3, 4, 5, 2), 1)])
def test_sequence_mask(run: Run, array: Run, shape: tuple[int, ...], axis: int) -> None:
    data = array(*shape)
    lengths = np.random.default_rng(3).integers(0, shape[axis] + 2, shape[1 - axis]).astype(np.int32)
    want = data.copy()
    for b, length in enumerate(lengths):
        want[(slice(length, None), b) if axis == 0 else (b, slice(length, None))] = 7
    np.testing.assert_array_equal(run(lambda d, n: nn.sequence_mask(d, n, 7, axis), data, lengths), want)


@pytest.mark.parametrize(("along", "batch"), [(1, 0), (0, 1), (-1, 0), (2, 1)])
def test_reverse_sequence(run: Run, array: Run, along: int, batch: int) -> None:
    data = array(4, 5, 3)
    lengths = np.random.default_rng(4).integers(-1, 7, (data.shape[batch],)).astype(np.int32)
    want = np.moveaxis(data.copy(), (batch, along), (0, 1))
    for b, n in enumerate(lengths):
        rows, length = want[b], min(max(int(n), 1), data.shape[along])
        rows[:length] = rows[:length][::-1].copy()
    np.testing.assert_array_equal(run(lambda d, n: nn.reverse_sequence(d, n, along, batch), data, lengths), np.moveaxis(want, (0, 1), (batch, along)))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("places", "shape"), [([0, 1, 2, 3], [2, 2]), ([144], [5, 5, 5, 2]), (144, [5, 5, 5, 2]), ([[100, 13], [5, 0]], [5, 5, 5, 2]),
                                               ([3], [7])])
def test_unravel_index(run: Run, places: int | list[int], shape: list[int], dtype: str) -> None:
    at, extents = np.array(places, np.int64), np.array(shape, dtype)
    np.testing.assert_array_equal(run(nn.unravel_index, at, extents), np.array(np.unravel_index(at, shape)))


@pytest.mark.parametrize("default", [0, 4, None])
@pytest.mark.parametrize(("places", "values", "shape"), [(1, 3, [5]), ([0, 1, 4], [3, 2, 1], [5]), ([0, 1, 0], [3, 2, 1], [2]),
                                                         ([[0, 0], [1, 2]], [1, 2], [3, 4]),
                                                         ([[0, 0, 0], [1, 2, 3]], 9, [2, 3, 4])])
def test_sparse_to_dense(run: Run, places: object, values: object, shape: list[int], default: int | None) -> None:
    at, numbers = np.array(places), np.array(values, np.float32)
    want = np.full(shape, default or 0, np.float32)
    want[tuple(at.reshape(-1, len(shape)).T)] = numbers
    if default is None:
        got = run(lambda p, v, d: nn.sparse_to_dense(p, shape, v, d), at, numbers, np.float32(0))
    else:
        got = run(lambda p, v: nn.sparse_to_dense(p, shape, v, default), at, numbers)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("align", ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [0, 1, -1, (-1, 2), (0, 1), (-1, -1), (-2, 0)])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (3, 3)])
def test_matrix_set_diag(run: Run, array: Run, shape: tuple[int, ...], k: int | tuple[int, int], align: str) -> None:
    data = array(*shape)
    first, last = (k, k) if isinstance(k, int) else k
    rows, columns = shape[-2:]
    if not -rows < first <= last < columns:
        return
    lengths = {d: len(np.diagonal(data, d, -2, -1).T) for d in range(first, last + 1)}
    longest = max(lengths.values())
    diagonal = array(*shape[:-2], *([last - first + 1] if first != last else []), longest)
    stacked = diagonal if first != last else diagonal[..., None, :]
    want = data.copy()
    for d, length in lengths.items():
        begin = longest - length if align.split("_")[d < 0] == "RIGHT" else 0
        for n in range(length):
            want[..., n + max(-d, 0), n + max(d, 0)] = stacked[..., last - d, begin + n]
    np.testing.assert_array_equal(run(lambda x, y: nn.matrix_set_diag(x, y, k, align), data, diagonal), want)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_strided_set(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    given_dims = data.draw(st.integers(1, len(shape)))
    ends = st.integers(-6, 6)
    begin, end = ([data.draw(ends) for _ in range(given_dims)] for _ in range(2))
    strides = data.draw(st.none() | st.lists(st.sampled_from([-3, -2, -1, 1, 2]), min_size=1, max_size=given_dims))
    steps = (strides or []) + [1] * (len(shape) - len(strides or []))
    index = tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=False)) + tuple(slice(None, None, s) for s in steps[given_dims:])
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    new = -1 - np.arange(np.prod([max(n, 1) for n in values[index].shape]), dtype=np.float32).reshape([max(n, 1) for n in values[index].shape])
    want = values.copy()
    if want[index].size:
        want[index] = new
    arrays = {"a": values, "v": new, "b": np.array(begin, np.int32), "e": np.array(end, np.int32)}
    if strides:
        arrays["s"] = np.array(strides, np.int32)
    tensors = [te.placeholder(value.shape, str(value.dtype), name) for name, value in arrays.items()]
    np.testing.assert_array_equal(evaluate([STRIDED_SET(*tensors)], arrays)[0], want)


D, AT = te.placeholder((4, 5), name="D"), te.placeholder((4, 2), "int32", "I")
F = te.placeholder((4, 2), name="F")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: nn.gather(D, 0, te.placeholder((2, 6), "int32", "I")), "may not be larger in the second"),
        (lambda: nn.gather(D, 1, te.placeholder((4, 2), "bool", "B")), "indices are integers"),
        (lambda: nn.gather_nd(D, te.placeholder((3,), "int32", "I")), "1 to 2"),
        (lambda: nn.advanced_index(D, []), "give 1 to 2"),
        (lambda: nn.advanced_index(D, [AT, te.placeholder((3,), "int32", "J")]), "cannot be broadcast to one shape"),
        (lambda: nn.one_hot(AT, 1, 0, 5, 4), "the dimension is in -3..2"),
        (lambda: nn.one_hot(F, 1, 0, 5), "it holds integers"),
        (lambda: nn.sequence_mask(D, te.placeholder((3,), "int32", "L")), "one length for each element of the other dimension"),
        (lambda: nn.reverse_sequence(D, te.placeholder((3,), "int32", "L")), "one length for each of the 4 along dimension 0"),
        (lambda: nn.unravel_index(AT, F), "it is a tensor of one dimension, of integers"),
        (lambda: nn.sparse_to_dense(AT, (3,), F), r"places are \[n, 1\], and values \[n\] or one"),
        (lambda: nn.matrix_set_diag(D, te.placeholder((3,), name="x")), r"it has to be float32 of shape \(4,\)"),
        (lambda: nn.matrix_set_diag(D, D, 9), r"diagonals are in -3\.\.4"),
        (lambda: nn.strided_set(D, D, AT, AT), "and the others one, of at most that extent"),
    ],
)
def test_what_is_refused(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare()
