"""`ansor --print-completion SHELL`: a script that completes commands, options and file names. It is generated once, so completing does not start Python."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

SHELLS = ("bash", "zsh", "tcsh")

FILES = re.compile(r"\b(FILE|RECORDS|DIR|IN|OUT|A|B|PATH)\b")
"""The words that stand for files and folders in the help of arguments."""


class PrintCompletion(argparse.Action):
    """Print the script and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: str | Sequence[object] | None, option_string: str | None = None
    ) -> None:
        try:
            import shtab
        except ImportError:
            parser.exit(1, "ansor: asked for a completion script, which the package shtab writes; install it: pip install 'ansor[completion]'\n")
        _name_files(parser, shtab.FILE)
        sys.stdout.write(shtab.complete(parser, shell=str(values)))
        parser.exit(0)


def _name_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Mark those arguments of all commands that name files."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _name_files(command, files)
        elif action.choices is None and FILES.search(str(action.metavar or "")):
            action.complete = files  # type: ignore[attr-defined]  # shtab reads this attribute, which argparse does not have
