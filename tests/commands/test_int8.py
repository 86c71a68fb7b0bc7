from __future__ import annotations

from pathlib import Path

import pytest

from ansor.cli import main
from tests.integer.models import quantised_file, samples, small
from tests.integer.pt2e_models import quantised

pytestmark = [pytest.mark.compiler, pytest.mark.torch]

MODEL = """
import torch

def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(36, 3)).eval()

def example_inputs():
    return (torch.ones(1, 1, 8, 8),)

def calibration():
    return [torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(k)) for k in range(4)]
"""


@pytest.mark.usefixtures("boards")
def test_from_onnx_to_a_board_that_says_it_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = quantised_file(small(), tmp_path)
    folder = tmp_path / "out"
    assert main(["compile", str(file), "--target", "micro -board=mps2-an386 -stack=1024", "--output", str(folder), "--run"]) == 0
    said = capsys.readouterr().out
    assert "softmax after the output is left to the caller" in said and "depthwise" in said and "of arena and" in said
    assert "self-test: passed, every byte is right; one run: " in said and (folder / "firmware.elf").exists() and (folder / "net.h").exists()


def test_a_file_with_a_model_and_its_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(MODEL)
    assert main(["compile", str(tmp_path / "mine.py"), "--int8", "--target", "cpu -threads=1", "--output", str(tmp_path / "out"), "--run"]) == 0
    said = capsys.readouterr().out
    assert "self-test: passed, every byte is right" in said and "#define MINE_INPUT_BYTES 64" in (tmp_path / "out" / "net.h").read_text()


def test_tuned_kernels_are_recorded_and_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODEL)
    words = ["mine.py", "--int8", "--target", "cpu -threads=1", "--output", "out", "--run"]
    assert main(["tune", *words, "--trials", "4"]) == 0
    assert (tmp_path / "mine.jsonl").exists() and "self-test: passed, every byte is right" in capsys.readouterr().out
    assert main(["compile", *words]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.onnx"], "none.onnx, which is not a file"),
        (["matmul", "--int8"], "it is an operator; name a network"),
        (["resnet8", "--int8", "--run"], "--run without --output"),
        (["matmul", "--arena", "64K"], "asked for --arena 65536 for matmul, which is not an int8 network: add --int8"),
        (["resnet8", "--int8", "--arena", "2K"], "but the tensors of resnet8 alone need 49152"),
    ],
)
def test_what_cannot_be_meant(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["compile", *words]) == 1
    assert says in capsys.readouterr().err


def test_an_exported_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(36, 3)).eval()
    torch.export.save(torch.export.export(model, (torch.randn(1, 1, 8, 8),)), tmp_path / "mine.pt2")
    assert main(["compile", str(tmp_path / "mine.pt2"), "--target", "cpu -threads=1", "--output", str(tmp_path / "out"), "--run"]) == 0
    assert "self-test: passed, every byte is right" in capsys.readouterr().out
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    assert main(["compile", str(tmp_path / "bad.pt2")]) == 1
    assert "which torch.export.load cannot" in capsys.readouterr().err


def test_a_program_that_is_quantised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    graph = quantised(small(), samples())
    with torch.no_grad():
        torch.export.save(torch.export.export(graph, (samples(1)[0],)), tmp_path / "small.pt2")
    assert main(["compile", str(tmp_path / "small.pt2"), "--target", "cpu -threads=1", "--output", str(tmp_path / "out"), "--run"]) == 0
    said = capsys.readouterr().out
    assert "self-test: passed, every byte is right" in said and "relu_int8" in said
