"""What `ansor explain` says of the model it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.cli import main

MODEL = """
import torch
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
    def forward(self, x):
        return torch.cummax(self.first(x), 1).values
def model(): return M().eval()
def example_inputs(): return (torch.zeros(2, 8),)
"""


@pytest.mark.torch
def test_warnings_of_the_model_are_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "r.jsonl").write_text("")
    assert main(["explain", str(tmp_path / "r.jsonl"), str(tmp_path / "m.py"), "--target", "cpu -threads=1"]) == 1
    said = capsys.readouterr()
    assert "ansor: warning: aten.cummax" in said.err and "cummax" not in said.out
