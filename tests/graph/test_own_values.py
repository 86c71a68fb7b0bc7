"""A model that changes its own values as it runs is named, and left as it was."""

from __future__ import annotations

import warnings

import pytest
import torch

from ansor.graph.export import exported
from ansor.graph.own_values import changes, changes_noted

pytestmark = pytest.mark.torch
X = torch.ones(2)


class _Counts(torch.nn.Module):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.calls, self.step, self._hidden = 0, step, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += self.step
        self._hidden += 1
        self.kept = 3.0
        return x + self.calls


@pytest.mark.parametrize(("step", "told"), [(1, ["the model Sequential changes its own values as it runs, 0.calls (from 0 to 1), but the network always "
                                                 "computes what this one call did"]), (0, [])])  # fmt: skip
def test_a_change_is_told(step: int, told: list[str]) -> None:
    said: list[str] = []
    model = torch.nn.Sequential(_Counts(step))
    assert exported(model, (X,), said.append).program.module()(X).tolist() == [1.0 + step] * 2
    assert said == told
    assert "forward" not in vars(model) and model[0].calls == 0


def test_a_forward_of_its_own_is_put_back() -> None:
    model: torch.nn.Module = _Counts(2)
    own = model.forward = lambda x: x * 2
    with changes_noted(model) as noted:
        model(X)
    assert vars(model)["forward"] is own and noted == [""]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        scripted = torch.jit.script(torch.nn.ReLU())
    with changes_noted(scripted) as noted:
        scripted(X)
    assert not noted


def test_only_values_that_were_there_count() -> None:
    nan = float("nan")
    assert changes({"a": 1, "b": nan, "gone": 2}, {"a": 1, "b": nan, "new": 3}) == ""
    assert changes({"a": 1, "b": "x" * 99}, {"a": 2, "b": True}) == f"a (from 1 to 2) and b (from '{'x' * 39} to True)"


def test_a_model_that_ends_the_program_is_told() -> None:
    def ends(x: torch.Tensor) -> torch.Tensor:
        raise SystemExit(3)

    with pytest.raises(Exception, match=r"the function ends, which ends the program \(exit 3\) when it is called; take that out of it"):
        exported(ends, (X,), print)
