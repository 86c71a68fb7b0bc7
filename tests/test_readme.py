"""What README and docs say is tried: Python is run with few trials, commands are parsed, mistakes give the sentences that are printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansor.cli import _parser
from ansor.measure.failure import KINDS
from ansor.support import settings
from ansor.targets.cpu import OPTIONS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TRIALS = 2


def _blocks(text: str, language: str) -> Iterator[str]:
    """Code blocks with that word (or words) behind the fence."""
    return (match[1] for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def _as_program(page: Path) -> str:
    """The page's Python blocks in order, as one program; blocks that raise hold their sentence as a comment."""
    parts = []
    for words, block in re.findall(r"^```python( raises)?\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        if not words:
            parts.append(re.sub(r"\b((?:num_measure_)?trials=)\d+", rf"\g<1>{TRIALS}", block))
            continue
        statement, _, sentence = block.strip().rpartition("\n# ")
        parts.append(f"try:\n    {statement}\nexcept ansor.AnsorError as error:\n    assert str(error) == {sentence!r}, error\nelse:\n    assert False")
    return "import ansor\n" + "\n".join(parts)


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs_as_it_is_printed(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = _as_program(page)
    if '"arm -' in program:
        request.getfixturevalue("emulators")
    if page.name == "records.md":
        subprocess.run([sys.executable, "-m", "ansor", "tune", "matmul", "--args", "16,16,16", "--trials", "2"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "page.py").write_text(program)
    run = subprocess.run([sys.executable, "-W", "ignore", "page.py"], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr


def test_readme_opens_with_two_commands_that_do_everything() -> None:
    first, second = list(_blocks(README, "sh"))[:2]
    assert first.count("\n") == second.count("\n") == 1
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/ansor tune examples/resnet18.py")
    assert second.startswith("python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest")
    assert README.index(second) < README.index("## ")


def test_readme_is_short_and_names_every_page() -> None:
    assert README.count("\n") <= 120
    assert not [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in README]


def test_ci_runs_the_command_that_readme_prints() -> None:
    (pattern,) = re.findall(r"grep -m1 '([^']*)' README.md", (ROOT / ".ci" / "run").read_text())
    found = [line for line in README.splitlines() if re.search(pattern, line)]
    assert [f"{line}\n" for line in found] == list(_blocks(README, "sh"))[1:2]


def test_commands_are_understood() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    lines = [shlex.split(line, comments=True) for block in _blocks(page, "sh") for line in block.splitlines() if line.startswith("ansor ") and ">" not in line]
    commands = {"tune", "compile", "bench", "show", "compare", "explain", "pack", "coverage", "convert", "report", "dataset", "doctor"}
    assert {line[1] for line in lines} == commands
    for line in lines:
        _parser().parse_args(line[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    links = [page.parent / target for target in re.findall(r"\]\(([^)#:]+)\)", text)]
    named = [ROOT / name for name in re.findall(r"\b((?:examples|benchmarks|tests)/[\w/]+\.py)", text)]
    missing = [path for path in (*links, *named) if not path.exists()]
    assert not missing


def test_tables_are_complete() -> None:
    variables = re.findall(r'os\.environ\.get\("(\w+)"', Path(str(settings.__file__)).read_text())
    page = (ROOT / "docs" / "targets.md").read_text()
    assert variables and all(re.search(rf"^\|.*`{name}`.*\|", page, re.MULTILINE) for name in variables)
    assert all(f"`-{option.name}`" in page for option in OPTIONS)
    assert all(f"`{kind}`" in (ROOT / "docs" / "records.md").read_text() for kind in KINDS)


def test_no_page_names_a_host_or_an_absolute_time() -> None:
    for page in PAGES:
        assert not re.search(r"https?://|\b\d+(\.\d+)? ?(ms|us|milliseconds|seconds|minutes|GFLOP/s)\b", page.read_text()), page
