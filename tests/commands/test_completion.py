"""Scripts that complete commands."""

from __future__ import annotations

import builtins
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ansor.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", shell])
    assert not ended.value.code
    return capsys.readouterr().out


def completed(text: str, words: Sequence[str], folder: Path) -> list[str]:
    """What bash offers for the last of the words."""
    (folder / "completion.sh").write_text(text)
    commands = f"source completion.sh; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_ansor; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    run = subprocess.run(["bash", "-c", commands], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_bash_completes_commands_options_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    (tmp_path / "trials.jsonl").write_text("")
    assert completed(text, ["ansor", "co"], tmp_path) == ["compile", "compare", "coverage", "convert"]
    assert completed(text, ["ansor", "show", "--so"], tmp_path) == ["--source"]
    assert completed(text, ["ansor", "show", "tri"], tmp_path) == ["trials.jsonl"]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = script(shell, capsys)
    assert "coverage" in text and "ansor" in text
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    usual = builtins.__import__

    def refuse(name: str, names: Mapping[str, object] | None = None, *rest: object) -> object:
        if name == "shtab":
            raise ImportError(name)
        return usual(name, names, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 1 and capsys.readouterr().err.endswith("pip install 'ansor[completion]'\n")
