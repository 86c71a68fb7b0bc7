"""Layouts: arrays come back as they were, blocks lie where they are said to, what is beyond the end is 0."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen.source import Grouped
from ansor.errors import ArgumentError
from ansor.vta.configuration import CORE_32, DEFAULT, Configuration, Memory
from ansor.vta.tensors import TensorLayout, pack, unpack

LAYOUTS = (
    TensorLayout(Memory.INP, (1, 40, 5, 6), (0, 1), (1, 16)),
    TensorLayout(Memory.INP, (3, 16, 2, 2), (0, 1), (2, 16)),
    TensorLayout(Memory.WGT, (33, 20, 3, 3), (0, 1), (16, 16)),
    TensorLayout(Memory.WGT, (20, 33), (1, 0), (16, 16)),
    TensorLayout(Memory.INP, (1, 5, 6, 40), (0, 3), (1, 16)),
    TensorLayout(Memory.ACC8, (40, 3, 3), (0,), (16,), repeats=4),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_arrays_come_back(layout: TensorLayout) -> None:
    array = np.random.default_rng(0).integers(-128, 128, layout.shape).astype(np.int8)
    held = pack(array, layout)
    assert len(held) == layout.elements * layout.repeats * np.prod(layout.blocks) and np.array_equal(unpack(held, layout, "int8"), array)


def test_blocks_lie_in_the_order_of_the_dimensions() -> None:
    layout = LAYOUTS[0]
    array = np.random.default_rng(0).integers(-128, 128, layout.shape).astype(np.int8)
    blocks = pack(array, layout).view(np.int8).reshape(1, 3, 5, 6, 1, 16)
    assert np.array_equal(blocks[0, 1, 3, 4, 0], array[0, 16:32, 3, 4]) and not blocks[0, 2, :, :, 0, 8:].any()
    turned = pack(array[0, :33, 0, 0][None].repeat(20, 0), LAYOUTS[3]).view(np.int8).reshape(2, 3, 16, 16)
    assert turned[0, 1, 2, 3] == array[0, 18, 0, 0]


def test_bias_has_elements_of_accumulators() -> None:
    layout = TensorLayout(Memory.ACC, (40,), (0,), (16,))
    assert layout.outer == (3,) and layout.bytes(DEFAULT) == 3 * 64 and TensorLayout(Memory.ACC, (40,), (0,), (32,)).bytes(CORE_32) == 2 * 128
    assert len(pack(np.zeros(40, np.int32), layout)) == layout.bytes(DEFAULT)


def test_bias_is_there_for_each_row() -> None:
    core, layout = Configuration(batch=2), TensorLayout(Memory.ACC, (40,), (0,), (16,), repeats=4)
    bias = np.arange(40, dtype=np.int32)
    blocks = pack(bias, layout).view(np.int32).reshape(3, 4, 16)
    assert layout.bytes(core) == blocks.nbytes and np.array_equal(blocks[1], np.tile(bias[16:32], (4, 1))) and not blocks[2, :, 8:].any()
    assert str(layout) == "ACC[3] x [4, 16]"


def test_what_is_no_layout() -> None:
    with pytest.raises(ArgumentError, match="elements that repeat their block 0 times"):
        TensorLayout(Memory.ACC, (4,), (0,), (16,), repeats=0)
    with pytest.raises(ArgumentError, match="name each once"):
        TensorLayout(Memory.INP, (4, 4), (2,), (16,))
    with pytest.raises(ArgumentError, match=r"of shape \(2, 2\)"):
        pack(np.zeros((2, 2), np.int8), LAYOUTS[0])


def test_arrays_of_another_shape() -> None:
    array = np.random.default_rng(1).integers(-128, 128, (1, 64, 3, 5)).astype(np.int8)
    groups = TensorLayout(Memory.INP, (1, 2, 32, 3, 5), (2,), (16,), given=(1, 64, 3, 5))
    held = pack(array, groups)
    assert np.array_equal(held, pack(array, TensorLayout(Memory.INP, (1, 64, 3, 5), (1,), (16,)))) and np.array_equal(unpack(held, groups, "int8"), array)
    with pytest.raises(ArgumentError, match="shape \\(1, 2, 32, 3, 5\\) as one of \\(1, 64, 3, 5\\)"):
        pack(array.reshape(groups.shape), groups)
    weights = TensorLayout(Memory.WGT, (1, 16, 16), (1, 2), (16, 16), given=(16, 4), grouped=Grouped(4, 0, 1, 4))
    blocks = pack(np.ones((16, 4), np.int8), weights).view(np.int8).reshape(16, 16)
    assert np.array_equal(blocks, np.kron(np.eye(4, dtype=np.int8), np.ones((4, 4), np.int8)))
    with pytest.raises(ArgumentError, match="read back a grouped constant"):
        unpack(pack(np.ones((16, 4), np.int8), weights), weights, "int8")


def test_layouts_that_cannot_be_meant() -> None:
    with pytest.raises(ArgumentError, match="^asked for elements of 'INP'; pass a Memory"):
        TensorLayout("INP", (2, 16), (0, 1), (1, 16))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^asked to lay out an array of shape \(2, 16\) in blocks of \(1, 0\): each has to be at least 1$"):
        TensorLayout(Memory.INP, (2, 16), (0, 1), (1, 0))
