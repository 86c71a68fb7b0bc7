"""Runs TVM 0.9's own tutorials, how-tos and tests with `import tvm` redirected to `ansor.compat.tvm`, and says which of them work.

    git clone --branch v0.9.0 --depth 1 https://github.com/apache/tvm       # theirs, in a folder of yours
    python benchmarks/tvm_files.py tvm --markdown

Each file runs in a child process, unchanged except for

- imports: `tvm` is `ansor.compat.tvm` (see ansor/compat/tvm/alias.py);
- trial counts of scripts: numbers given as `num_measure_trials`, `n_trial` or `num_measures_per_round` are at most `--trials` (8);
- NumPy, for tests only: names that NumPy has removed since TVM 0.9 are restored (`old_numpy.py`);
- test support, for tests only: `tvm.testing.*` and `tvm.topi.testing` come from the checkout if we do not have them.

The random numbers of a test start from seed 0, so that runs can be compared.

A script *runs*, *stops* with an error that says what to use instead, or *fails*. A test passes, fails, or stops in the same way.
Tests may import `tvm.relay`, which raises an error when it is used. They are skipped by TVM's own marks (other devices, a missing package), and
if a parameter is a half-precision dtype. Tests of a file that cannot be imported count as failed, one for each test function.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TUTORIAL, HOW_TO, UNIT, TOPI = "gallery/tutorial", "gallery/how_to", "tests/python/unittest", "tests/python/topi/python"
SCRIPTS = (
    f"{TUTORIAL}/auto_scheduler_matmul_x86.py", f"{TUTORIAL}/autotvm_matmul_x86.py", f"{HOW_TO}/optimize_operators/opt_gemm.py",
    f"{TUTORIAL}/tensor_expr_get_started.py", f"{TUTORIAL}/intro_topi.py", f"{TUTORIAL}/autotvm_relay_x86.py",
    *(f"{HOW_TO}/work_with_schedules/{name}.py"
      for name in ("schedule_primitives", "reduction", "tuple_inputs", "scan", "tensorize", "tedd", "extern_op", "intrin_math")),
    f"{HOW_TO}/tune_with_autoscheduler/tune_sparse_x86.py", f"{HOW_TO}/tune_with_autoscheduler/tune_network_x86.py",
    f"{HOW_TO}/tune_with_autotvm/tune_relay_x86.py",
)  # fmt: skip
"""The gallery's scripts for processors."""

OPERATORS = ("softmax", "reduce", "matmul", "pooling", "clip", "transform", "broadcast", "math", "relu")
TESTS = (f"{UNIT}/test_auto_scheduler_*.py", f"{UNIT}/test_autotvm_*.py", *(f"{TOPI}/test_topi_{name}.py" for name in OPERATORS))


@dataclass(frozen=True)
class Case:
    """One script, or one test. outcome: runs, stops or fails; passed, failed or skipped."""

    name: str
    outcome: str
    error: str = ""


@dataclass(frozen=True)
class Row:
    """A file, by its path in the checkout, and its outcomes."""

    file: str
    cases: tuple[Case, ...]

    def count(self, outcome: str) -> int:
        """How many cases had this outcome."""
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def first_error(self) -> str:
        """The first error of a case with a wrong outcome, or ""."""
        return next((case.error for case in self.cases if case.outcome in ("fails", "failed", "stops")), "")


@dataclass(frozen=True)
class Rules:
    """The limits of a run. seconds: for one script or test; file_seconds: for one file of tests; cases: of each test function, 0 for all."""

    trials: int = 8
    seconds: int = 300
    file_seconds: int = 1800
    cases: int = 0


def chosen(checkout: Path, only: Sequence[str]) -> list[str]:
    """The files of SCRIPTS and TESTS in a checkout whose paths contain one of `only`, and all files that match one of `only` as a pattern."""
    known = [*SCRIPTS, *TESTS]
    found = [str(path.relative_to(checkout)) for pattern in known for path in sorted(checkout.glob(pattern))]
    if not only:
        return found
    asked = [file for file in found if any(word in file for word in only)]
    others = [str(path.relative_to(checkout)) for word in only if "/" in word for path in sorted(checkout.glob(word))]
    return list(dict.fromkeys([*asked, *others]))


