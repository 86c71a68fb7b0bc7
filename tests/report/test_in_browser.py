"""The page in a browser: no errors on its console, nothing wider than the window, colours that follow the system."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import pytest

from ansor.cli import main
from tests.chromium import picture, show
from tests.report.trials import hostile, trial, trials, write

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
ASK = """<script>
const wide = [...document.querySelectorAll("body *")].filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("pre"));
const small = [...document.querySelectorAll("svg text")].map(one => one.getBoundingClientRect().height);
parent.document.title = JSON.stringify([innerWidth, document.documentElement.scrollWidth, wide.map(one => one.tagName), Math.min(...small) > 8]);
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    now, before = write(folder / "a.jsonl", [*trials(), trial(2e-6)._replace(workload="w" * 32)]), write(folder / "b.jsonl", [trial(2e-6), trial(1.5e-6)])
    output = folder / "report.html"
    assert main(["report", str(now), "--against", str(before), "--peak", "100", "--bandwidth", "10", "-o", str(output)]) == 0
    return output


def test_the_console_has_no_errors(page: Path, tmp_path: Path) -> None:
    shown = show(page)
    assert shown.console == () and shown.dom.count("<figure") == 3 and shown.dom.count("<svg") == 5
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text().replace("</body>", "<script>alert(1)</script></body>"))
    assert "Content Security Policy" in " ".join(show(broken).console), "the console shows errors, and the page runs no scripts"


def test_texts_from_files_have_no_effect(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    assert main(["report", str(hostile(tmp_path / "a.jsonl")), "--peak", "100", "--bandwidth", "10", "-o", str(output)]) == 0
    assert show(output).console == ()


@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(page: Path, tmp_path: Path, width: int) -> None:
    """In a frame, because a window is at least 500 pixels wide. All parts are unfolded."""
    text = POLICY.sub("", page.read_text()).replace("<details", "<details open").replace("</body>", f"{ASK}</body>")
    asked = tmp_path / "asked.html"
    asked.write_text(f'<!doctype html><title></title><iframe srcdoc="{escape(text)}" style="width:{width}px;height:900px;border:0"></iframe>')
    found = re.search(r"<title>(.*?)</title>", show(asked, width + 100).dom)
    assert found is not None and found[1] == f"[{width},{width},[],true]"


def test_dark_and_light_differ(page: Path, tmp_path: Path) -> None:
    light, dark = (picture(page, tmp_path / f"{name}.png", 400, name == "dark") for name in ("light", "dark"))
    assert light.startswith(b"\x89PNG") and dark.startswith(b"\x89PNG") and light != dark
