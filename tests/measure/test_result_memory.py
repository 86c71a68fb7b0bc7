"""Memory of results is used again when, and only when, nobody can see the result any more."""

from __future__ import annotations

import gc

import pytest

from ansor.codegen.source import ALIGNMENT
from ansor.measure.result_memory import ResultMemory

torch = pytest.importorskip("torch")


def test_memory_comes_back_with_its_tensor() -> None:
    memory = ResultMemory((5, 7), "float32")
    first = memory.tensor()
    place = first.data_ptr()
    assert first.shape == (5, 7) and first.dtype is torch.float32 and place % ALIGNMENT == 0
    del first
    assert memory.tensor().data_ptr() == place


def test_two_results_never_share() -> None:
    memory = ResultMemory((8,), "int32")
    held = [memory.tensor() for _ in range(4)]
    assert len({one.data_ptr() for one in held}) == 4


@pytest.mark.parametrize("share", [lambda t: t[2:], lambda t: t.view(2, 4).t(), lambda t: t.detach(), lambda t: t.numpy()[1:], lambda t: memoryview(t.numpy())])
def test_whatever_shares_the_memory_keeps_it(share) -> None:  # type: ignore[no-untyped-def]
    memory = ResultMemory((8,), "float32")
    tensor = memory.tensor()
    place, shared = tensor.data_ptr(), share(tensor)
    del tensor
    gc.collect()
    other = memory.tensor()
    assert other.data_ptr() != place
    del shared
    gc.collect()
    assert memory.tensor().data_ptr() == place


def test_one_block_is_kept() -> None:
    memory = ResultMemory((8,), "float32")
    held = [memory.tensor() for _ in range(3)]
    del held
    assert len(memory._free) == 1 and not memory._lent
    again = [memory.tensor() for _ in range(3)]
    assert len({one.data_ptr() for one in again}) == 3 and len(memory._lent) == 3


def test_a_tensor_outlives_the_memory_it_came_from() -> None:
    tensor = ResultMemory((1000,), "float32").tensor()
    gc.collect()
    tensor.fill_(3.0)
    assert float(tensor.sum()) == 3000.0
