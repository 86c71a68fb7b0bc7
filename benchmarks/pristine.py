"""Measures operators of families that were never used in development: picked kernels compared with tuned ones, or few trials with many.

    python benchmarks/pristine.py                                            # picks compared with 200 trials: sixty operators
    python benchmarks/pristine.py --trials 64 --against 1000
    python benchmarks/pristine.py --target "cpu -mcpu=znver3" --threads 2    # AVX2, two threads
    python benchmarks/pristine.py --only min_plus chain --sizes 1            # only these families, in their first sizes
    python benchmarks/pristine.py --check                                    # times nothing: compares results of picks with the declaration; two minutes
    python benchmarks/pristine.py --table                                    # runs nothing: shows the results file

The operators are those of `pristine_operators.py`, two sizes of each family. Each is tuned twice, with different seeds, and the fastest programs of both runs
are timed alternately in one process, with constants bound. With `--trials 0` the first program is the model's pick (`trials=0`), which is verified first, as
measured programs always are. `share`: speed of the first program relative to the second, median and middle 80 % of the turns; marks: how much of the operator
the model was trained on nevertheless. Each finished row is written to the results file; a run with the same settings, commit and model continues where the last
one stopped. `--markdown` writes the table for a page of the docs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import provenance
from common import add_target, console, geomean, in_one_thread, inputs_of, machine_line, parser, records_at, short, side_by_side, table, target_of
from operator_sets import LEGEND, MARKS
from pristine_operators import FAMILIES, OPERATORS
from provenance import Measured

from ansor import api
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.dataset.known import PARTS, known_to_model
from ansor.ir.evaluate import evaluate
from ansor.measure.interleaved import Ratio
from ansor.run.choosing import chosen
from ansor.run.kernels import built
from ansor.run.states import Best
from ansor.run.zero_tuning import pick
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

RESULTS = Path("build") / "pristine.jsonl"
LONG_SEED = 1000
TOLERANCE = 1e-3
AIMS = {(0, 200): (0.90, 0.70), (64, 1000): (0.98, 0.0)}
"""The targets for the geometric mean and the minimum of the shares, by the trials of both programs."""


@dataclass(frozen=True)
class Settings:
    """The settings that a row depends on, besides its operator. Rows with other settings are different rows."""

    target: str
    trials: int
    against: int
    seed: int
    turns: int


@dataclass(frozen=True)
class Row:
    """A row of results. seconds: of a call of each program; took: seconds to find each; known: how much of the operator the model was trained on."""

    name: str
    settings: Settings
    measured: Measured
    known: str
    share: Ratio
    seconds: tuple[float, float]
    took: tuple[float, float]


def of_json(line: str) -> Row:
    """Reads `asdict` back."""
    fields = json.loads(line)
    parts = {"settings": Settings(**fields["settings"]), "measured": Measured(**fields["measured"]), "share": Ratio(**fields["share"])}
    return Row(**fields | parts | {"seconds": tuple(fields["seconds"]), "took": tuple(fields["took"])})


def load(path: Path) -> list[Row]:
    """Rows in a file, oldest first. An incomplete line from a stopped run is skipped."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [of_json(line) for line in lines if line.endswith("}")]