def run(checkout: Path, file: str, rules: Rules) -> Row:
    """Run one file in a child process, in a temporary folder."""
    path, is_script = checkout / file, file.startswith("gallery")
    with tempfile.TemporaryDirectory(prefix="tvm-files-", ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.jsonl"
        report.touch()
        text = _child(_script(path, report, rules) if is_script else _tests(checkout, path, report, rules), folder, rules, is_script)
        cases = [Case(**json.loads(line)) for line in report.read_text().splitlines()]
    if is_script:
        return Row(file, tuple(cases or [Case("", "fails", text)]))
    return Row(file, (*cases, *_not_run(path, cases, text)))


def _script(path: Path, report: Path, rules: Rules) -> list[str]:
    return [sys.executable, str(HERE / "tvm_child.py"), str(path), str(report), str(rules.trials)]


def _tests(checkout: Path, path: Path, report: Path, rules: Rules) -> list[str]:
    options = [f"--checkout={checkout}", f"--report={report}", f"--cases={rules.cases}", f"--seconds={rules.seconds}"]
    plain = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={path.parent}"]
    return [sys.executable, "-m", "pytest", str(path), "-p", "tvm_child", *plain, *options]


def _child(command: list[str], folder: str, rules: Rules, is_script: bool) -> str:
    """Run a command until its time is up. Returns its last line with an error, or why it ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    limit = rules.seconds if is_script else rules.file_seconds
    with (
        open(Path(folder) / "output.txt", "w+") as output,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True) as child,
    ):
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return f"no end after {limit} s"
        output.seek(0)
        lines = [line.removeprefix("E  ").strip() for line in output if line.startswith(("E  ", "INTERNALERROR> ")) or "Error" in line]
    if child.returncode < 0:
        return f"ended by {signal.Signals(-child.returncode).name}"
    return lines[-1][:300] if lines else f"exit status {child.returncode}"


def _not_run(path: Path, cases: Sequence[Case], text: str) -> list[Case]:
    """A failed case for each test function that has no report, because the file could not be imported or its process died."""
    heard = {case.name.partition("[")[0] for case in cases}
    body = ast.parse(path.read_text()).body
    functions = [node for outer in body for node in (outer.body if isinstance(outer, ast.ClassDef) else [outer]) if isinstance(node, ast.FunctionDef)]
    names = dict.fromkeys(node.name for node in functions if node.name.startswith("test_"))
    return [Case(name, "failed", text) for name in names if name not in heard]


def group(file: str) -> str:
    """The group in which a file is counted."""
    if file.startswith("gallery"):
        return "scripts"
    return "topi" if "/topi/" in file else "auto_scheduler" if "test_auto_scheduler" in file else "autotvm"


def totals(rows: Sequence[Row]) -> list[str]:
    """A line for each group."""
    lines = []
    for name in dict.fromkeys(group(row.file) for row in rows):
        members = [row for row in rows if group(row.file) == name]
        outcomes = ("runs", "stops", "fails") if name == "scripts" else ("passed", "failed", "stops", "skipped")
        counts = {outcome: sum(row.count(outcome) for row in members) for outcome in outcomes}
        lines.append(f"{name}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}")
    return lines


def markdown(rows: Sequence[Row]) -> str:
    """Two tables: scripts, and tests."""
    scripts, tests = [row for row in rows if group(row.file) == "scripts"], [row for row in rows if group(row.file) != "scripts"]
    lines = []
    if scripts:
        lines += ["| script | | |", "|---|---|---|"]
        lines += [f"| {row.file.removeprefix('gallery/')} | {row.cases[0].outcome} | {_cell(row.first_error)} |" for row in scripts] + [""]
    if tests:
        lines += ["| tests | passed | failed | stops | skipped | first error |", "|---|---|---|---|---|---|"]
        for row in tests:
            numbers = " | ".join(str(row.count(outcome)) for outcome in ("passed", "failed", "stops", "skipped"))
            lines.append(f"| {Path(row.file).name} | {numbers} | {_cell(row.first_error)} |")
        lines.append("")
    return "\n".join([*lines, *(f"- {line}" for line in totals(rows))])


def _cell(text: str) -> str:
    return textwrap.shorten(text, 160, placeholder=" …").replace("|", "\\|")


def plain(row: Row, verbose: bool) -> str:
    """A file as text, with its first failed case, or with all of them if `verbose`."""
    counts = ", ".join(f"{row.count(outcome)} {outcome}" for outcome in dict.fromkeys(case.outcome for case in row.cases))
    failed = [f"    {case.name}: {case.outcome} {case.error}" for case in row.cases if case.outcome in ("fails", "failed", "stops")]
    return "\n".join([f"{row.file}: {counts or 'nothing'}", *(failed if verbose else failed[:1])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen files, and print their outcomes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="the folder of TVM's sources, tag v0.9.0")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="files whose paths contain one of these, or match one with a slash as a pattern")
    parser.add_argument("--trials", type=int, default=Rules.trials, help="limit on the trials of a script")
    parser.add_argument("--cases", type=int, default=Rules.cases, help="limit on the cases of each test function (0: all)")
    parser.add_argument("--seconds", type=int, default=Rules.seconds, help="time limit for one script, or one test")
    parser.add_argument("--file-seconds", type=int, default=Rules.file_seconds, help="time limit for one file of tests")
    parser.add_argument("--markdown", action="store_true", help="print tables at the end")
    parser.add_argument("--verbose", action="store_true", help="print every failure, not only the first of each file")
    asked = parser.parse_args(arguments)
    files = chosen(asked.checkout.resolve(), asked.only)
    if not files:
        parser.error(f"asked for files of TVM in {asked.checkout}, which has none of them; give the folder of TVM's sources, tag v0.9.0")
    rules = Rules(asked.trials, asked.seconds, asked.file_seconds, asked.cases)
    rows = []
    for file in files:
        rows.append(run(asked.checkout.resolve(), file, rules))
        print(plain(rows[-1], asked.verbose), flush=True)
    print("\n" + (markdown(rows) if asked.markdown else "\n".join(totals(rows))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
