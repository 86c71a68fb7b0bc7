"""The runner of PyTorch's own tests of backends, on a made-up checkout of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_test_backends import FILES, Case, cases, main, run, text_of

TESTS = """
import unittest
import torch
from torch._dynamo.backends.registry import lookup_backend

class Tests(unittest.TestCase):
    def test_named(self):
        seen = torch.compile(lambda x: x + 1, backend="eager", options={"no": 1})
        assert torch.equal(seen(torch.ones(3)), torch.full((3,), 2.0)) and not torch.is_grad_enabled()
        assert lookup_backend("inductor").__module__ == "ansor.torch_backend"

    def test_own(self):
        called = []
        torch.compile(lambda x: x + 1, backend=lambda graph, inputs: called.append(1) or graph)(torch.ones(3))
        assert called

    def test_wrong(self):
        assert torch is None, "not none"

    @unittest.skip("no device")
    def test_device(self):
        pass
"""


@pytest.mark.compiler
def test_names_are_ours_and_functions_stay(tmp_path: Path) -> None:
    (tmp_path / "test_made_up.py").write_text(TESTS)
    found = {one.name.rpartition(".")[2]: one for one in run(tmp_path / "test_made_up.py", "", 300, no_grad=True)}
    assert {name: one.outcome for name, one in found.items()} == {
        "test_named": "passed", "test_own": "passed", "test_wrong": "failed", "test_device": "skipped",
    }, found  # fmt: skip
    assert "not none" in found["test_wrong"].error


def test_a_report_as_text() -> None:
    passed, failed = '<testcase classname="a.b.C" name="x"/>', '<testcase classname="C" name="y"><failure message="two\n lines"/></testcase>'
    found = cases(f"<testsuites><testsuite>{passed}{failed}</testsuite></testsuites>")
    assert found == [Case("C.x", "passed"), Case("C.y", "failed", "two lines")]
    assert text_of("f.py", found) == "f.py: 1 passed, 1 failed, 0 skipped\n    C.y: two lines"


def test_a_folder_without_the_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert f"has no {FILES[0]}; give the folder of PyTorch's sources" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "status"), [("passed", 0), ("skipped", 0), ("failed", 1)])
def test_the_status(tmp_path: Path, outcome: str, status: int) -> None:
    (tmp_path / "one.py").touch()
    assert main([str(tmp_path), "--files", "one.py"], lambda path, only, seconds, no_grad: [Case("C.x", outcome)]) == status
