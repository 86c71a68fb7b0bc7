"""Blocks of tiles: the same numbers for a row and for many, and those of the code that is written."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.loops import stores
from ansor.schedule.blocks import Blocks, blocks_of
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeInline, Pack, Reorder, Split, Tensorize
from ansor.search.derive import derive_sketches
from ansor.targets.base import parse_target

AMX = parse_target("cpu -mcpu=sapphirerapids -threads=1")


def convolution(taps: int, strides: int = 1) -> Dag:
    x, w = te.placeholder((2, 15 + taps, 15 + taps, 64), "uint8", name="a"), te.placeholder((taps, taps, 64, 32), "int8", name="b", constant=True)
    return Dag([x, w, te.nn.conv2d(x, w, strides=strides, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32", name="c")])


def tiled_image(dag: Dag, height: int, width: int) -> Sketch:
    n, h, v, o, *windows, c = (axis.name for axis in Sketch(dag).state["c"].axes)
    split = (Pack("c", "b"), Split("c", h, (height,), 2), Split("c", v, (width,), 2), Split("c", c, (64,), 2), Split("c", f"{c}_1", (4,), 2))
    order = (n, f"{h}_0", f"{v}_0", *windows, f"{c}_0", f"{h}_1", f"{v}_1", f"{c}_1_0", o, f"{c}_1_1")
    return Sketch(dag).then(*split, Reorder("c", order), Tensorize("c", o, f"{c}_1_1", "amx_u8s8"))


def numbers(found: Blocks | None) -> tuple[object, object, object]:
    assert found is not None
    return found.run, found.down, found.along


@pytest.mark.parametrize(
    ("taps", "strides", "height", "width", "run", "down"),
    [(3, 1, 4, 4, 4, 4), (3, 1, 2, 8, 8, 2), (3, 1, 2, 16, 16, 2), (1, 1, 2, 16, 32, 2), (1, 1, 4, 4, 4, 4), (1, 1, 1, 16, 16, 1), (1, 2, 2, 8, 8, 2)],
)
def test_rows_that_are_evenly_spaced_are_a_run(taps: int, strides: int, height: int, width: int, run: int, down: int) -> None:
    """Two rows of an image are, if it has no border and tiles are as wide as it; with strides, every second row is left out."""
    sketch = tiled_image(convolution(taps, strides), height, width)
    ((path, store),) = stores(sketch.lower_row(()).body)
    assert numbers(blocks_of(path, store)) == (run, down, 2)
    text = AMX.emit(sketch.lower_row(()), "f").text
    loads = [line for line in text.splitlines() if "_load(4, &a" in line or "_load(5, &a" in line]
    assert len(loads) == down


def test_operands_that_are_computed_on_the_way_are_not_in_blocks() -> None:
    a, b = te.placeholder((64, 64), "uint8", name="a"), te.placeholder((64, 64), "int8", name="b", constant=True)
    shifted = te.compute((64, 64), lambda i, k: te.min(a[i, k], te.const(9, "uint8")), name="shifted")
    dag = Dag([a, b, te.nn.matmul(shifted, b, out_dtype="int32", name="c")])
    steps = (ComputeInline("shifted"), Split("c", "k", (4,), 2), Reorder("c", ("i", "k_0", "j", "k_1")), Tensorize("c", "j", "k_1", "amx_u8s8"))
    ((path, store),) = stores(Sketch(dag).then(*steps).lower_row(()).body)
    assert blocks_of(path, store) is None


@pytest.mark.parametrize("dag", [convolution(1), convolution(3), convolution(3, 2)], ids=["1x1", "3x3", "strided"])
def test_a_population_and_its_rows_agree(dag: Dag) -> None:
    for sketch in derive_sketches(dag, AMX.rules, AMX):
        rows = np.stack([np.random.default_rng(0).integers(0, size, 20) for size in sketch.sizes], axis=1)
        for path, store in stores(sketch.lower_rows(rows).body):
            if not path or path[-1].intrinsic is None:
                continue
            many = [np.broadcast_to(np.asarray(one), len(rows)).tolist() for one in numbers(blocks_of(path, store))]
            assert list(zip(*many, strict=True)) == [alone(sketch, row) for row in rows.tolist()]


def alone(sketch: Sketch, row: list[int]) -> tuple[object, object, object]:
    ((path, store),) = [(path, store) for path, store in stores(sketch.lower_row(row).body) if path and path[-1].intrinsic]
    return numbers(blocks_of(path, store))
