"""A report as one HTML file, without scripts, network access or other files. All text from record files is escaped, and the page may not load anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansor.measure.record_target import options_text
from ansor.report.charts import CURVE_BOTTOM, CURVE_HEIGHT, LEFT, MOST_NUMBERS, RIGHT, ROOF_BOTTOM, ROOF_HEIGHT, TOP, WIDTH, curve, roofline
from ansor.report.values import Report
from ansor.support.html_text import printable
from ansor.support.text import clip, counted, format_bytes, format_count, format_share, ratio_text
from ansor.targets.base import LOCAL

TEMPLATE = "page.html"
LONGEST_EXAMPLE = 4000
"""The most characters of a failure's text."""


def page(report: Report, version: str, refresh: int = 0, now: Callable[[], float] = time.time) -> str:
    """The content of the file. version: the package's; refresh: seconds between reloads in a browser, 0 for none."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, finalize=_finalised, trim_blocks=True, lstrip_blocks=True
    )
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now()))
    return environment.get_template(TEMPLATE).render(report=report, refresh=refresh, made=made, version=version, **_words(), **_charts())


def _finalised(value: Any) -> Any:
    """A text without characters that a page should not contain; other values stay as they are."""
    return printable(value) if type(value) is str else value


def _words() -> dict[str, object]:
    return {
        "counted": counted, "bytes_text": format_bytes, "count_text": format_count, "share_text": format_share, "target_text": options_text,
        "example": lambda text: clip(text, LONGEST_EXAMPLE), "local": LOCAL, "ratio_text": ratio_text,
    }  # fmt: skip


def _charts() -> dict[str, object]:
    return {
        "curve": curve, "roofline": roofline, "width": WIDTH, "left": LEFT, "right": RIGHT, "top": TOP, "most_numbers": MOST_NUMBERS,
        "curve_height": CURVE_HEIGHT, "curve_bottom": CURVE_BOTTOM, "roof_height": ROOF_HEIGHT, "roof_bottom": ROOF_BOTTOM,
    }  # fmt: skip
