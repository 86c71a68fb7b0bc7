"""The target that a command means: the one its options name, or else that of the record file it reads, where there is one only."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from ansor.commands.common import target_of
from ansor.measure.record import Record, load
from ansor.progress import say
from ansor.targets.base import Target, parse_target
from ansor.targets.program_options import read_target


def target_for(given: argparse.Namespace, records: str | Path, console: Console) -> Target:
    """The target of the options; without any, that of all records, which is said if it is not this machine with all its cores.

    Raises TargetError when the file's target names a compiler: name it again.
    """
    if given.target is not None or given.threads is not None or given.cc or not Path(records).is_file():
        return target_of(given)
    texts = target_texts(load(records).records)
    if len(texts) != 1:
        return target_of(given)
    target = read_target(texts[0])
    if target != parse_target("cpu"):
        say(console, f"for {target}, the target of all trials in {records}")
    return target


def target_texts(records: Iterable[Record]) -> list[str]:
    """The targets of records, each once, without the processor and compiler that stand behind them in parentheses."""
    return list(dict.fromkeys(record.target.partition(" (")[0] for record in records))
