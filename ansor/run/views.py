"""The progress view of a run. Without one, rich is not imported."""

from __future__ import annotations

import sys

from ansor.run.voice import NoView, View
from ansor.targets.base import Target


def view_of(progress: bool | View | None, target: Target | None = None) -> View:
    """The view that `progress=` asks for: True shows one, False none, None one where a person looks on: on a terminal (stderr) and in a notebook.

    target: its peak is measured when the first trial is shown, to say the share that is reached; None says no share.
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
    """Whether a notebook shows what is displayed; rich knows the kinds of them, and is not asked where there is no IPython."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter
