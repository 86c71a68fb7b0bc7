"""Compares single operators with PyTorch eager, PyTorch Inductor and ONNX Runtime: tunes ours, then times all of them alternately in one process.

    python benchmarks/operators.py                                      # every row, 128 trials each, one thread
    python benchmarks/operators.py --only resnet matmul_512 --records build/records --trials 64
    python benchmarks/operators.py --only bert --rivals eager --results build/bert.jsonl
    python benchmarks/operators.py --table --plot docs/operators-1-thread.svg

Each finished row is a line in the results file. A row recorded with the same settings is not run again, so a stopped run continues where it left off.
`--table` runs nothing: it prints the newest row of each operator for the target.

All sides get the same tensors and threads. Weights of networks are known ahead of time, and passed as users of each library do: ours packs constants, Inductor
freezes them (`max-autotune`), ONNX Runtime has them as initialisers, PyTorch's functions take them in each call. Products of two matrices have no constants:
the timed call includes any packing. Each call makes a new result, except that ONNX Runtime, called through its IO binding, writes to the same one.
Ratios are taken turn by turn: median, and the range of the middle 80 %. `error` is the largest difference from a computation in double precision, relative to
its largest element; a side whose error is too large is shown as wrong and does not count. The peak is that of fp32 arithmetic, even for int8. Marks say what
the model in the package was trained on. `tuned in` is wall time from the declaration to the built kernel. Exits with 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import rivals
import torch
from common import add_target, console, in_one_thread, machine_line, parser, peak_of, records_at, short, target_of
from kinds import Operator
from operator_sets import LEGEND
from report import problems, results_table, summary
from results import OURS, Cell, Result, Settings, append, done, load, newest
from rich.console import Console
from rivals import RIVALS, Failed, Ready
from suite import GROUPS, ROWS, Row, chosen

from ansor import api
from ansor.codegen.toolchain import processor_name
from ansor.dataset.known import known_to_model
from ansor.errors import AnsorError
from ansor.ir.dag import Dag
from ansor.measure.interleaved import Ratio, interleaved, ratio
from ansor.run.progress import ProgressView
from ansor.targets.base import Target

TOLERANCE = 1e-3  # naive sums of a million terms have such rounding errors
RESULTS = Path("build") / "operators.jsonl"
STOPPED = "stopped by Ctrl-C"


def ours(operator: Operator, target: Target, trials: int, records: Path | None, seed: int, out: Console) -> Ready | Failed:
    """Our tuned kernel, with constants bound."""
    begin = time.perf_counter()
    view = ProgressView(out)

    def said(text: str) -> None:
        view.say(text)
        if text.startswith(STOPPED):  # a row that was tuned less than the others does not count
            raise KeyboardInterrupt

    try:
        kernel = api.auto_schedule(operator.declare, target=str(target), trials=trials, records=records, seed=seed, report=said, progress=view)
    except AnsorError as error:
        return Failed(str(error))
    seconds = time.perf_counter() - begin
    kernel.bind_constants(operator.our_constants)
    inputs = tuple(operator.inputs.values())

    def call() -> torch.Tensor:
        result = kernel(*inputs)
        assert isinstance(result, torch.Tensor)
        return result

    return Ready(call, call, seconds)


WARM = 0.04
"""Seconds that a side with several threads runs before it is timed."""


def compared(row: Row, operator: Operator, sides: dict[str, Ready | Failed], settings: Settings, seconds: float, peak: float, warm: float = 0.0) -> Result:
    """Check all sides, and time them alternately for about this many seconds, each warmed up before its turn."""
    load_before = os.getloadavg()[0]
    exact = operator.reference().double()
    errors = {side: error_of(one, exact) for side, one in sides.items() if isinstance(one, Ready)}
    times = interleaved({side: one.call for side, one in sides.items() if isinstance(one, Ready)}, settings.turns, seconds, warm)
    cells = {}
    for side, one in sides.items():
        if isinstance(one, Failed):
            cells[side] = Cell(problem=f"failed: {one.reason}")
            continue
        against: Ratio | None = ratio(times[OURS], times[side]) if side != OURS and OURS in times else None
        cells[side] = Cell(times[side].median, against, errors[side], one.seconds, wrong(errors[side], row.fp32))
    turns = min((len(found.seconds) for found in times.values()), default=0)
    return Result(row.name, settings, Dag(operator.declare()).flop, peak, load_before, turns, cells)


def error_of(one: Ready, exact: torch.Tensor) -> float:
    """The largest difference over the largest element; infinite for another shape or values that are not finite."""
    found = one.result().double()
    if found.shape != exact.shape or not bool(torch.isfinite(found).all()):
        return float("inf")
    return float((found - exact).abs().max() / exact.abs().max())


def wrong(error: float, fp32: bool) -> str:
    """A message if an error exceeds rounding errors, or else ""; integers have none."""
    limit = TOLERANCE if fp32 else 0.0
    return f"WRONG: error {error:.1e}, more than {limit:.0e}" if error > limit else ""


def run_row(row: Row, settings: Settings, target: Target, given: argparse.Namespace, peak: float, out: Console) -> Result:
    """One row, from declaration to result."""
    operator = row.operator()
    with torch.no_grad():
        sides: dict[str, Ready | Failed] = {OURS: ours(operator, target, given.trials, records_at(given.records, row.name), given.seed, out)}
        sides |= {name: rivals.ready(name, operator, target.threads) for name in settings.rivals}
        return compared(row, operator, sides, settings, given.seconds, peak, WARM if target.threads > 1 else 0.0)


def run(rows: list[Row], settings: Settings, target: Target, given: argparse.Namespace, out: Console) -> None:
    """Run the rows that the results file lacks, and write each when it is finished."""
    finished = done(load(given.results), settings)
    missing = [row for row in rows if row.name not in finished]
    out.print(f"{len(rows)} rows, {len(rows) - len(missing)} of them in {given.results}; {given.trials} trials each, target {target}. {machine_line()}")
    if not missing:
        return
    peak = peak_of(target).gflops
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        rivals.start(target.threads, cache)
        for number, row in enumerate(missing, 1):
            begin = time.perf_counter()
            result = run_row(row, settings, target, given, peak, out)
            append(given.results, result)
            out.print(f"{number}/{len(missing)} {row.name}: {short(time.perf_counter() - begin)} ({_parts(result)}), {result.turns} turns")


def _parts(result: Result) -> str:
    return ", ".join(f"{'tuning' if side == OURS else side} {short(cell.setup)}" for side, cell in result.cells.items() if cell.setup)


def _options() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", metavar="NAME", default=[], choices=[*GROUPS, *(row.name for row in ROWS)],
                         help=f"rows and groups of rows ({', '.join(GROUPS)}; default: all)")  # fmt: skip
    options.add_argument("--list", action="store_true", help="print the names of the rows, run nothing")
    options.add_argument("--table", action="store_true", help="print what the results file has, run nothing")
    options.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the share of peak and the ratios to PyTorch eager")
    options.add_argument("--rivals", type=_names, default=tuple(RIVALS), metavar="NAMES", help=f"libraries, separated by commas (default: {','.join(RIVALS)})")
    options.add_argument("--trials", type=int, default=128, help="programs measured for each row (default: %(default)s)")
    options.add_argument("--turns", type=int, default=200, help="limit on the turns of a comparison (default: %(default)s)")
    options.add_argument("--seconds", type=float, default=8.0, help="approximate seconds of a row's comparison (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of the search (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to record files in this folder")
    options.add_argument("--results", type=Path, metavar="FILE", default=RESULTS, help="file of results (default: %(default)s)")
    add_target(options)
    return options.parse_args()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in RIVALS]:
        raise argparse.ArgumentTypeError(f"asked for {', '.join(unknown)}, which is not a supported library; use some of {', '.join(RIVALS)}")
    return names


def main() -> int:
    given = _options()
    out, target, rows = console(), target_of(given), chosen(given.only)
    if given.list:
        out.print("\n".join(f"{row.group:10} {row.name}" for row in rows))
        return 0
    settings = Settings(str(target), processor_name(), given.trials, given.seed, given.turns, given.rivals)
    if not given.table:
        if target.threads == 1:
            in_one_thread()
        try:
            run(rows, settings, target, given, out)
        except KeyboardInterrupt:
            out.print(f"stopped; finished rows are in {given.results}, and the same command continues from there")
            return 130
    results = newest(load(given.results), settings.target) if given.table else done(load(given.results), settings)
    if not results:
        out.print(f"asked for rows for target {target} in {given.results}, which has none; run without --table")
        return 1
    return shown(rows, results, given, target, out)


def shown(rows: list[Row], results: dict[str, Result], given: argparse.Namespace, target: Target, out: Console) -> int:
    """Print the table and summary, and plot; returns the exit status."""
    mine = [results[row.name] for row in rows if row.name in results]
    trials = sorted({result.settings.trials for result in mine})
    title = f"{target.threads} thread(s), {' or '.join(map(str, trials))} trials, peak {max((one.peak_gflops for one in mine), default=0):.0f} GFLOP/s"
    known = {row.name: known_to_model(row.operator().declare()) for row in rows if row.name in results}
    out.print(results_table(title, rows, results, given.rivals, known))
    out.print(f"{LEGEND}\nrows by what the model was trained on: {', '.join(f'{what} {count}' for what, count in Counter(known.values()).items())}")
    for problem in problems(mine):
        out.print(problem)
    lines = summary(rows, results, known)
    for line in lines:
        out.print(str(line))
    out.print(f"ratios above 1: ours is faster. {machine_line()}, torch {torch.__version__}")
    if given.plot is not None:
        from plot import draw

        draw(given.plot, rows, results, given.rivals, title)
        out.print(f"drawn: {given.plot}")
    return int(any(line.missed for line in lines))


if __name__ == "__main__":
    sys.exit(main())
