"""What becomes of an operator, by entries that look like PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import op_db
import pytest
import torch

pytestmark = pytest.mark.torch


@dataclass
class Sample:
    input: object
    args: tuple[object, ...] = ()
    kwargs: tuple[tuple[str, object], ...] = ()


@dataclass
class Entry:
    """As much of an `OpInfo` as is asked for."""

    op: Callable[..., object]
    sample: Sample
    name: str = "special.made_up"
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)

    def sample_inputs(self, device: str, dtype: torch.dtype, requires_grad: bool) -> list[Sample]:
        return [self.sample]


X = torch.tensor([[1.0, -2.0], [3.0, 0.5]])


@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
@pytest.mark.parametrize(
    ("operator", "sample", "outcome"),
    [
        (torch.tanh, Sample(X), "own"),
        (lambda x, y, alpha: x + y * alpha, Sample(X, (X,), (("alpha", 2),)), "own"),
        (lambda xs: torch.cat(xs), Sample([X, X]), "own"),
        (lambda x: torch.sort(x * 2), Sample(X), "mixed"),
        (torch.sort, Sample(X), "torch"),
        (torch.nonzero, Sample(X), "refused"),
        (torch.rand_like, Sample(X), "torch"),
        (lambda x: x @ torch.ones(5, 5), Sample(X), "none"),
    ],
)
def test_outcomes(operator: Callable[..., object], sample: Sample, outcome: str) -> None:
    found = op_db.judged("made_up", Entry(operator, sample), by_numpy=True)
    assert (found.outcome, found.group) == (outcome, "special"), found


def test_another_result_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_db, "_network", lambda module, tensors, by_numpy: lambda *given: torch.zeros(2, 2))
    assert op_db.judged("made_up", Entry(torch.tanh, Sample(X)), by_numpy=True).outcome == "wrong"


def test_no_samples_of_float32() -> None:
    assert op_db.judged("made_up", Entry(torch.tanh, Sample(X), dtypes=(torch.int32,)), by_numpy=True).outcome == "none"


def test_table() -> None:
    lines = op_db.table([op_db.Outcome("a", "fft", "own"), op_db.Outcome("b", "fft", "torch"), op_db.Outcome("c", "others", "own")])
    assert [line.split()[:4] for line in lines[1:]] == [["fft", "1", "0", "1"], ["others", "1", "0", "0"], ["all", "2", "0", "1"]]
