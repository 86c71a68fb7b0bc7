from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.errors import ModelError
from ansor.graph import from_torch as module
from ansor.graph.from_torch import from_torch
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch


def test_what_is_not_understood_runs_in_pytorch_and_is_reported(agrees: Callable[..., ExtractedGraph]) -> None:
    lines: list[str] = []

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.logcumsumexp(torch.relu(x), 1)) + torch.logcumsumexp(x, 0)

    extracted = agrees(model, torch.randn(3, 4), report=lines.append)
    assert lines == ["aten.logcumsumexp.default runs in PyTorch (2 calls): there is no translation into kernels"]
    assert dict(extracted.torch_calls) == {"aten.logcumsumexp.default": "there is no translation into kernels"}


def test_a_call_of_several_results_is_made_once(agrees: Callable[..., ExtractedGraph]) -> None:
    extracted = agrees(lambda x: torch.topk(x, 2), torch.randn(3, 5))
    assert sum(placed.group.is_torch for placed in extracted.placed) == 1


def test_recurrent_networks_run_in_pytorch(agrees: Callable[..., ExtractedGraph]) -> None:
    extracted = agrees(nn.LSTM(3, 4, batch_first=True), torch.randn(2, 5, 3))
    advice = "write the recurrence as a loop over nn.LSTMCell, which compiles to kernels"
    assert dict(extracted.torch_calls) == {"aten.lstm.input": f"there is no translation into kernels; {advice}"}


class Recurrent(nn.Module):
    def __init__(self, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state: torch.Tensor = torch.zeros(x.shape[1], self.cell.hidden_size)
        memory, states = state, []
        for part in x:
            if isinstance(self.cell, nn.LSTMCell):
                state, memory = self.cell(part, (state, memory))
            else:
                state = self.cell(part, state)
            states.append(state)
        return torch.stack(states)


@pytest.mark.parametrize("cell", [nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)])
def test_loops_over_cells_are_kernels(cell: nn.RNNCellBase, agrees: Callable[..., ExtractedGraph]) -> None:
    assert not agrees(Recurrent(cell).eval(), torch.randn(5, 2, 3)).torch_calls


def test_dtypes_that_kernels_do_not_have_stay_in_pytorch(agrees: Callable[..., ExtractedGraph]) -> None:
    extracted = agrees(lambda x: (x.half() * 2).float() + x, torch.randn(3))
    assert set(extracted.torch_calls.values()) == {"networks have no kernels of dtype float16; use float32"}


def test_declarations_that_cannot_be_made_stay_in_pytorch(agrees: Callable[..., ExtractedGraph]) -> None:
    agrees(lambda x: torch.where(x > 0, x, -x) + (x > 0) * (x < 1), torch.randn(3, 4))


def test_random_calls_are_not_frozen_into_constants() -> None:
    graph = from_torch(lambda x: x + torch.rand(3), torch.zeros(3), report=lambda line: None).graph
    assert [node.op for node in graph] == ["torch", "add"]


def test_calls_of_constants_are_made_once() -> None:
    class Model(nn.Module):
        steps: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("steps", torch.arange(4), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (self.weight.exp() + self.steps + torch.arange(4))

    graph = from_torch(Model(), torch.zeros(2, 4)).graph
    assert [node.op for node in graph] == ["mul"]
    assert len(graph.constants) == 1


def test_later_changes_of_the_module_change_nothing() -> None:
    model = nn.Linear(2, 2, bias=False)
    graph = from_torch(model, torch.zeros(1, 2)).graph
    before = next(iter(graph.constants.values())).copy()
    nn.init.zeros_(model.weight)
    assert (next(iter(graph.constants.values())) == before).all()


def test_a_module_in_training_mode_is_read_as_in_evaluation_mode_and_left_alone() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
    model[2].eval()
    lines: list[str] = []
    graph = from_torch(model, torch.zeros(3, 2), lines.append).graph
    assert [node.op for node in graph] == ["dense", "batch_norm"]
    assert lines == ["Dropout of the model is in training mode, but the network computes as in evaluation mode (model.eval())"]
    assert model.training and model[1].training and not model[2].training


def test_exported_programs_are_read_too() -> None:
    program = torch.export.export(nn.Linear(2, 3).eval(), (torch.zeros(1, 2),), strict=False)
    assert [node.op for node in from_torch(program).graph] == ["dense"]


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"asked to read an int as a PyTorch model; give a torch\.nn\.Module"):
        from_torch(3)
    with pytest.raises(ModelError, match=r"torch\.export cannot export"):
        from_torch(lambda x: x if x.sum() > 0 else -x, torch.zeros(2))
    for wrong in (None, 3, "x"):
        with pytest.raises(ModelError, match=f"example_inputs is a {type(wrong).__name__}; give a tensor, a tuple"):
            from_torch(nn.ReLU(), wrong)  # type: ignore[arg-type]


