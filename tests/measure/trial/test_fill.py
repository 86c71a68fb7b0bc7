"""Devices fill arguments with the bits that NumPy gives: every dtype, packed and transformed constants included."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen.source import DTYPES, Argument, Combined, Joined, Pack, Transform
from ansor.measure.trial.fill import Fill, fills_of, generated, key_of
from tests.declarations import Draw, seeded_draw
from tests.trial_programs import AARCH64, ARM, HERE, RISCV64, Machine, built, kernel, outputs_of

RANGES = {
    "f": ((-1.0, 1.0), (0.5, 1.5), (0.1, 0.1), (-1e-3, 7e4), (1.0, 1.0 + 2e-7)),
    "i": ((-8.0, 8.0), (-100.0, 27.0), (3.0, 4.0)),
    "u": ((0.0, 16.0), (1.0, 200.0)),
    "b": ((0.0, 2.0),),
}


def _argument(draw: Draw, name: str) -> Argument:
    dtype = draw.pick((*DTYPES, "float16", "float32", "float64"))
    shape = tuple(draw.integer(1, 5) for _ in range(draw.integer(1, 4)))
    transform = None
    if np.dtype(dtype).kind == "f" and len(shape) > 1 and draw.chance(60):
        order = sorted(range(len(shape)), key=lambda _: draw.integer(0, 99))
        axes, rest = tuple(order[: (cut := draw.integer(1, len(shape) - 1))]), tuple(order[cut:])
        inner = prod(shape[axis] for axis in axes)
        rows = tuple(tuple(draw.integer(-64, 64) / 24 for _ in range(inner)) for _ in range(draw.integer(1, 4)))
        transform = Transform(rows, axes, rest)
    return Argument(name, shape, dtype, draw.pick(("input", "constant")), _pack(draw, transform.shape_of(shape) if transform else shape), transform)


def _pack(draw: Draw, shape: tuple[int, ...]) -> Pack | None:
    """Tiles of a few dimensions, past the end and from before the beginning."""
    if draw.chance(50):
        return None
    tiles = [draw.integer(1, extent) for extent in shape]
    extents = (*(-(-extent // tile) for extent, tile in zip(shape, tiles, strict=True)), *tiles)
    loops = len(shape)
    strides = tuple(tuple(tiles[d] if loop == d else 1 if loop == loops + d else 0 for loop in range(2 * loops)) for d in range(loops))
    return Pack(extents, strides, tuple(draw.integer(-1, 1) for _ in shape) if draw.chance(50) else ())


def _physical(argument: Argument, logical: NDArray[np.generic]) -> NDArray[np.generic]:
    """The buffer, with a transform's sums in the order of a plain loop."""
    array = logical
    if isinstance(argument.transform, Joined | Combined):
        array = argument.transform.apply(array)
    elif isinstance(argument.transform, Transform):
        shape = argument.transform.shape_of(array.shape)
        columns = np.transpose(array, (*argument.transform.axes, *argument.transform.rest)).reshape(-1, prod(shape[1:])).astype(np.float64)
        total = np.zeros((shape[0], columns.shape[1]))
        for k, column in enumerate(columns):
            total = total + np.asarray(argument.transform.matrix)[:, k, None] * column
        with np.errstate(over="ignore"):
            array = total.astype(array.dtype).reshape(shape)
    return array.reshape(-1) if argument.pack is None else argument.pack.apply(array)


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
@pytest.mark.parametrize("machine", (HERE, AARCH64, ARM, RISCV64), ids=lambda machine: machine.triple)
def test_devices_fill_with_the_bits_of_numpy(machine: Machine) -> None:
    draw = seeded_draw(7)
    inputs = [_argument(draw, f"in {number}") for number in range(48)]
    assert {one.dtype for one in inputs} == set(DTYPES)
    assert sum(one.transform is not None for one in inputs) > 5 and sum(one.pack is not None for one in inputs) > 9
    ranges = {one.name: draw.pick(RANGES[np.dtype(one.dtype).kind]) for one in inputs}
    outputs = [Argument(f"out {number}", (one.physical_size,), one.dtype, "output") for number, one in enumerate(inputs)]
    sizes = [one.physical_size * np.dtype(one.dtype).itemsize for one in inputs]
    source = kernel("\n".join(f"memcpy(args[{48 + number}], args[{number}], {size});" for number, size in enumerate(sizes)), [*inputs, *outputs])
    fills = fills_of(inputs, 5, ranges)
    found = outputs_of(source, built(source, machine), dict(fills), machine)
    for one, out in zip(inputs, outputs, strict=True):
        logical = fills[one.name].array(one.shape)
        expected = _physical(one, logical)
        assert found[out.name].tobytes() == expected.tobytes(), (one, ranges[one.name])
        usual = one.physical(logical)
        assert np.allclose(usual.astype(np.float64), expected.astype(np.float64), rtol=1e-2 if one.dtype == "float16" else 1e-5, atol=1e-3)


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
@pytest.mark.parametrize("machine", (HERE, RISCV64), ids=lambda machine: machine.triple)
def test_devices_join_neighbours_as_numpy_does(machine: Machine) -> None:
    joins = (Joined(0, 2, 16, 1, 1, "int32"), Joined(2, 2, 16, 1, 2, "int64"), Joined(1, 2, 32, 2, 1, "int64"), Joined(0, 4, 16, 2, 1, "int64"))
    pack = Pack((2, 2, 3), ((0, 1, 0), (1, 0, 0), (0, 0, 1)))
    factors = ((-1, 1 << 21, 0), (0, 1 << 10, -1))
    groups = (Combined(0, factors, 4, "int32"), Combined(1, factors, 2, "int32"), Combined(2, factors, 3, "int32"))
    rows = ((1.0, 0.0, -5.0, 4.0), (0.0, 300.0, 4.0, -1.0))
    wider = (Transform(rows, (0,), (2, 1), "int16"), Transform(rows, (1,), (0, 2), "int32"))
    ways: list[tuple[Joined | Combined | Transform, Pack | None]] = [(one, order) for one in (*joins, *groups, *wider) for order in (None, pack)]
    inputs = [Argument(f"in {k}", (4, 4, 6), "int8", "constant", order, join) for k, (join, order) in enumerate(ways)]
    count, sizes = len(inputs), [one.physical_size * np.dtype(one.physical_dtype).itemsize for one in inputs]
    outputs = [Argument(f"out {k}", (one.physical_size,), one.physical_dtype, "output") for k, one in enumerate(inputs)]
    source = kernel("\n".join(f"memcpy(args[{count + k}], args[{k}], {size});" for k, size in enumerate(sizes)), [*inputs, *outputs])
    fills = fills_of(inputs, 5, {one.name: (-128.0, 128.0) for one in inputs})
    found = outputs_of(source, built(source, machine), dict(fills), machine)
    for one, out in zip(inputs, outputs, strict=True):
        assert found[out.name].tobytes() == one.physical(fills[one.name].array(one.shape)).tobytes(), one


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_stay_in_their_range(dtype: str) -> None:
    for low, high in RANGES[np.dtype(dtype).kind]:
        array = Fill(dtype, key_of(1, "x"), low, high).array((4096,))
        assert array.dtype == dtype and array.min() >= np.dtype(dtype).type(low)
        assert low == high or (array.astype(np.float64) < high).all()


def test_values_are_uniform_and_no_two_arguments_have_the_same() -> None:
    fills = fills_of([Argument(name, (1,), "float64", "input") for name in ("A", "B")], 0, {})
    a, b = (fills[name].array((100_000,)).astype(np.float64) for name in ("A", "B"))
    for array in (a, b):
        assert abs(array.mean()) < 0.02 and abs(array.var() - 1 / 3) < 0.01
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02 and abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.02
    assert key_of(0, "A") != key_of(1, "A")


def test_elements_come_without_those_before() -> None:
    assert np.array_equal(generated(9, 100)[:10], generated(9, 10))


def test_golden_bits() -> None:
    assert [f"{one:016x}" for one in generated(0, 3)] == ["e220a8397b1dcdaf", "6e789e6aa1b965f4", "06c45d188009454f"]  # SplitMix64 from 0
