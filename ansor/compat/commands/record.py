"""`ansor record`. Source: TVM 0.9, `python -m tvm.autotvm.record` and `python -m tvm.auto_scheduler.measure_record`."""

from __future__ import annotations

import argparse

from ansor.commands.common import make_console
from ansor.commands.subject import load_file
from ansor.compat.log_entries import entries, pick, read, split
from ansor.errors import DeclarationError
from ansor.support.line_files import told
from ansor.support.text import counted


def run_record(given: argparse.Namespace) -> int:
    """Show records, keep the best of each workload, or write a file for each workload."""
    console = make_console()
    _check_options(given)
    if given.templates:
        load_file(given.templates)  # its decorators register the templates that the log names
    if given.mode == "split":
        for path, count in split(given.input):
            console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    elif given.mode == "read":
        for line in read(given.input, given.begin, given.end, ir=given.ir, code=given.code):
            console.print(line, soft_wrap=True, markup=False)
    else:
        path, count = pick(given.input, given.output)
        console.print(f"{path}: {counted(count, 'record')}", soft_wrap=True, markup=False)
    if given.mode != "read":
        for line in told(entries(given.input).skipped):
            console.print(line, soft_wrap=True, markup=False)
    return 0


def _check_options(given: argparse.Namespace) -> None:
    """Raise DeclarationError for an option that belongs to another mode."""
    picks, reads = given.mode in ("pick", "distill"), given.mode == "read"
    asked = {"--ir": given.ir and not reads, "--code": given.code and not reads, "--o": given.output and not picks}
    misplaced = [option for option, wrong in asked.items() if wrong]
    if misplaced:
        raise DeclarationError(f"asked for --mode {given.mode} with {', '.join(misplaced)}; --ir and --code are for read, --o is for pick and distill")
