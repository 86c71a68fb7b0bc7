"""What `ansor pack` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.measure.pack import load_pack
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return recorded(tmp_path / "matmul.jsonl", SearchTask(matmul, (16, 16, 16), ONE))


@pytest.fixture
def pack(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "matmul.pack")
    assert main(["pack", "create", file, "-o", path]) == 0
    said = capsys.readouterr().out
    assert f"{path}: 2 programs of 1 task for cpu -mcpu=native -threads=1 (" in said and "without --of" not in said, "a built-in operator has a name"
    return path


def test_show(pack: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "show", pack]) == 0
    said = capsys.readouterr().out
    assert "matmul(16, 16, 16)     1         2  1 ms" in said and "  compiler: " in said
    assert main(["pack", "show", pack, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tasks"][0]["costs"] == [1e-3, 2e-3] and found["machine"]["cores"]


def test_import_of_an_operator_that_the_pack_names(pack: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "import", pack]) == 0
    said = capsys.readouterr().out
    assert "its times count here" in said and "matmul(16, 16, 16)     1  2 of 2   1 ms" in said and "loses " in said
    assert "guess for here in total, by " in said and "compared with what it would pick here" in said and "--measure" not in said


def test_import_into_records(pack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = str(tmp_path / "new.jsonl")
    assert main(["pack", "import", pack, "--measure", "1", "-o", new, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["written"] == 1 and len(found["tasks"][0]["here"]) == 1 and found["unit"] == "seconds"
    assert main(["pack", "import", pack, "--measure", "1", "-o", str(tmp_path / "other.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "guess for here" in said and "against there" in said and " times as fast\n" in said, "it was recorded with a millisecond"
    assert main(["pack", "import", pack, "-o", new]) == 0
    assert f"{new}: 1 trial added" in capsys.readouterr().out  # the other one was measured here


def test_a_network_of_a_file_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "from ansor import te\n\ndef twice():\n    a = te.placeholder((8, 8), name='A')\n    k = te.reduce_axis((0, 8), name='k')\n"
    (tmp_path / "op.py").write_text(f"{source}    return [a, te.compute((8,), lambda i: te.sum(a[i, k] * 2.0, axis=k), name='B')]\n")
    from ansor.commands.subject import OperatorSubject, resolve
    from ansor.targets.base import parse_target

    subject = resolve(str(tmp_path / "op.py"))
    assert isinstance(subject, OperatorSubject)
    file, path = recorded(tmp_path / "op.jsonl", subject.task(parse_target(ONE))), str(tmp_path / "op.pack")
    assert main(["pack", "create", file, "--of", str(tmp_path / "op.py"), "-o", path]) == 0
    assert load_pack(path).of == "" and len(load_pack(path).tasks) == 1
    assert main(["pack", "create", file, "-o", f"{path}.unnamed"]) == 0
    said = capsys.readouterr().out
    assert "without --of each task counts once, not as often as the network uses it, and `ansor pack import` will need --of\n" in said
    assert main(["pack", "import", path]) == 1
    assert "name the network or file that it was made for with --of" in capsys.readouterr().err
    assert main(["pack", "import", path, "--of", str(tmp_path / "op.py")]) == 0


def test_mistakes(pack: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, why in [
        (["create", file, "-o", file], "which is a record file; name another file with -o"),
        (["import", pack, "--measure", "2"], "without keeping the results; name a record file with -o"),
        (["show", file], "is not a kernel pack; name a file that `ansor pack create` wrote"),
        (["create", file, "--of", "softmax", "-o", f"{pack}.new"], "; it holds matmul(16, 16, 16); `ansor show "),
        (["create", file, "--of", "matmul", "-o", f"{pack}.new"], "no valid record of matmul(512, 512, 512) for target cpu -mcpu=native -threads=1 on"),
    ]:
        assert main(["pack", *arguments]) == 1
        assert why in capsys.readouterr().err
