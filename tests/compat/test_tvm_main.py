"""Wrong arguments of `python -m ansor.compat.tvm`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansor.compat.tvm.__main__ import main


@pytest.mark.parametrize(("arguments", "status", "words"), [
    ([], 2, "usage: python -m ansor.compat.tvm script.py"),
    (["--help"], 0, "usage: python -m ansor.compat.tvm script.py"),
    (["nope.py"], 2, "asked to run nope.py, which does not exist"),
])  # fmt: skip
def test_mistakes_give_a_message_and_a_status(arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    said = capsys.readouterr()
    assert caught.value.code == status and words in said.out + said.err


@pytest.mark.parametrize(("line", "sentence"), [
    ("from tvm.topi.testing import conv2d_nchw_python", "MissingModuleError: asked for tvm.topi.testing, which is not available; it has NumPy"),
    ("tvm.relay.build", "MissingNameError: asked for tvm.relay, which is not available; networks come from PyTorch"),
])  # fmt: skip
def test_a_missing_name_is_told_with_the_line_of_the_script(line: str, sentence: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import tvm\n{line}\n")
    run = subprocess.run([sys.executable, "-m", "ansor.compat.tvm", str(script)], capture_output=True, text=True)
    where, code, *marks, said = run.stderr.splitlines()
    assert len(marks) <= 1
    assert run.returncode == 1 and f'"{script}", line 2' in where and code.strip() == line and said.startswith(sentence)
