"""What the command says of options and files that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.cli import main
from ansor.measure.record import MODEL, Header
from ansor.report.runs import machine_text


def test_a_misspelt_option_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "matmul", "--trails", "4"])
    assert "unrecognized arguments: --trails 4; did you mean --trials?" in capsys.readouterr().err


def test_records_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl, which is not there; name a file that `ansor tune` wrote" in capsys.readouterr().err


def test_the_number_of_cores_has_a_noun() -> None:
    header = Header("gcc", (), 0, "1.0", (("processor", "P"), ("cores", "2"), ("system", "Linux"), (MODEL, "package")), 0.0)
    assert machine_text(header) == "P, 2 cores, Linux"
