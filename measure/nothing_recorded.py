"""The error for record files without a usable record of a workload: it says what they hold instead."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from ansor.errors import RecordError
from ansor.measure.record import Loaded, Record, load
from ansor.measure.record_target import options_text
from ansor.support.text import listed
from ansor.targets.base import Target


def nothing_for(name: str, target: Target, *files: str | Path) -> RecordError:
    """The error; it names the other targets or workloads in the files."""
    loaded: Sequence[Loaded] = [load(file) for file in files]
    others = [text for text in target_texts(record for one in loaded for record in one.records) if text != str(target)]
    held = [known for known in dict.fromkeys(known for one in loaded for known in one.names.values()) if known != name]
    several = f"; it holds trials for {' and '.join(others)}: choose one with --target" if others else ""
    hint = f"; it holds trials for --target {shlex.quote(others[0])}" if len(others) == 1 else several
    holds = f"; it holds {listed(held)}" if held and not others else ""
    where = ", ".join(map(str, files))
    return RecordError(f"{where} has no valid record of {name} for target {target} on this machine{hint}{holds}; `ansor show {files[0]}` lists what it holds")


def target_texts(records: Iterable[Record]) -> list[str]:
    """The distinct targets of records, without processor and compiler."""
    return list(dict.fromkeys(options_text(record.target) for record in records))