def test_models_that_change_their_state_are_refused() -> None:
    class Counter(nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count

    with pytest.raises(ModelError, match=r"changes its own state.*count"):
        from_torch(Counter(), torch.zeros(2))


READS_MEMORY: list[tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = [
    (lambda x: x.as_strided((4, 3), (1, 4)) * 2, torch.randn(4, 3).t()),
    (lambda x: (x.t() * 2).as_strided((3, 4), (4, 1)), torch.randn(3, 4)),
    (lambda x: x.as_strided((2, 4), (4, 1)) * 2, torch.randn(3, 4)[1]),
]


@pytest.mark.parametrize(("model", "values"), READS_MEMORY)
def test_tensors_that_are_read_as_they_lie_in_memory(model: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor) -> None:
    with pytest.raises(ModelError, match=r"reads a tensor by its memory layout \(aten\.as_strided\.default\).*call \.contiguous\(\) first"):
        from_torch(model, values)


def test_tensors_that_lie_in_order_may_be_read_as_they_do(agrees: Callable[..., ExtractedGraph]) -> None:
    agrees(lambda x: (x * 2).as_strided((3, 3), (1, 4)) + x.t().contiguous().as_strided((3, 3), (3, 1)), torch.randn(3, 4))


class Normalised(nn.Module):
    """With calls that PyTorch rewrites, none of which writes to anything in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dropped: torch.Tensor = self.drop(self.norm(x).reshape(-1).to(torch.float32))
        return dropped.contiguous().flatten().to("cpu")


@pytest.mark.parametrize("model", [Normalised().eval(), lambda x: torch.logcumsumexp(x, 1) + 1], ids=["translated", "in PyTorch"])
def test_calls_that_only_read_are_read_as_they_were_exported(
    model: Callable[..., torch.Tensor], agrees: Callable[..., ExtractedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_as_aten", rewritten)
    agrees(model, torch.randn(3, 4), report=lambda line: None)


def test_both_ways_of_reading_find_the_same_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    first = extract(Normalised().eval(), torch.randn(3, 4))
    monkeypatch.setattr(module, "_as_exported", lambda *words: None)
    again = extract(Normalised().eval(), torch.randn(3, 4))
    assert [task.key for task in first.tasks] == [task.key for task in again.tasks]


@pytest.mark.parametrize(
    "model",
    [
        lambda x: (y := x + 1).view(-1).add_(1).sum() + y,
        lambda x: (y := torch.cat([x, x])).view(-1)[2:].relu_().sum() + y,
        lambda x: nn.functional.batch_norm(x, torch.zeros(4), torch.ones(4), training=True),
        lambda x: x.clone().as_strided((2, 2), (1, 2)),
    ],
    ids=["in place", "through a view", "statistics", "memory"],
)
def test_calls_that_may_write_are_rewritten(model: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_as_aten", rewritten)
    with pytest.raises(AssertionError, match="is rewritten"):
        from_torch(model, torch.randn(3, 4), report=lambda line: None)


def rewritten(program: object) -> object:
    raise AssertionError("the program is rewritten")
