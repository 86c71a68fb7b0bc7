"""Texts of strangers in a notebook are shown as they are."""

from __future__ import annotations

from ansor.support.html_text import LONGEST, MOST, table, unfolding

HOSTILE = "<script>alert(1)</script><img src=x onerror='a()'>&\u202e\x00"


def test_everything_is_escaped() -> None:
    for text in (table(HOSTILE, [HOSTILE], [[HOSTILE]]), unfolding(HOSTILE, HOSTILE)):
        assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text and "\u202e" not in text and "\x00" not in text


def test_it_stays_small() -> None:
    text = table("many", ["number"], [[k] for k in range(MOST + 7)])
    assert text.count("<tr>") == MOST + 1 and "and 7 more" in text
    assert len(unfolding("long", "x" * (LONGEST + 9))) < LONGEST + 200 and "9 characters more" in unfolding("long", "x" * (LONGEST + 9))
