"""Shows a kernel, or a program for another machine, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.codegen.source import Argument
from ansor.support.html_text import table, unfolding


def kernel_html(line: str, arguments: Sequence[Argument], schedule: str, source: str) -> str:
    """A table of its arguments, with loops and C text to unfold. line: the heading."""
    rows = [(one.name, one.role, one.dtype, " x ".join(map(str, one.shape))) for one in arguments]
    loops = unfolding("loops", schedule) if schedule else ""
    return table(line, ("argument", "role", "dtype", "shape"), rows) + loops + unfolding("C", source)
