import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor.codegen.source import Argument, Combined, Grouped, Joined, Pack, Transform, signature


@st.composite
def packs(draw: st.DrawFn) -> tuple[Pack, tuple[int, ...]]:
    dimensions = draw(st.integers(0, 3))
    loops = draw(st.integers(0, 4))
    extents = tuple(draw(st.integers(1, 4)) for _ in range(loops))
    strides = tuple(tuple(draw(st.integers(-2, 5)) for _ in range(loops)) for _ in range(dimensions))
    starts = draw(st.sampled_from(((), tuple(draw(st.integers(-2, 8)) for _ in range(dimensions)))))
    return Pack(extents, strides, starts), tuple(draw(st.integers(1, 7)) for _ in range(dimensions))


def naive(pack: Pack, array: NDArray[np.float32]) -> list[float]:
    result = []
    for position in product(*(range(extent) for extent in pack.extents)):
        starts = pack.starts or (0,) * array.ndim
        index = tuple(start + sum(p * s for p, s in zip(position, row, strict=True)) for start, row in zip(starts, pack.strides, strict=True))
        inside = all(0 <= i < extent for i, extent in zip(index, array.shape, strict=True))
        result.append(float(array[index]) if inside else 0.0)
    return result


@given(packs(), st.booleans())
def test_pack_equals_naive_loops(case: tuple[Pack, tuple[int, ...]], transposed: bool) -> None:
    pack, shape = case
    array = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape, order="F" if transposed else "C")
    packed = pack.apply(array)
    assert packed.ndim == 1 and packed.flags.c_contiguous and packed.dtype == np.float32
    assert packed.tolist() == naive(pack, array)


def test_panels_of_a_matrix() -> None:
    pack = Pack((7, 5, 16), ((0, 1, 0), (16, 0, 1)))
    matrix = np.arange(500.0).reshape(5, 100)
    padded = np.zeros((5, 112))
    padded[:, :100] = matrix
    assert np.array_equal(pack.apply(matrix), padded.reshape(5, 7, 16).transpose(1, 0, 2).reshape(-1))
    assert Argument("B", (5, 100), "float64", "constant", pack).physical_size == 560


def test_argument_reads_back_from_json() -> None:
    for pack in (None, Pack((2, 3), ((1, 0), (0, 1))), Pack((2, 3), ((1, 0), (0, 1)), (0, 0)), Pack((2, 3), ((-1, 0), (0, 1)), (1, 0))):
        argument = Argument("A", (2, 3), "float32", "constant", pack)
        assert Argument.from_data(argument.to_data()) == argument


def test_a_transform_is_a_matrix_times_some_dimensions() -> None:
    rng = np.random.default_rng(0)
    array, matrix = rng.random((3, 5, 2, 4)).astype(np.float32), rng.random((7, 6))
    transform = Transform(tuple(map(tuple, matrix.tolist())), (0, 2), (3, 1))
    argument = Argument("A", array.shape, "float32", "constant", None, transform)
    found = argument.physical(array)
    assert found.dtype == np.float32 and argument.physical_size == found.size and transform.shape_of(array.shape) == (7, 4, 5)
    expected = np.einsum("nxy,xiyo->noi", matrix.reshape(7, 3, 2), array.astype(np.float64))
    assert np.abs(np.subtract(found.reshape(7, 4, 5), expected, dtype=np.float64)).max() < 1e-6
    assert Argument.from_data(json.loads(json.dumps(argument.to_data()))) == argument
    packed = Argument("A", array.shape, "float32", "constant", Pack((5, 28), ((0, 4), (0, 1), (1, 0))), transform)
    assert packed.physical_size == 140 and not packed.as_given
    with pytest.raises(ValueError, match="does not fit shape"):
        transform.apply(array[:, :, :1])


def test_a_transform_of_whole_numbers_may_give_wider_ones() -> None:
    array = np.array([[-128, 127], [127, -128]], np.int8)
    transform = Transform(((1.0, 1.0), (-1.0, 7.0)), (0,), (1,), "int16")
    argument = Argument("A", array.shape, "int8", "constant", None, transform)
    assert argument.physical(array).tolist() == [-1, -1, 1017, -1023] and argument.physical_dtype == "int16"
    assert Argument.from_data(json.loads(json.dumps(argument.to_data()))) == argument


JOINED = ((2, 16, 1, "int32"), (2, 16, 2, "int64"), (2, 32, 1, "int64"), (4, 16, 1, "int64"), (2, 8, 2, "int32"))


