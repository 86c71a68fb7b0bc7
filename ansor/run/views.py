"""The progress view of a run. Without one, rich is not imported."""

from __future__ import annotations

import sys

from ansor.run.reporter import NoView, View
from ansor.targets.base import Target


def view_of(progress: bool | View | None, target: Target | None = None) -> View:
    """The view for `progress=`: True shows one, False none, None one only on a terminal (stderr) and in a notebook.

    target: its peak is measured when the first trial is shown, to show the share of it; None shows no share.
    """
    if progress is False or progress is None and not (sys.stderr.isatty() or _in_notebook()):
        return NoView()
    if not isinstance(progress, bool) and progress is not None:
        return progress
    if _in_notebook():
        from ansor.run.notebook import NotebookView

        return NotebookView(target)
    from rich.console import Console

    from ansor.run.progress import ProgressView

    return ProgressView(Console(stderr=True, highlight=False), target)


def _in_notebook() -> bool:
    """Whether output is displayed in a notebook. Rich knows the kinds of notebooks; it is imported only if IPython is."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter
