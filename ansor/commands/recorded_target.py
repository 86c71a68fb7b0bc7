"""The target of a command: the one in its options, or else the only one in the record file that it reads."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ansor.commands.common import target_of
from ansor.errors import TargetError
from ansor.measure.nothing_recorded import target_texts
from ansor.measure.record import load
from ansor.run.progress import say
from ansor.targets.base import Target, parse_target
from ansor.targets.program_options import read_target, why_refused, without_programs


def target_for(given: argparse.Namespace, records: str | Path, console: Console) -> Target:
    """The target of the options; without any, that of all records, which is printed if it is not this machine with all its cores.

    Raises TargetError if the file's target names a compiler: the options have to name it.
    """
    texts = target_texts(load(records).records) if Path(records).is_file() and not _names_target(given) else []
    return target_among(given, texts, records, console)


def target_among(given: argparse.Namespace, texts: Sequence[str], records: str | Path, console: Console) -> Target:
    """`target_for` with the targets of a file, without processor and compiler, already read."""
    if _names_target(given) or len(texts) != 1:
        return target_of(given)
    if why_refused(texts[0]):
        raise TargetError(_say_it_yourself(texts[0], records))
    target = read_target(texts[0])
    if target != parse_target("cpu"):
        say(console, f"for {target}, the target of all trials in {records}")
    return target


def _names_target(given: argparse.Namespace) -> bool:
    return given.target is not None or given.threads is not None or bool(given.cc)


def _say_it_yourself(text: str, records: str | Path) -> str:
    """Say what to pass if a file's target names a compiler, which a file must not start. The file's text is quoted, so that a shell treats it as data."""
    asked = f"all trials in {records} are for a target that names a compiler; compilers named in files are not started"
    compiler, rest = _compiler_of(text), without_programs(text)
    if not compiler or not (compiler + rest).isprintable() or len(compiler + rest) > 300:
        return f"{asked}; name both with --target and --cc"
    return f"{asked}; if you trust it, pass --target {shlex.quote(rest)} --cc {shlex.quote(compiler)}"


def _compiler_of(text: str) -> str:
    """The value of -cc in a target's text, '' if it cannot be read."""
    try:
        return next((word.removeprefix("-cc=") for word in shlex.split(text) if word.startswith("-cc=")), "")
    except ValueError:
        return ""
