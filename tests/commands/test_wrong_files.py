"""A file that does not serve gets the same sentence from each command that takes one, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.cli import main

COMMANDS = [["tune", "--trials", "1"], ["compile"]]
TVM = "; for a script of TVM write `from ansor.compat import tvm`, and `from ansor.compat.tvm import te`, ..."
TWO = "def one(n): ...\ndef two(n): ...\n"
FAILS = "def broken(n=1):\n    return 1 // (n - n)\n"

WRONG = [
    ("", "missing.py", "asked for missing.py, which is not a file; give the path of a Python file, or a built-in name"),
    (TWO, "own.py", "asked for own.py, which has 2 functions (one, two); name one: own.py:FUNCTION"),
    (TWO, "own.py:three", "asked for own.py:three, but the file has no three; it has one, two"),
    ("number = 3\n", "own.py:number", "asked for own.py:number, which is a int; name a function that returns tensors"),
    ("import tvm\n", "own.py", f"asked to read own.py, which fails with ModuleNotFoundError: No module named 'tvm' (own.py, line 1){TVM}"),
    ("x = 1\nx.nothing\n", "own.py", "asked to read own.py, which fails with AttributeError: 'int' object has no attribute 'nothing' (own.py, line 2)"),
    (FAILS, "own.py", "broken(1) fails with ZeroDivisionError: integer division or modulo by zero (own.py, line 2); fix the function"),
    (f"{FAILS}sketch_rules = 3\n", "own.py", "own.py has sketch_rules, which is an int; make it a list of sketch rules, names or values"),
    ("def model(): ...\n", "own.py", "own.py has model but no example_inputs(); add a function that returns the model's inputs as a tuple of tensors"),
]


@pytest.mark.compiler
@pytest.mark.parametrize(("content", "name", "sentence"), WRONG, ids=[str(place) for place in range(len(WRONG))])
def test_each_command_says_what_is_wrong(
    content: str, name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "own.py").write_text(content)
    for command in COMMANDS:
        assert main([*command, name]) == 1
        assert " ".join(capsys.readouterr().err.split()) == f"ansor: {sentence}", command
    assert not list(tmp_path.glob("*.jsonl"))


def test_sizes_without_commas_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "matmul", "--args", "16", "16", "16"])
    assert "separate the sizes of an operator with commas: --args 16,16,16" in capsys.readouterr().err
