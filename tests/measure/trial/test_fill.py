"""Devices fill arguments with the bits that NumPy gives: every dtype, packed and transformed constants included."""

from __future__ import annotations

import subprocess
from math import prod
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen.source import DTYPES, Argument, Combined, Joined, Pack, Transform
from ansor.measure.trial.fill import Fill, fills_of, generated, key_of
from ansor.measure.trial.recipe import File, input_lines, recipe_text
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


@pytest.mark.compiler
@pytest.mark.parametrize("low", (-1e-310, -5e-324, -1.0, -3.0, 0.0, 1.0))
def test_short_ways_of_ranges_change_no_bit(low: float) -> None:
    highs = (2.0**25, 2.0**122, 5e-324, 1.0, 5.0, 2.0**-126, 1e-45)
    inputs = [Argument(f"in {k}", (64,), "float32", "input") for k in range(len(highs))]
    outputs = [Argument(f"out {k}", (64,), "float32", "output") for k in range(len(highs))]
    source = kernel("\n".join(f"memcpy(args[{len(highs) + k}], args[{k}], 256);" for k in range(len(highs))), [*inputs, *outputs])
    fills = fills_of(inputs, 3, {one.name: (low, high) for one, high in zip(inputs, highs, strict=True) if high > low})
    found = outputs_of(source, built(source), dict(fills))
    for one, out in zip(inputs, outputs, strict=True):
        assert found[out.name].tobytes() == fills[one.name].array((64,)).tobytes(), fills[one.name]


def _transformed(shape: tuple[int, ...], dtype: str = "float32") -> Argument:
    """Weights as Winograd's algorithm has them: many factors are 0."""
    rows = tuple(tuple(float(k % 9 == r % 9) for k in range(9)) for r in range(16))
    return Argument("W", shape, dtype, "constant", None, Transform(rows, (0, 1), (2, 3)))


@pytest.mark.compiler
def test_what_is_not_finite_passes_through_a_transform(tmp_path: Path) -> None:
    weights, values = _transformed((3, 3, 2, 2)), np.arange(36, dtype=np.float32).reshape(3, 3, 2, 2)
    values[1, 1, 0, 0], values[2, 0, 1, 1] = np.inf, np.nan
    np.save(tmp_path / "W.npy", values)
    out = Argument("O", (weights.physical_size,), "float32", "output")
    source = kernel(f"memcpy(args[1], args[0], {weights.physical_size * 4});", [weights, out])
    found = outputs_of(source, built(source), {"W": File("float32", str(tmp_path / "W.npy"), values.nbytes)})["O"]
    with np.errstate(invalid="ignore"):
        expected = weights.physical(values).reshape(-1)
    assert np.isnan(expected).sum() == 30 and np.array_equal(found, expected, equal_nan=True)


@pytest.mark.compiler
def test_integers_wrap_in_their_dtype_before_a_transform() -> None:
    weights = Argument("W", (4, 6), "int8", "constant", None, Transform(((1.0, 0.0, 2.0, 0.0), (0.0, 3.0, 0.0, -1.0)), (0,), (1,), "int32"))
    out = Argument("O", (weights.physical_size,), "int32", "output")
    source = kernel(f"memcpy(args[1], args[0], {weights.physical_size * 4});", [weights, out])
    fills = fills_of([weights], 5, {"W": (0.0, 300.0)})
    assert np.array_equal(outputs_of(source, built(source), dict(fills))["O"], weights.physical(fills["W"].array((4, 6))).reshape(-1))


@pytest.mark.compiler
def test_what_is_made_ahead_takes_no_memory_from_the_program() -> None:
    weights = _transformed((3, 3, 256, 512))  # 8.4 million bytes, and 4.7 million before the transform
    out = Argument("O", (16,), "float32", "output")
    source = kernel("memcpy(args[1], args[0], 64);", [weights, out], workspace_bytes=64)
    lines = [*input_lines(source.arguments, dict(fills_of([weights], 5, {})))]
    program = built(source)
    command = f"ulimit -v {(3 * 32 << 10) + (12 << 10)}; exec {program} trial -"  # kilobytes: three buffers with what is around them, and the program
    answer = subprocess.run(["sh", "-c", command], input=recipe_text(lines), capture_output=True, text=True, timeout=60, check=False)
    assert '"costs"' in answer.stdout, answer


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
