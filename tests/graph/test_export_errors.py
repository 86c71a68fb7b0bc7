"""Models and example inputs that cannot be exported: one sentence, and nothing on stderr."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import ansor

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def branches(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


@pytest.mark.parametrize(
    "model, inputs, sentence",
    [
        (torch.nn.Linear(4, 4), (torch.ones(2, 5),), "torch.export cannot export the model Linear: .*has to accept the model"),
        (branches, (torch.ones(2, 4),), "torch.export cannot export the function branches: "),
        (torch.nn.Bilinear(4, 4, 4), (2, 4), "example_inputs holds no tensor, but 2, 4: give tensors"),
        (torch.nn.Linear(4, 4), (np.ones((2, 4), np.float32),), "holds a NumPy array; convert it with torch.from_numpy"),
        (torch.nn.Linear(4, 4), np.ones((2, 4), np.float32), "example_inputs is a NumPy array; give a tensor"),
        (torch.nn.Linear(4, 4), {"inputs": torch.ones(2, 4)}, r"gives the keywords inputs, but the model Linear takes \(input: .*'input'; give the model"),
        (torch.nn.Linear(4, 4), (2, 4), "gives 2 positional arguments, but the model Linear takes"),
    ],
)
def test_one_sentence(capfd: pytest.CaptureFixture[str], model: Any, inputs: Any, sentence: str) -> None:
    level = logging.getLogger("torch._subclasses.fake_tensor").level
    with pytest.raises(ansor.AnsorError, match=sentence) as caught:
        ansor.compile(model, inputs, "cpu -threads=1", progress=False)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""
    assert logging.getLogger("torch._subclasses.fake_tensor").level == level


def test_a_class_in_place_of_a_module_is_told() -> None:
    with pytest.raises(ansor.AnsorError, match=r"asked to read the class ReLU as a PyTorch model; give an instance: ReLU\(...\)"):
        ansor.compile(torch.nn.ReLU, (torch.zeros(2),))
