"""Commands for TVM's logs: `ansor convert` and `ansor record`. Their code is imported only when they run."""

from __future__ import annotations

import argparse

from ansor.commands.parsers import Commands, arguments, command, natural

LOG_KINDS = ("records", "auto_scheduler", "autotvm")
"""The values of `ansor.compat.log_kinds.LogKind`, which is only imported when needed."""

CONVERT_HELP = """\
Convert a log to another format: ansor record files, logs of TVM's auto-scheduler (v0.1 to v0.6), or logs of AutoTVM (0.1 is only read).

  ansor convert tvm.json matmul.jsonl matmul           programs of our search space become trials
  ansor convert matmul.jsonl tvm.json matmul --args 512,512,512
  ansor convert old.log new.log                        AutoTVM 0.1 becomes 0.2, auto-scheduler v0.1 becomes v0.6

Formats are recognised from the lines, which are parsed and never executed. Lines that cannot be converted are left out, with a reason. OUT is written
in one step; if it already exists in the same format, the records are appended."""

RECORD_HELP = """\
List, filter or split a log of TVM's auto-scheduler or of AutoTVM, or a record file.

  ansor record --mode read -i tvm.json                 list the first records
  ansor record --mode pick -i tvm.json -o best.json    keep the best of every workload and target; distill is the same
  ansor record --mode split -i tvm.json                write one file for each workload: tvm.json.000.wkl"""


def add(commands: Commands) -> None:
    """Add the commands to `ansor`."""
    _add_convert(commands)
    _add_record(commands)


def _convert(given: argparse.Namespace) -> int:
    from ansor.compat.commands.convert import run_convert

    return run_convert(given)


def _record(given: argparse.Namespace) -> int:
    from ansor.compat.commands.record import run_record

    return run_record(given)


def _add_convert(commands: Commands) -> None:
    parser = command(commands, "convert", CONVERT_HELP)
    parser.set_defaults(run=_convert)
    parser.add_argument("input", metavar="IN", help="a log or a record file")
    parser.add_argument("output", metavar="OUT", help="the file to write")
    parser.add_argument("subject", nargs="?", metavar="NAME|FILE.py[:function]", help="the network or operator recorded (default: the built-in operators)")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of the operator, which the file has to hold records of")
    parser.add_argument("--to", choices=LOG_KINDS, help="the format of OUT (default: its own if it exists; otherwise records for a log, and a log for records)")
    parser.add_argument("--here", action="store_true", help="logged times are from this machine and its compiler, so that `ansor tune` continues from them")
    parser.add_argument("--json", action="store_true", help="print what was written and what was left out, as JSON")


def _add_record(commands: Commands) -> None:
    parser = command(commands, "record", RECORD_HELP)
    parser.set_defaults(run=_record)
    parser.add_argument("--mode", choices=("read", "pick", "split", "distill"), default="read", help="what to do (default %(default)s)")
    parser.add_argument("-i", "--i", dest="input", metavar="FILE", required=True, help="a log or a record file")
    parser.add_argument("-o", "--o", dest="output", metavar="FILE", help="pick: where to write the best (default: FILE.best.json, .best.log or .best.jsonl)")
    parser.add_argument("--begin", type=natural, default=0, metavar="N", help="read: the first record (default 0)")
    parser.add_argument("--end", type=natural, default=5, metavar="N", help="read: the record to stop before (default 5)")
    parser.add_argument("--ir", action="store_true", help="read: also print the loops of each AutoTVM configuration")
    parser.add_argument("--code", action="store_true", help="read: also print the C code of each AutoTVM configuration")
    parser.add_argument("--templates", metavar="FILE.py", help="with --ir, --code: the file that registers the log's templates")
