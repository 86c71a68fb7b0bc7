from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ansor.errors import ModelError
from ansor.graph import row_parts
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork, plan_memory, storage
from ansor.graph.row_parts import Stretch, in_parts, stretches
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch

Layer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LAYERS: tuple[Layer, ...] = (
    lambda x, y: x.relu() + y,
    lambda x, y: torch.cat([x, y], 1)[:, ::2],
    lambda x, y: x.softmax(1) * y[:, :1],
    lambda x, y: (x.reshape(24, 8) @ torch.eye(8)).reshape(6, 4, 8) - y,
    lambda x, y: x - x.mean((1, 2), keepdim=True),
    lambda x, y: x @ y.transpose(1, 2) @ x,
    lambda x, y: x - y.mean(0),  # mixes rows
    lambda x, y: x.flip(0),  # mixes rows
    lambda x, y: y,
)


class Layers(nn.Module):
    """Random layers, each of two of the arrays before it; the last arrays are the results."""

    def __init__(self, picks: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.picks = picks

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = [x, y]
        for layer, one, other in self.picks:
            made.append(LAYERS[layer](made[one % len(made)], made[other % len(made)]))
        return tuple(made[-2:])


class Towers(nn.Module):
    """Two convolutions and a classifier; a row of what they make takes 4,096, 2,048 and 40 bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.classes = nn.Conv2d(4, 16, 1), nn.Conv2d(16, 8, 1), nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.classes(self.second(self.first(x).relu()).flatten(1))
        return found


def network(extracted: ExtractedGraph) -> CompiledNetwork:
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])


def towers() -> tuple[ExtractedGraph, torch.Tensor]:
    images = torch.randn(4, 4, 8, 8)
    return extract(Towers().eval(), images), images


@given(st.lists(st.tuples(st.integers(0, len(LAYERS) - 1), st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=6), st.integers(1, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_networks_in_parts_compute_the_same(picks: list[tuple[int, int, int]], most: int, data: st.DataObject) -> None:
    inputs = torch.randn(6, 4, 8), torch.randn(6, 4, 8)
    whole = extract(Layers(picks), inputs)
    wanted = network(whole)(*inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_parts, "ALIGNMENT", 1)  # NumPy needs no aligned arrays
        possible = stretches(whole, most)
        if not possible:
            return
        parts = in_parts(whole, data.draw(st.sampled_from(possible)))
    assert len(parts.groups) == len(parts.extracted.placed)
    for one, other in zip(network(parts.extracted)(*inputs), wanted, strict=True):  # type: ignore[call-overload]
        assert torch.equal(one, other)


def test_parts_are_views_and_share_tasks() -> None:
    whole, images = towers()
    assert stretches(whole, 4) == tuple(Stretch(first, end, 1) for first in range(4) for end in range(first + 1, 5))  # none makes the logits
    parts = in_parts(whole, Stretch(0, 4, 1)).extracted
    assert len(parts.placed) == 4 * 4 + 1 and len(parts.tasks) == len(whole.tasks)
    assert sorted(parts.weights) == [1, 4, 4, 4, 4]
    torch.testing.assert_close(network(parts)(images), network(whole)(images))


def test_parts_need_less_memory() -> None:
    whole, _ = towers()
    inputs, first, second = 1024, 4096, 2048  # bytes of a row
    sizes = [plan_memory(one).size for one in (whole, in_parts(whole, Stretch(0, 4, 1)).extracted)]
    assert sizes == [4 * (first + second), 4 * inputs + first + second + 4 * second]


def test_joined_parts_lie_one_after_another() -> None:
    whole, _ = towers()
    graph = in_parts(whole, Stretch(0, 4, 1)).extracted.graph
    joined = next(node for node in graph if node.op == "join")
    places = storage(graph)
    assert [places[name] for name in joined.inputs] == [(joined.name, number * 2048) for number in range(4)]
    shown = [node for node in graph if node.op == "rows"]
    assert [places[node.name] for node in shown] == [("x", number * 1024) for number in range(4)]


def test_groups_of_the_whole_are_known() -> None:
    whole, _ = towers()
    assert in_parts(whole, Stretch(1, 3, 2)).groups == (0, 1, 2, 1, 2, 3, 4)


@pytest.mark.parametrize(("rows", "most", "each"), [(8, 8, 1), (8, 4, 2), (12, 5, 3), (7, 6, 7), (9, 8, 3)])
def test_parts_have_as_few_rows_as_possible(rows: int, most: int, each: int) -> None:
    assert stretches(extract(nn.ReLU(), torch.zeros(rows, 16)), most) == ((Stretch(0, 1, each),) if each < rows else ())


def test_unaligned_arrays_that_a_stretch_does_not_touch_do_not_matter() -> None:
    def model(x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return x.softmax(1).flip(1).softmax(1) + label[:, None]  # 8 bytes of each row

    assert stretches(extract(model, (torch.randn(4, 16), torch.zeros(4))), 4) == (Stretch(0, 1, 1), Stretch(0, 2, 1), Stretch(1, 2, 1))


def test_what_numpy_cannot_hold_is_left_to_pytorch_as_a_whole() -> None:
    inputs = torch.randn(4, 16), torch.randn(4, 8).to(torch.float8_e4m3fn)
    whole = extract(lambda x, y: (x.exp(), y.float()), inputs, lambda line: None)
    assert {(one.first, one.end) for one in stretches(whole, 4)} <= {(0, 1), (1, 2)} and stretches(whole, 4)


class Packing(ReferenceKernel):
    """Packs all constants."""

    calls: list[str]

    @property
    def packed(self) -> frozenset[int]:  # type: ignore[override]
        return frozenset(number for number, tensor in enumerate(self._tensors) if tensor.constant)

    def prepare(self, arrays, memory, like=None):  # type: ignore[no-untyped-def]
        if self.packed:
            Packing.calls.append("packs" if like is None else "shares")
        return super().prepare(arrays, memory)


def test_parts_share_packed_constants() -> None:
    whole, images = towers()
    extracted = in_parts(whole, Stretch(0, 4, 1)).extracted
    Packing.calls = []
    made = CompiledNetwork(extracted, [Packing(task.tensors) for task in extracted.tasks])
    assert Packing.calls == ["packs"] * 3 + ["shares"] * 9
    torch.testing.assert_close(made(images), network(whole)(images))


@pytest.mark.parametrize("stretch", [Stretch(0, 2, 3), Stretch(0, 5, 1), Stretch(1, 1, 1), Stretch(0, 1, 0), Stretch(0, 9, 1)])
def test_stretches_that_are_not_possible_are_refused(stretch: Stretch) -> None:
    with pytest.raises(ModelError, match=r"asked to compute groups \d to \d for \d rows? of the batch at a time, but they need several rows, or arrays that"):
        in_parts(towers()[0], stretch)


def test_stretches_that_mix_rows_are_refused() -> None:
    whole = extract(lambda x: (x + x.sum(0)).relu(), torch.randn(4, 16))
    assert not stretches(whole, 4)
    with pytest.raises(ModelError, match="they need several rows"):
        in_parts(whole, Stretch(0, 2, 1))