def append(path: Path, row: Row) -> None:
    """Add a row on a new line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and not path.read_text().endswith("\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if torn else "") + json.dumps(asdict(row)) + "\n")


def finished(rows: Sequence[Row], settings: Settings, measured: Measured) -> dict[str, Row]:
    """The newest row of each name with these settings, this commit, model and machine, from any day."""
    same = (measured.commit, measured.machine, measured.model)
    return {row.name: row for row in rows if row.settings == settings and (row.measured.commit, row.measured.machine, row.measured.model) == same}


def run(name: str, target: Target, settings: Settings, records: str | None) -> Row:
    """Find both programs, and time them alternately."""
    task = SearchTask(tensors=OPERATORS[name](), target=target, name=name)
    few, few_s = found(task, settings.trials, settings.seed, records_at(records, f"{name}-{settings.trials}-{settings.seed}"))
    many, many_s = found(task, settings.against, LONG_SEED + settings.seed, records_at(records, f"{name}-{settings.against}"))
    share, few_one, many_one = side_by_side(task, few, many, settings.turns)
    return Row(name, settings, provenance.here(), known_to_model(task.declared.tensors), share, (few_one, many_one), (few_s, many_s))


def error_of(task: SearchTask, program: Best) -> float:
    """Largest difference of a program's outputs from the declaration's, over the largest element; infinite for NaN."""
    values = inputs_of(task)
    (kernel,) = built([task], [program], CToolchain(find_compiler(task.target.compiler)))
    got = kernel(*(values[one.name] for one in kernel.arguments if one.role != "output"))
    wanted = evaluate(task.declared.outputs, values)
    outputs = got if isinstance(got, tuple | list) else (got,)
    errors = [float(np.abs(np.asarray(one, np.float64) - two).max() / max(np.abs(two).max(), 1e-30)) for one, two in zip(outputs, wanted, strict=True)]
    return max(error if math.isfinite(error) else math.inf for error in errors)


def proved(task: SearchTask, program: Best) -> Best:
    """The program, after checking its outputs. Raises RuntimeError if they are wrong."""
    error = error_of(task, program)
    if error > TOLERANCE:
        raise RuntimeError(f"asked for the pick of {task.name} for {task.target}, whose result is wrong: error {error:.1e}, more than {TOLERANCE:.0e}")
    return program


def check(names: Sequence[str], target: Target) -> None:
    """Check the picks for these operators."""
    for name in names:
        task = SearchTask(tensors=OPERATORS[name](), target=target, name=name)
        proved(task, pick(task).program)
        print(f"{name}: right", flush=True)


def found(task: SearchTask, trials: int, seed: int, records: Path | None) -> tuple[Best, float]:
    """The best program of this many trials, including those in `records`, or the pick if there are none; and the seconds that it took to find."""
    begin = time.perf_counter()
    if not trials:
        program = pick(task, seed=seed).program
        seconds = time.perf_counter() - begin
        return proved(task, program), seconds
    if records is not None:
        records.parent.mkdir(parents=True, exist_ok=True)
    state = api.tune_tasks([task], trials=trials, records=records, seed=seed)[0]
    return chosen(state, seed=seed), time.perf_counter() - begin


def titles(settings: Settings) -> tuple[str, str]:
    """The titles of the two programs."""
    return "picked" if not settings.trials else f"{settings.trials} trials", f"{settings.against} trials"


def summary(rows: Sequence[Row], settings: Settings) -> list[str]:
    """Geometric mean and minimum, compared with the targets; then those without operators whose every reduction the model was trained on."""
    shares = {row.name: row.share.median for row in rows}
    least, mean = min(shares, key=lambda name: shares[name]), geomean(list(shares.values()))
    asked = AIMS.get((settings.trials, settings.against))
    lines = [f"{len(rows)} operators: geometric mean {mean:.3f}, minimum {shares[least]:.2f} ({least})"]
    if asked is not None:
        lines[0] += f"; targets {asked[0]} and {asked[1]}: {'met' if mean >= asked[0] and shares[least] >= asked[1] else 'MISSED'}"
    unknown = [row.share.median for row in rows if row.known != PARTS]
    if unknown and len(unknown) < len(rows):
        lines.append(f"{len(unknown)} of them have reductions new to the model: geometric mean {geomean(unknown):.3f}, minimum {min(unknown):.2f}")
    return lines


def markdown(rows: Sequence[Row], settings: Settings) -> str:
    """The table, its summary, and where it was measured, for the docs."""
    first, second = titles(settings)
    lines = [f"| operator | {first}, ms | {second}, ms | share |", "|---|---|---|---|"]
    for row in rows:
        mark = "".join(f" {sign}" for sign in MARKS[row.known].split())
        lines.append(f"| `{row.name}`{mark} | {row.seconds[0] * 1e3:.4f} | {row.seconds[1] * 1e3:.4f} | {row.share} |")
    return "\n".join([*lines, "", *(f"{line[:1].upper()}{line[1:]}." for line in [*summary(rows, settings), *origins(rows)]), ""])


def origins(rows: Sequence[Row]) -> list[str]:
    """Where and when the rows were measured: one line, or several for rows of different days."""
    return sorted({str(row.measured) for row in rows})


def show(rows: Sequence[Row], settings: Settings) -> None:
    """Print the table and its summary."""
    out, (first, second) = console(), titles(settings)
    shown = table(f"{first} compared with {second}, {settings.target}", ["operator"], [f"{first}, ms", f"{second}, ms", "share", "found in", "found in"])
    for row in rows:
        times = (f"{seconds * 1e3:.4f}" for seconds in row.seconds)
        shown.add_row(f"{row.name}{MARKS[row.known]}", *times, str(row.share), *map(short, row.took))
    out.print(shown)
    for line in [LEGEND, *summary(rows, settings), *origins(rows)]:
        out.print(line)


def _options() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", metavar="NAME", choices=[*FAMILIES, *OPERATORS], help="operators, or families (default: all)")
    options.add_argument("--sizes", type=int, choices=(1, 2), default=2, help="number of sizes of each family (default: %(default)s)")
    options.add_argument("--trials", type=int, default=0, help="trials of the first program; 0: the model's pick (default: %(default)s)")
    options.add_argument("--against", type=int, default=200, metavar="TRIALS", help="trials of the second program (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of the searches (default: %(default)s)")
    options.add_argument("--turns", type=int, default=100, help="turns of each comparison (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to record files in this folder")
    options.add_argument("--results", type=Path, metavar="FILE", default=RESULTS, help="file of results (default: %(default)s)")
    options.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table for the docs")
    options.add_argument("--check", action="store_true", help="only verify the picks")
    options.add_argument("--table", action="store_true", help="print the results file, run nothing")
    add_target(options)
    return options.parse_args()


def names_of(given: argparse.Namespace) -> list[str]:
    """The chosen operators."""
    sized = [name for family in FAMILIES for name in [one for one in OPERATORS if one.startswith(f"{family}_")][: given.sizes]]
    return [name for name in sized if not given.only or name in given.only or any(name.startswith(f"{one}_") for one in given.only)]


def main() -> int:
    given = _options()
    in_one_thread()
    target, measured, names = target_of(given), provenance.here(), names_of(given)
    if given.check:
        check(names, target)
        return 0
    settings = Settings(str(target), given.trials, given.against, given.seed, given.turns)
    done = finished(load(given.results), settings, measured)
    missing = [] if given.table else [name for name in names if name not in done]
    print(f"{len(names)} operators, {len(names) - len(missing)} of them in {given.results}. {machine_line()}", file=sys.stderr, flush=True)
    for number, name in enumerate(missing, 1):
        done[name] = run(name, target, settings, given.records)
        append(given.results, done[name])
        print(f"{number}/{len(missing)} {name}: {done[name].share}", file=sys.stderr, flush=True)
    rows = [done[name] for name in names if name in done]
    if not rows:
        print(f"asked for rows with these settings and this commit in {given.results}, which has none; run without --table", file=sys.stderr)
        return 1
    show(rows, settings)
    if given.markdown:
        given.markdown.write_text(markdown(rows, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
