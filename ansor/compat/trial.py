"""Whether a trial of a record file holds what a trial holds: `ansor.measure.record` reads fast, and trusts who wrote."""

from __future__ import annotations

from ansor.errors import RecordError
from ansor.json_values import is_number, told
from ansor.measure.record import Record


def check_trial(record: Record) -> None:
    """RecordError for values of other types than a trial has: strangers write record files, too."""
    numbers = (*record.row, record.seed, record.round)
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise RecordError("its choices are not whole numbers")
    if not all(is_number(seconds) and seconds >= 0 for seconds in record.seconds):
        raise RecordError("its seconds are not seconds")
    for word, value in ("elapsed", record.elapsed), ("timestamp", record.timestamp):
        if not is_number(value):
            raise RecordError(f"its {word} is {told(value)}, not seconds")
    for word, text in ("workload", record.workload), ("target", record.target), ("algorithm", record.algorithm):
        if not isinstance(text, str):
            raise RecordError(f"its {word} is {told(text)}, not a text")
