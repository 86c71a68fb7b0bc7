"""Logs as files of lines, one record each. A line that cannot be used is left out and reported with its number and the reason."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Generic, TypeVar

from ansor.errors import RecordError
from ansor.support.json_values import REFUSAL
from ansor.support.text import counted

Record = TypeVar("Record")
Source = str | Path | IO[str] | IO[bytes]
"""A log's name, or an open one."""


@dataclass(frozen=True)
class Skipped:
    """A line that was left out: its number from 1, and why, in printable characters."""

    line: int
    reason: str


@dataclass(frozen=True)
class Loaded(Generic[Record]):
    """The records of a log in its order, and the lines that were left out."""

    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...]


def read(source: Source, read_line: Callable[[str], Record | None]) -> Iterator[Record | Skipped]:
    """The contents of a log's lines, one after the other. `read_line` returns None for a comment, and raises RecordError for a line that it cannot use.

    Raises RecordError if the log cannot be read.
    """
    if not isinstance(source, (str, Path)):
        yield from _read_rows(source, read_line)
        return
    try:
        with Path(source).open("rb") as file:
            yield from _read_rows(file, read_line)
    except OSError as error:
        raise RecordError(f"the log {source} cannot be read: {error.strerror}; name another file") from error


def gathered(found: Iterable[Record | Skipped]) -> Loaded[Record]:
    """All records, and the lines that were left out."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    for item in found:
        if isinstance(item, Skipped):
            skipped.append(item)
        else:
            records.append(item)
    return Loaded(tuple(records), tuple(skipped))


def warned(found: Iterable[Record | Skipped], name: str, logger: logging.Logger) -> Iterator[Record]:
    """The records, and a warning for each line that is left out."""
    for item in found:
        if isinstance(item, Skipped):
            logger.warning("line %d of %s is left out: %s", item.line, ascii(name), item.reason)
        else:
            yield item


def others(loaded: Loaded[Record], begin: int, end: int) -> list[str]:
    """A line that says how many records from `begin` to `end` are shown; empty if those are all."""
    count = len(loaded.records)
    shown = len(loaded.records[begin:end])
    return [f"{shown} of {counted(count, 'record')}, selected by --begin and --end"] if shown < count else []


def told(skipped: Sequence[Skipped]) -> list[str]:
    """A line that says which lines were left out; empty if none were."""
    return [f"{counted(len(skipped), 'line')} left out; line {skipped[0].line}: {skipped[0].reason}"] if skipped else []


def _read_rows(rows: Iterable[str | bytes], read_line: Callable[[str], Record | None]) -> Iterator[Record | Skipped]:
    for number, row in enumerate(rows, 1):
        try:
            text = row.decode() if isinstance(row, bytes) else row
            found: Record | Skipped | None = read_line(text) if text.strip() else None
        except UnicodeDecodeError:
            found = Skipped(number, "it is not UTF-8")
        except RecordError as error:
            found = Skipped(number, str(error).removeprefix(REFUSAL))
        if found is not None:
            yield found
