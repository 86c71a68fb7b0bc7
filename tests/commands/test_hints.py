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
    said = capsys.readouterr().err
    assert said.startswith("usage: ansor tune ") and "ansor tune: error: unrecognized arguments: --trails 4; did you mean --trials?" in said
    with pytest.raises(SystemExit):
        main(["agent", "build", "--outptu", "x"])
    assert capsys.readouterr().err.startswith("usage: ansor agent build ")


def test_sizes_without_commas(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "matmul", "--args", "64x96x128"])
    sentence = "'64x96x128' is not a list of sizes; write whole numbers or words with commas between them, such as 512,512,512"
    assert sentence in capsys.readouterr().err


def test_records_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl, which is not there; name a file that `ansor tune` wrote" in capsys.readouterr().err


def test_the_number_of_cores_has_a_noun() -> None:
    header = Header("gcc", (), 0, "1.0", (("processor", "P"), ("cores", "2"), ("system", "Linux"), (MODEL, "package")), 0.0)
    assert machine_text(header) == "P, 2 cores, Linux"


@pytest.mark.parametrize(("words", "meant"), [(["tunee"], "tune"), (["agent", "psuh"], "push"), (["--print-completion", "bsh"], "bash")])
def test_a_misspelt_command_gets_a_hint(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")


def test_a_command_like_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    said = capsys.readouterr().err
    assert "invalid choice: 'xyzzy' (choose from" in said and "did you mean" not in said


def test_a_refused_export_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text("def model():\n    return 1\n\ndef example_inputs():\n    return ()\n")
    assert main(["compile", str(tmp_path / "net.py"), "--export", str(tmp_path / "new" / "net")]) == 1
    assert "it has to return a torch.nn.Module" in capsys.readouterr().err and not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    assert main(["compile", str(tmp_path / "net.py"), "--export", str(tmp_path / "file")]) == 1
    assert "asked for --export" in capsys.readouterr().err and (tmp_path / "file").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "--output", "DIR"], "asked for --run for matmul, which is not an int8 network: add --int8, or leave --run out"),
        (["--on", "gdb://localhost:1"], "asked for --on gdb://localhost:1 for matmul, which is not an int8 network: add --int8, or leave --on out"),
        (["--output", "a", "--export", "b"], "asked for both --output a and --export b; give one of them"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "matmul", *words]) == 1
    assert capsys.readouterr().err == f"ansor: {said}\n"
