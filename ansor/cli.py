"""The command `ansor`, including the commands that packages add. Each `--help` has examples; each error is one sentence."""

from __future__ import annotations

import argparse
import io
import re
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TextIO

import ansor
from ansor import __version__
from ansor.commands.completion import SHELLS, PrintCompletion
from ansor.commands.parsers import (
    Commands,
    DevicesOption,
    Parser,
    TargetOption,
    arguments,
    command,
    minutes,
    natural,
    part,
    percent,
    positive,
    rate,
    size,
    trials,
)
from ansor.errors import AnsorError, AnsorWarning
from ansor.support import settings
from ansor.support.notices import log
from ansor.support.shortage import sentence_of
from ansor.support.termination import Terminated, termination
from ansor.support.text import clip

MODULES = {"devices": "targets"}
"""Commands whose functions are in the module of another command."""

TUNE_HELP = """\
Tune an operator or a network for this machine, show the result, and compare a network with PyTorch.

  ansor tune resnet18                                  a built-in network (PyTorch module)
  ansor tune matmul --args 512,512,512                 a built-in operator
  ansor tune examples/resnet18.py                      a file with model() and example_inputs()
  ansor tune my_ops.py:conv --args 1,64,56             a function in a file that returns tensors
  ansor tune model.onnx                                a float ONNX file
  ansor tune model.onnx --target 'micro -board=mps2-an386' --output build --run    an int8 ONNX file, as firmware
  ansor tune matmul --target 'micro -board=A' --devices D,E --target 'micro -board=B' --devices F    an operator for two kinds of boards, in one run

A file is run as `python FILE.py` would run it, and may print. A budget is --trials N, --minutes N or both; the first to run out ends the run. With
--minutes alone a run ends early when the remaining time is expected to save less than 1 % (--min-gain). The round in progress may end a little later.
Building the kernels and comparing a network with PyTorch take some more time.

Trials are kept in a record file; run the same command again to continue. Ctrl-C ends the run early with the best program so far."""

COMPILE_HELP = """\
Build without measuring: from recorded programs where the record file has them, and from the model's picks elsewhere.

  ansor compile resnet18 --records resnet18.jsonl --output build/resnet18
  ansor compile resnet18 --export build/resnet18_c --isas native      C that needs no Python, with the records of this machine; an operator, too
  ansor compile resnet18 --export build/resnet18_x86                  for several instruction sets of x86-64, chosen at run time

An int8 network becomes C with one arena and a self-test. For a board it also becomes firmware.elf, which --run starts in the board's simulator:

  ansor compile model.onnx --target 'micro -board=mps2-an386' --output build/model --run
  ansor compile resnet8 --int8 --target 'cpu -threads=1' --output build/resnet8"""

BENCH_HELP = """\
Time a network alternately with PyTorch eager, PyTorch Inductor and ONNX Runtime, and show where its time goes: each group of operators and its limit.

  ansor bench resnet18 --threads 1                     no tuning; records are used where the file has them
  ansor bench model.onnx --trials 400                  tune first; run the same command again to continue
  ansor bench net.py --records net.jsonl --json

Libraries that are not installed or cannot run the model are named. A group's limit is a roofline, from the peak and bandwidth that `ansor doctor` measures."""

SHOW_HELP = """\
Show what a record file holds: for each workload the trials, the best latency and the failures by kind. With a name or file, show its best program as loops.

  ansor show resnet18.jsonl
  ansor show matmul.jsonl matmul --args 512,512,512
  ansor show matmul.jsonl matmul --args 512,512,512 --passes    how it was lowered and turned into C"""

COMPARE_HELP = """\
Compare two record files: for each workload in both, the two best programs and the speedup of the second file's.

  ansor compare before.jsonl after.jsonl
  ansor compare before.jsonl after.jsonl --json"""

EXPLAIN_HELP = """\
Explain why the best recorded program of a workload is fast: its schedule in words, tiles and caches, the estimate and the measured time, and the runners-up.

  ansor explain matmul.jsonl matmul --args 512,512,512
  ansor explain resnet18.jsonl resnet18 --all          every kernel of a network, the slowest first

Nothing is measured. Without a name, the workload is looked up among the built-in operators with default sizes."""

COVERAGE_HELP = """\
Show how much of a network a record file covers: for each task whether its program is tuned or picked by the model, and its share of the estimated time.

  ansor coverage resnet18.jsonl resnet18
  ansor coverage old.jsonl net.py --threads 1 --json

Nothing is measured. Near misses are named: records for another target, processor or compiler, and records of the same operator in another shape."""

