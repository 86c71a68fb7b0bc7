"""`ansor record`. Source: TVM 0.9, `python -m tvm.autotvm.record` and `python -m tvm.auto_scheduler.measure_record`."""

from __future__ import annotations

import argparse

from ansor.commands.common import make_console
from ansor.compat.log_entries import entries, pick, split
from ansor.text import counted


def run_record(given: argparse.Namespace) -> int:
    """Show records, keep the best of each workload, or write a file for each workload."""
    console = make_console()
    if given.mode == "split":
        for path, count in split(given.input):
            console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    elif given.mode == "read":
        loaded = entries(given.input)
        for number, entry in enumerate(loaded.records[given.begin : given.end], given.begin):
            console.print(f"{number}: {entry}", soft_wrap=True, markup=False)
        if loaded.skipped:
            first = loaded.skipped[0]
            console.print(f"{counted(len(loaded.skipped), 'line')} left out; line {first.line}: {first.reason}", soft_wrap=True, markup=False)
    else:
        path, count = pick(given.input, given.output)
        console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    return 0
