"""Recognises the format of a log file by its lines. The file's name is ignored, and unusable first lines are skipped."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from ansor.errors import RecordError
from ansor.support import line_files
from ansor.support.json_values import is_number, parse


class LogKind(StrEnum):
    """The formats: ansor record files, logs of TVM's auto-scheduler, and logs of AutoTVM."""

    RECORDS = "records"
    AUTO_SCHEDULER = "auto_scheduler"
    AUTOTVM = "autotvm"


def kind_of_line(row: str) -> LogKind | None:
    """The format of a line; None for comments, torn lines and other text."""
    try:
        fields = parse(row)
    except RecordError:
        return None
    if not isinstance(fields, dict):
        return None
    if "header" in fields or "comparison" in fields or fields.keys() >= {"workload", "sketch", "row"}:
        return LogKind.RECORDS
    if isinstance(fields.get("v"), str):
        return LogKind.AUTO_SCHEDULER
    return LogKind.AUTOTVM if is_number(fields.get("version", fields.get("v"))) else None


def kind_of_file(path: str | Path) -> LogKind:
    """The format of the first line that has one. Raises RecordError if the file cannot be read, or no line has one."""
    for found in line_files.read(path, kind_of_line):
        if isinstance(found, LogKind):
            return found
    raise RecordError(f"asked to read {path}, which has no lines of a record file, or of a log of TVM's auto-scheduler or AutoTVM; name another file")