@given(st.sampled_from(JOINED), st.booleans(), st.integers(0, 99))
def test_joined_neighbours_are_sums_of_shifted_numbers_that_wrap(numbers: tuple[int, int, int, str], turned: bool, seed: int) -> None:
    lanes, bits, words, dtype = numbers
    across, along = (2, 0) if turned else (0, 2)
    array = np.random.default_rng(seed).choice([-128, -1, 0, 127], (4, 3, 4)).astype(np.int8)
    argument = Argument("W", array.shape, "int8", "constant", None, Joined(across, lanes, bits, along, words, dtype))
    found = argument.physical(array)
    assert found.dtype == argument.physical_dtype == dtype and found.size == argument.physical_size and not argument.as_given
    moved = np.moveaxis(array, (across, along), (0, 2)).astype(object)
    width, expected = lanes * bits, []
    for i, j, k in product(range(4 // lanes), range(3), range(4 // words)):
        word = [sum(int(moved[i * lanes + lane, j, k * words + w]) << bits * lane for lane in range(lanes)) % (1 << width) for w in range(words)]
        expected.append(sum(one << width * w for w, one in enumerate(word)))
    order = np.moveaxis(found.reshape(argument.transform.shape_of(array.shape)) if argument.transform else found, (across, along), (0, 2))
    assert [int(one) % (1 << width * words) for one in order.reshape(-1)] == expected
    assert Argument.from_data(json.loads(json.dumps(argument.to_data()))) == argument


def test_neighbours_that_are_not_there_are_not_joined() -> None:
    for shape in ((3, 4), (4, 3), (4,)):
        with pytest.raises(ValueError, match="do not fit shape"):
            Joined(0, 2, 16, 1, 2, "int64").apply(np.zeros(shape, np.int8))


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 7), st.integers(1, 3), st.integers(0, 2), st.integers(0, 99))
def test_combined_groups_are_sums_times_factors_that_wrap(numbers: int, lanes: int, chunk: int, chunks: int, across: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(chunk * chunks if d == across else extent for d, extent in enumerate((2, 3, 4)))
    array = rng.choice([-128, -1, 0, 127], shape).astype(np.int8)
    factors = tuple(tuple(row) for row in rng.integers(-(1 << 31), 1 << 31, (numbers, lanes)).tolist())
    argument = Argument("W", shape, "int8", "constant", None, Combined(across, factors, chunk, "int32"))
    found = argument.physical(array)
    assert found.dtype == argument.physical_dtype == "int32" and found.size == argument.physical_size and not argument.as_given
    moved, expected = np.moveaxis(array, across, 0).astype(object), []
    for start in range(0, chunk * chunks, chunk):
        for group in range(start, start + chunk, lanes):
            taken = moved[group : min(group + lanes, start + chunk)]
            expected += [sum(int(factor) * row for factor, row in zip(factors[k], taken, strict=False)) for k in range(numbers)]
    wrapped = (np.array(expected) + (1 << 31)) % (1 << 32) - (1 << 31)
    assert argument.transform is not None
    np.testing.assert_array_equal(np.moveaxis(found.reshape(argument.transform.shape_of(shape)), across, 0), wrapped.astype(np.int64))
    assert Argument.from_data(json.loads(json.dumps(argument.to_data()))) == argument


def test_chunks_that_are_not_there_are_not_combined() -> None:
    for shape in ((7, 4), ()):
        with pytest.raises(ValueError, match="do not fit shape"):
            Combined(0, ((1, 2),), 4, "int32").apply(np.zeros(shape, np.int8))


def test_mistakes_are_sentences() -> None:
    with pytest.raises(ValueError, match="one for each loop"):
        Pack((2, 3), ((1,),))
    with pytest.raises(ValueError, match="a start for each of 1"):
        Pack((2, 3), ((1, 0),), (0, 0))
    with pytest.raises(ValueError, match="found shape"):
        Pack((2,), ((1,),)).apply(np.zeros((2, 2)))


@pytest.mark.parametrize(("together", "rows", "inner"), [(1, 0, 1), (2, 0, 1), (6, 0, 1), (3, 3, 2), (2, 1, None), (1, 2, None)])
def test_constants_in_groups(together: int, rows: int, inner: int | None) -> None:
    groups, size = 6, 12
    shape = [5, 4, 3, 2]
    shape[rows] = size
    array = np.random.default_rng(together).integers(-128, 128, shape).astype(np.int8)
    argument = Argument("W", array.shape, "int8", "constant", None, Grouped(groups, rows, inner, together))
    assert argument.transform is not None and Argument.from_data(json.loads(json.dumps(argument.to_data()))) == argument
    found = argument.physical(array).reshape(argument.transform.shape_of(array.shape))
    own = np.moveaxis(array, (rows, inner), (0, 1)) if inner is not None else np.moveaxis(array, rows, 0)[:, None]
    inputs, count = own.shape[1], groups // together
    if inner is None and together == 1:
        np.testing.assert_array_equal(found, own[:, 0].reshape(groups, size // groups, *own.shape[2:]))
        return
    for group, row, column in product(range(count), range(size // count), range(together * inputs)):
        whole = group * (size // count) + row
        mine = whole // (size // groups) == group * together + column // inputs
        assert np.array_equal(found[group, row, column], own[whole, column % inputs] if mine else np.zeros_like(own[0, 0]))


@pytest.mark.parametrize("shape", [(4,), (9, 2), ()])
def test_groups_that_are_not_there(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="6 groups of dimension 0, 2 at a time, do not fit shape"):
        Grouped(6, 0, 1, 2).apply(np.zeros(shape, np.int8))


def test_the_signature_has_inputs_first() -> None:
    arguments = [Argument("A", (2, 3), "float32", "input"), Argument("C", (), "int8", "output"), Argument("B", (3,), "float32", "constant")]
    assert signature(arguments) == "A float32[2, 3], B float32[3] -> C int8[]"