PACK_HELP = """\
Put the best programs of a network for a processor into one file: create it from records, show it, and import it on another machine.

  ansor pack create resnet18.jsonl --of resnet18 -o resnet18.pack
  ansor pack show resnet18.pack
  ansor pack import resnet18.pack                      how much slower its programs are expected to be here; nothing is measured
  ansor pack import resnet18.pack --measure 2 -o resnet18.jsonl    measure the best two of each task again; `ansor compile` uses them"""

REPORT_HELP = """\
Turn record files into one HTML page that opens from disk: tuning curves, failures, each task's share of the time, a roofline, the best programs.

  ansor report matmul.jsonl -o matmul.html
  ansor report resnet18.jsonl --of resnet18 -o resnet18.html    a network: how often it uses each task, and the programs
  ansor report today.jsonl --against yesterday.jsonl            two runs side by side
  ansor report resnet18.jsonl --refresh 30                      rewritten while `ansor tune` runs, until Ctrl-C

Built-in operators are recognised. Name anything else with --of; otherwise its programs are not shown."""

DATASET_HELP = """\
Collect measured programs of several hundred operators, and train cost models on them.

  ansor dataset collect DIR --threads 1                measure; run the same command again to continue
  ansor dataset collect DIR --threads 1 --part 1/2     half of the tasks, so that two such runs can share a machine with two cores
  ansor dataset collect DIR2 --threads 1 --search tuning    programs that tuning would pick, which show where the model is wrong
  ansor dataset train DIR DIR2 --threads 1 --output m.gz    a model that ranks programs before anything is measured
  ansor dataset eval DIR --threads 1 --split kind      how well such models rank kinds of operators that they have not seen"""

AGENT_HELP = """\
The agent is a small program that runs candidates on a board for `--devices`. The board only needs Linux.

  ansor agent push pi@board                            build it for that board and copy it there by ssh; then --devices ssh://pi@board
  ansor agent build aarch64 --output agent             only build it, for aarch64, armv7, riscv64 or x86-64
  ansor agent serve --listen 127.0.0.1:9190            run one on this machine, for peers that know its key; --devices agent://127.0.0.1:9190"""

MICRO_HELP = """\
List boards without an operating system, and probe the board at the other end of a wire.

  ansor micro boards                                   all boards, and what is missing on this machine to run their programs
  ansor micro probe gdb://localhost:3333 --board stm32f746g-disco    open a wire, test some RAM, and report how fast the wire is and how much RAM there is"""

DOCTOR_HELP = "Check this machine in seconds: C compiler, threads, timer noise, peak arithmetic and memory bandwidth, cost model library."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0 for success, 1 after an error message, 130 after Ctrl-C, 143 after SIGTERM."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # on a terminal without Unicode, file names are escaped, as on stderr
    parser = _parser()
    given, left = parser.parse_known_args(arguments)
    if left:
        _parser_of(parser, given).error(_unrecognized(left, given))
    if given.command is None:
        parser.print_help()
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", AnsorWarning)
        warnings.showwarning = _show_warning
        try:
            with termination():
                return _run(given)
        except Terminated:
            return 128 + signal.SIGTERM
        except KeyboardInterrupt as stopped:
            print(f"ansor: stopped by Ctrl-C{f' {stopped}' if str(stopped) else ''}", file=sys.stderr)
            return 130
        except BrokenPipeError:
            return 0
        except Exception as error:  # report any error as one sentence
            if settings.shows_tracebacks():
                raise
            log.debug("the command failed", exc_info=True)
            print(f"ansor: {_sentence(error)}", file=sys.stderr)
            return 1


def _sentence(error: Exception) -> str:
    """The error on one line."""
    if isinstance(error, AnsorError):
        return str(error)
    short = sentence_of(error)
    if short is not None:
        return short
    if isinstance(error, OSError):  # no permission, no such folder: the system's own message names the file
        return str(error)
    text = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}{f': {clip(text, 500)}' if text else ''}; set ANSOR_TRACEBACK=1 to see where it comes from"


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """Print a warning on one line, without the source line that Python adds. Warnings of other packages keep their file and line number."""
    place = "" if issubclass(category, AnsorWarning) else f" ({category.__name__}, {filename}, line {lineno})"
    print(f"ansor: warning: {message}{place}", file=file or sys.stderr)


