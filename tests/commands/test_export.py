"""What `ansor compile NETWORK --export` takes from records, and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.api import extract_tasks
from ansor.cli import main
from ansor.commands.common import made
from ansor.commands.subject import NetworkSubject, resolve
from tests.commands.record_files import recorded
from tests.commands.test_coverage import NETWORK

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
NATIVE, V3 = "cpu -mcpu=native -threads=1", "cpu -mcpu=x86-64-v3 -threads=1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tuned_for(target: str) -> None:
    """Records of both kernels in the file that is read by default."""
    subject = resolve("net.py")
    assert isinstance(subject, NetworkSubject)
    recorded("net.jsonl", *extract_tasks(*made(subject), target).tasks)


def test_records_of_an_instruction_set_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    tuned_for(V3)
    assert main(["compile", "net.py", "--export", "out", "--isas", "x86-64-v2,x86-64-v3"]) == 0
    v3, v2, exported = capsys.readouterr().out.splitlines()
    assert v3 == "x86-64-v3: 2 of 2 kernels from records, 0 picked by the model"
    assert v2 == "x86-64-v2: 0 of 2 kernels from records (tune for --target 'cpu -mcpu=x86-64-v2 -threads=1'), 2 picked by the model"
    assert exported.startswith("exported to out in ") and exported.endswith("; out/README.md says how to build and call it")


def test_records_of_this_machine_are_not_dropped_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    tuned_for(NATIVE)
    assert main(["compile", "net.py", "--export", "out", "--isas", "x86-64-v3", "--records", "net.jsonl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"x86-64-v3: 0 of 2 kernels from records (tune for --target '{V3}'), 2 picked by the model"
    assert lines[1].startswith(f"no program in net.jsonl is used, because it holds programs for {NATIVE}; tune for the instruction sets, or export for")
    assert "--isas native" in lines[1]


@pytest.mark.parametrize("words", [["--isas", "native"], ["--target", "cpu -threads=1"]])
def test_a_tuned_network_is_exported_for_its_own_processor(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned_for(NATIVE)
    assert main(["compile", "net.py", "--export", "out", *words]) == 0
    assert f"2 kernels for {NATIVE}: 2 from records, 0 picked by the model\n" in capsys.readouterr().out
    assert [path.name for path in (folder / "out" / "kernels").iterdir()] == ["native"]


def test_native_goes_with_no_other_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "net.py", "--export", "out", "--isas", "native,x86-64-v3"]) == 1
    assert "give --isas native without other sets" in capsys.readouterr().err
