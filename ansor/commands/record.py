"""`ansor record`. Source: TVM 0.9, `python -m tvm.autotvm.record` and `python -m tvm.auto_scheduler.measure_record`."""

from __future__ import annotations

import argparse

from ansor.commands.common import make_console
from ansor.compat.log_entries import pick, read, split
from ansor.text import counted


def run_record(given: argparse.Namespace) -> int:
    """Show records, keep the best of each workload, or write a file for each workload."""
    console = make_console()
    if given.mode == "split":
        for path, count in split(given.input):
            console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    elif given.mode == "read":
        for line in read(given.input, given.begin, given.end, ir=given.ir, code=given.code):
            console.print(line, soft_wrap=True, markup=False)
    else:
        path, count = pick(given.input, given.output)
        console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    return 0