def _unrecognized(left: Sequence[str], given: argparse.Namespace) -> str:
    if getattr(given, "args", ()) and all(re.fullmatch(r"[+-]?\d+", word) for word in left):
        sizes = ",".join(map(str, [*given.args, *left]))
        return f"unrecognized arguments: {' '.join(left)}; separate the sizes of an operator with commas: --args {sizes}"
    if given.command == "bench" and "--args" in left:
        return f"unrecognized arguments: {' '.join(left)}; bench times networks, for an operator use `ansor tune` and `ansor explain`"
    close = [get_close_matches(word, [f"--{name.replace('_', '-')}" for name in vars(given)], 1) for word in left if word.startswith("--")]
    hint = "".join(f"; did you mean {found[0]}?" for found in close[:1] if found)
    return f"unrecognized arguments: {' '.join(left)}{hint}"


def _parser_of(parser: argparse.ArgumentParser, given: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the command that was given, or of its action, whose usage an error shows."""
    for action in parser._actions:
        chosen = getattr(given, action.dest, None)
        if isinstance(action.choices, Mapping) and chosen in action.choices:
            return _parser_of(action.choices[chosen], given)
    return parser


def _run(given: argparse.Namespace) -> int:
    # A command is imported when it runs, so that `ansor --help` does not wait for NumPy or PyTorch.
    if "run" in given:
        return int(given.run(given))
    module = import_module(f"ansor.commands.{MODULES.get(given.command, given.command)}")
    return int(getattr(module, f"run_{given.command}")(given))


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(prog="ansor", description="Declare what to compute; a search finds how, and returns fast C.")
    parser.add_argument("--version", action="version", version=f"ansor {__version__}")
    parser.add_argument("--print-completion", choices=SHELLS, action=PrintCompletion, help="print a script that completes commands in that shell")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_tune(commands)
    _add_compile(commands)
    _add_bench(commands)
    _add_show(commands)
    _add_compare(commands)
    _add_explain(commands)
    _add_coverage(commands)
    _add_pack(commands)
    _add_report(commands)
    _add_dataset(commands)
    targets = command(commands, "targets", "List what programs can be generated for.")
    targets.add_argument("kind", nargs="?", metavar="KIND", help="explain the options of this kind")
    _add_json(targets)
    _add_json(command(commands, "devices", "List what programs can be measured on, and what is missing here."))
    _add_agent(commands)
    _add_micro(commands)
    _add_doctor(commands)
    for package in _packages_with_commands():
        import_module(f"{package}.command_line").add(commands)
    return parser


def _packages_with_commands() -> list[str]:
    """Subpackages that add commands: each has a module `command_line`, whose function `add` takes the parser of commands."""
    return [f"ansor.{file.parent.name}" for folder in ansor.__path__ for file in sorted(Path(folder).glob("*/command_line.py"))]


def _add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subject", metavar="NAME|FILE.py[:function]", help="a built-in network or operator, or a Python file")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator (default: its own)")


def _add_target(parser: argparse.ArgumentParser, reads: bool = False, action: type[argparse.Action] | None = None) -> None:
    """reads: the command takes the target from a record file if none is given. action: the argparse action of a command that takes several targets."""
    default = "the records' target if they all have the same one, else cpu with all cores" if reads else "cpu with all cores"
    several = "; may be repeated" if action else ""
    parser.add_argument("--target", action=action or "store", help=f"such as 'cpu -threads=1' or 'cpu -mcpu=znver3' (default: {default}){several}")
    parser.add_argument("--threads", type=positive, help="the same as -threads=N in --target")
    parser.add_argument("--cc", default="", help="C compiler command (default: $CC, else the embedded ziglang)")


def _add_tune(commands: Commands) -> None:
    parser = command(commands, "tune", TUNE_HELP)
    _add_subject(parser)
    _add_target(parser, action=TargetOption)
    parser.add_argument("--trials", type=trials, help="programs to measure (default without --minutes: 128 per target for an operator, 400 for a network)")
    parser.add_argument("--minutes", type=rate, metavar="N", help="wall time of tuning, such as 10 or 0.5")
    parser.add_argument("--min-gain", type=percent, metavar="PERCENT",
                        help="end when the rest of the budget is expected to save less than this (default: 1 with --minutes alone, else 0: never)")
    parser.add_argument("--records", metavar="FILE", help="record file for the trials (default: NAME.jsonl in this folder; FILE.jsonl for FILE.py)")
    parser.add_argument("--devices", metavar="NAME,...", action=DevicesOption,
                        help="devices to measure on, for the --target before this option (default: the target's own; `ansor devices` lists them)")
    parser.add_argument("--seed", type=natural, default=0, help="seed of the search (default 0)")
    parser.add_argument("--early-stop", type=positive, metavar="N", help="stop the search of an operator after N trials without a better program")
    parser.add_argument("--output", metavar="DIR", help="save kernels and C sources there")
    _add_model(parser)
    parser.add_argument("--no-library", action="store_true", help="run our kernels even where PyTorch's own are faster (networks)")
    parser.add_argument("--no-compare", action="store_true", help="do not compare a network with PyTorch at the end")
    _add_int8(parser)


def _add_compile(commands: Commands) -> None:
    parser = command(commands, "compile", COMPILE_HELP)
    _add_subject(parser)
    _add_target(parser, reads=True)
    parser.add_argument("--records", metavar="FILE",
                        help="record file of an earlier `ansor tune` (default: NAME.jsonl; a network keeps there which of PyTorch's kernels are faster)")
    parser.add_argument("--output", metavar="DIR", help="save kernels and C sources there")
    parser.add_argument("--export", metavar="DIR", help="only write C there that needs no Python: a network for several instruction sets, or an operator")
    parser.add_argument("--constants", metavar="FILE.npz", help="values of an operator's constants, by name, for --export")
    parser.add_argument("--isas", metavar="NAME,...",
                        help="instruction sets of an exported network besides C99 (default: x86-64-v3,x86-64-v4; --threads: 1); "
                             "native: only this machine's processor, with its records, as with --target")
    _add_model(parser)
    parser.add_argument("--no-library", action="store_true", help="run our kernels even where PyTorch's own are faster (networks)")
    parser.add_argument("--no-compare", action="store_true", help="do not compare a network with PyTorch at the end")
    _add_int8(parser)


def _add_bench(commands: Commands) -> None:
    parser = command(commands, "bench", BENCH_HELP)
    parser.add_argument("subject", metavar="NAME|FILE.py[:function]", help="a built-in network, a Python file with a model, or a float ONNX file")
    _add_target(parser, reads=True)
    parser.add_argument("--trials", type=positive, help="programs to measure first (default: none)")
    parser.add_argument("--minutes", type=rate, metavar="N", help="wall time to tune first (default: none)")
    parser.add_argument("--records", metavar="FILE", help="record file for the trials (default: NAME.jsonl in this folder; FILE.jsonl for FILE.py)")
    parser.add_argument("--seed", type=natural, default=0, help="seed of the search (default 0)")
    parser.add_argument("--turns", type=positive, default=30, help="timed turns of each runtime (default %(default)s)")
    parser.add_argument("--no-library", action="store_true", help="run our kernels even where PyTorch's own are faster")
    _add_json(parser)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=("package",), help="choose programs with the package's model, even if a model was fitted to this machine")


def _add_int8(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--int8", action="store_true", help="quantise a PyTorch network to 8-bit integers, calibrated by its calibration() or example_inputs()")
    parser.add_argument("--arena", type=size, default=0, metavar="BYTES",
                        help="RAM for the arena of an int8 network, such as 256K; more lets its kernels use faster algorithms (default: what tensors need)")
    parser.add_argument("--run", dest="selftest", action="store_true",
                        help="run the self-test of an int8 network: on this machine, in the simulator of the board, or on the board")
    parser.add_argument("--on", metavar="WIRE",
                        help="the wire to the board for --run, such as gdb://localhost:3333 (default: a simulator, or the wire in the board's file)")


def _add_compare(commands: Commands) -> None:
    parser = command(commands, "compare", COMPARE_HELP)
    parser.add_argument("first", metavar="A", help="a record file")
    parser.add_argument("second", metavar="B", help="another record file")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON; other messages go to stderr")


def _add_show(commands: Commands) -> None:
    parser = command(commands, "show", SHOW_HELP)
    parser.add_argument("records", metavar="RECORDS", help="a record file")
    parser.add_argument("subject", nargs="?", metavar="NAME|FILE.py[:function]", help="show the best program of this")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--source", action="store_true", help="show C instead of loops")
    form.add_argument("--passes", action="store_true", help="show the program after every pass, from its schedule to C, instead of loops")
    _add_target(parser, reads=True)
    _add_json(parser)


def _add_explain(commands: Commands) -> None:
    parser = command(commands, "explain", EXPLAIN_HELP)
    parser.add_argument("records", metavar="RECORDS", help="a record file")
    parser.add_argument("subject", nargs="?", metavar="NAME|FILE.py[:function]", help="the operator or network to explain")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator")
    parser.add_argument("--all", action="store_true", help="explain every kernel of a network, not only the slowest")
    parser.add_argument("--peak", type=rate, metavar="GFLOP/s", help="the target's peak to compare with, as measured by `ansor doctor`")
    parser.add_argument("--bandwidth", type=rate, metavar="GB/s", help="the bandwidth of the memory to compare with, as measured by `ansor doctor`")
    _add_target(parser, reads=True)
    _add_json(parser)


def _add_coverage(commands: Commands) -> None:
    parser = command(commands, "coverage", COVERAGE_HELP)
    parser.add_argument("records", metavar="RECORDS", help="a record file; the order NAME RECORDS works as well")
    parser.add_argument("subject", metavar="NAME|FILE.py[:function]", help="a network, or an operator")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator")
    _add_target(parser, reads=True)
    _add_json(parser)


def _add_pack(commands: Commands) -> None:
    actions = command(commands, "pack", PACK_HELP).add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = command(actions, "create", "Write the best programs of record files to one file.")
    parser.add_argument("records", nargs="+", metavar="RECORDS", help="record files")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write the pack")
    _add_packed(parser, "what to pack (default: every workload of the files)")
    parser.add_argument("--best", type=positive, default=3, metavar="N", help="programs of each task (default %(default)s, at most 64)")
    parser = command(actions, "show", "Show what a pack holds, and where it was measured.")
    parser.add_argument("pack", metavar="FILE", help="a pack")
    _add_json(parser)
    parser = command(actions, "import", "Estimate how much slower the programs of a pack are here, and measure a few again if asked.")
    parser.add_argument("pack", metavar="FILE", help="a pack")
    _add_packed(parser, "what was packed (default: the built-in network or operators that it names)")
    parser.add_argument("--measure", type=natural, default=0, metavar="N", help="measure the best N programs of each task again (default 0)")
    parser.add_argument("-o", "--records", metavar="RECORDS", help="a record file to add measurements to, or the pack's times if they are valid here")
    _add_json(parser)


def _add_packed(parser: argparse.ArgumentParser, of: str) -> None:
    parser.add_argument("--of", default="", metavar="NAME|FILE.py[:function]", help=of)
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator")
    _add_target(parser, reads=True)


def _add_report(commands: Commands) -> None:
    parser = command(commands, "report", REPORT_HELP)
    parser.add_argument("records", nargs="+", metavar="RECORDS", help="record files; several files are one run, in this order")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="where to write the page (default %(default)s)")
    parser.add_argument("--of", default="", metavar="NAME|FILE.py[:function]", help="what the records are of: a network, an operator, or a Python file")
    parser.add_argument("--args", type=arguments, default=(), metavar="N,N,...", help="sizes of an operator")
    parser.add_argument("--against", metavar="RECORDS", help="the records of another run to compare with")
    parser.add_argument("--peak", type=rate, metavar="GFLOP/s", help="with --bandwidth: the roofline, as `ansor doctor` measured it (default: measured here)")
    parser.add_argument("--bandwidth", type=rate, metavar="GB/s", help="memory bandwidth, with --peak")
    parser.add_argument("--refresh", type=positive, default=0, metavar="SECONDS", help="rewrite the page this often, and make the browser reload it")
    _add_target(parser, reads=True)


def _add_dataset(commands: Commands) -> None:
    actions = command(commands, "dataset", DATASET_HELP).add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = command(actions, "collect", "Measure programs of every task of the data set into DIR, one record file for each task.")
    parser.add_argument("folder", metavar="DIR", help="the folder of the record files")
    _add_target(parser)
    parser.add_argument("--trials", type=positive, default=96, help="programs of each task (default %(default)s)")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="K/N", help="only every N-th task, from the K-th on")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="only these kinds of operators")
    parser.add_argument("--search", choices=("mixed", "tuning", "algorithms"), default="mixed",
                        help="how to choose programs. mixed (default): half of them at random. tuning: as tuning does, which shows where the package's "
                        "model is wrong, and without the fifth of the tasks that training holds out. algorithms: like tuning, but of all tasks, and with "
                        "as many programs of each algorithm")
    parser.add_argument("--seed", type=natural, default=0, help="seed of the search (default 0)")
    parser = command(actions, "train", "Train a cost model on the records in one or more folders.")
    parser.add_argument("folders", metavar="DIR", nargs="+", help="folders of `ansor dataset collect`; programs in different folders are not compared")
    _add_target(parser)
    _add_beside(parser)
    parser.add_argument("--keep", action="append", default=[], metavar="TARGET",
                        help="a target without records, for which the model learns the predictions of the package's model; may be repeated")
    parser.add_argument("--begin", metavar="FILE", help="train this model, or the 'package' model, further; otherwise from random weights")
    parser.add_argument("--output", metavar="FILE", required=True, help="where to save the model; compressed if the name ends in .gz")
    parser.add_argument("--all", action="store_true", help="learn from all tasks; otherwise a fifth is held out, and the model is evaluated on it")
    parser.add_argument("--without", nargs="+", default=[], metavar="KIND", help="hold out these kinds of operators as well")
    parser = command(actions, "eval", "Report how well models rank the programs of tasks that they have not seen: each task is held out once.")
    parser.add_argument("folders", metavar="DIR", nargs="+", help="folders of `ansor dataset collect`; programs in different folders are not compared")
    _add_target(parser)
    _add_beside(parser)
    parser.add_argument("--split", choices=("task", "kind", "network"), help="what to hold out at a time (default: task)")
    parser.add_argument("--model", metavar="FILE", help="do not train: evaluate this model, or the 'package' model, on the fifth that training holds out")


def _add_beside(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beside", action="append", default=[], metavar="TARGET", help="another target that DIR has records for; may be repeated")


def _add_agent(commands: Commands) -> None:
    actions = command(commands, "agent", AGENT_HELP).add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = command(actions, "build", "Build the agent.")
    parser.add_argument("system", nargs="?", default="", metavar="PROCESSOR", help="aarch64, armv7, riscv64 or x86-64 (default: this machine's)")
    parser.add_argument("--output", metavar="FILE", default="agent", help="where to write it (default %(default)s)")
    parser = command(actions, "push", "Build the agent for a board, and copy it there by ssh.")
    parser.add_argument("host", metavar="[USER@]HOST[:PORT]", help="the board, as ssh names it; ssh has to work without a password")
    parser.add_argument("--system", default="", metavar="PROCESSOR", help="the board's processor (default: what `uname -m` says there)")
    parser.add_argument("--path", default="", metavar="PATH", help="where to put it on the board (default: .ansor/agent)")
    parser = command(actions, "serve", "Run an agent on this machine, for peers that know its key.")
    parser.add_argument("--listen", default="127.0.0.1:9190", metavar="HOST:PORT", help="the address to listen on (default %(default)s: this machine only)")
    parser.add_argument("--key", default="", metavar="FILE", help="its key, created if missing (default: $ANSOR_AGENT_KEY, else ~/.config/ansor/agent.key)")
    parser.add_argument("--with", dest="before", default="", metavar="COMMAND", help="a command that runs every program, such as an emulator")
    parser.add_argument("--store", default="", metavar="DIR", help="the folder for its files; agents that share a folder run one program at a time")
    parser.add_argument("--space", type=positive, metavar="MB", help="limit on the total size of its files (default 256)")
    parser.add_argument("--wait", type=positive, metavar="SECONDS", help="how long a program waits for the one before it (default 60)")


def _add_micro(commands: Commands) -> None:
    actions = command(commands, "micro", MICRO_HELP).add_subparsers(dest="action", metavar="ACTION", required=True)
    command(actions, "boards", "List the boards of the package.")
    parser = command(actions, "probe", "Open a wire, report what it can do, test memory, and report how fast the wire is and how much memory there is.")
    parser.add_argument("url", metavar="WIRE", help="such as gdb://localhost:3333, serial:/dev/ttyUSB0 or bitbang://localhost:9824")
    parser.add_argument("--board", default="", metavar="NAME", help="test the first 4 KiB of this board's RAM, and compare memory sizes with its file")
    parser.add_argument("--memory", default="", metavar="ADDRESS:BYTES", help="test this range; its contents are restored afterwards")


def _add_doctor(commands: Commands) -> None:
    parser = command(commands, "doctor", DOCTOR_HELP)
    _add_target(parser)
    _add_json(parser)
    parser.add_argument("--learn", type=minutes, metavar="MINUTES",
                        help="measure programs for this long, and fit the cost model to this machine; if it beats the package's, it is used from then on. "
                             "Run the same command again to continue; 0 removes the model")
