"""The documentation as a site: it builds without a warning, and every page is in its contents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ansor

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command that README prints: warnings are errors. Broken links are among them, and pages that nothing leads to."""
    command = re.search(r"`sphinx-build (-W -c docs \. )build/site`", (ROOT / "README.md").read_text())
    assert command is not None
    output = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-E", "-d", str(output / "doctrees"), *command[1].split(), str(output / "html")],
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return output / "html"


@pytest.mark.torch
def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 40 and not [page for page in pages if not (site / page).is_file()]


@pytest.mark.torch
def test_the_interface_is_described(site: Path) -> None:
    """Each public name has an entry with text below it."""
    text = (site / "docs" / "api.html").read_text()
    ours = set(ansor.__all__) - {"te", "AnsorError", "AnsorWarning", "RecordToFile", "SketchPolicy", "TuningOptions"}  # the last three are for TVM's users
    missing = [name for name in ours if not re.search(rf'id="ansor\.(\w+\.)*{name}"', text)]
    assert not missing and 'id="ansor.errors.AnsorError"' in text
    assert "Find a fast program for a declaration" in text
