"""How quickly AutoTVM's tuners find the best configurations of a template.

    python benchmarks/autotvm_tuners.py                        # all three parts, some 4,000 measurements: an hour or two
    python benchmarks/autotvm_tuners.py --parts exhaustive     # 100 measurements
    python benchmarks/autotvm_tuners.py --parts search --seeds 2 --trials 64

exhaustive: all 100 configurations of a matrix product; then how close each tuner comes to the best of them after some trials.
search: a convolution with more than 10,000 configurations; the best after some trials relative to the best found by any tuner (medians over seeds).
transfer: trials to reach 95 % of the best for another convolution, for XGBTuner with and without a log of the first one (means over seeds).

Each configuration is measured once. Its result goes into the table, an AutoTVM log, and is looked up there afterwards. So all tuners see the same numbers, an
interrupted run continues where it left off, and a second run measures nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import autotvm_templates  # noqa: F401  # registers them
from common import console, machine_line, parser, table

from ansor import autotvm
from ansor.compat.autotvm.base_tuner import Tuner
from ansor.compat.autotvm.config_features import FEATURE_TYPES
from ansor.compat.autotvm.database import Database, filter_inputs
from ansor.compat.autotvm.local_measure import BuildResult
from ansor.compat.autotvm.measure import MeasureOption
from ansor.compat.autotvm.model_based_tuner import ModelBasedTuner
from ansor.compat.autotvm.sa_model_optimizer import SimulatedAnnealingOptimizer
from ansor.compat.autotvm.xgboost_cost_model import XGBoostCostModel
from ansor.compat.common.outcome import MeasureErrorNo

TABLE = Path("build") / "autotvm_tuners.log"
PARTS = ("exhaustive", "search", "transfer")
LAYER = (64, 56, 64, 3, 1, 1)
"""Channels, rows and columns, filters, kernel, stride, padding: the first stage of ResNet."""
OTHER_LAYER = (128, 28, 128, 3, 1, 1)
HISTORY = 512
"""The number of random configurations of the first layer in the log."""
GOOD = 0.95
PLAN = 32
"""Configurations that XGBTuner plans at a time."""

Make = Callable[[autotvm.Task, int], Tuner]


class MeasuredOnce:
    """A builder and a runner in one, which measure configurations that the table lacks, and add them.

    measured: how many were measured; `report` gets this number from time to time.
    """

    n_parallel = 8

    def __init__(self, path: Path, report: Callable[[int], None] = lambda measured: None) -> None:
        self._path, self._report = path, report
        self._builder = autotvm.LocalBuilder(timeout=20)
        self._runner = autotvm.LocalRunner(number=1, repeat=5, min_repeat_ms=10, cooldown_interval=0)
        self._known = Database()
        self._ready = ""  # the task for which builder and runner are set up
        self.measured = 0
        for inp, result in autotvm.load_from_file(path) if path.exists() else ():
            self._known.save(inp, result)

    @property
    def option(self) -> MeasureOption:
        """The measure option for `Tuner.tune`."""
        return MeasureOption(self, self)

    def set_task(self, task: autotvm.Task) -> None:
        self._task = task

    def build(self, measure_inputs: Sequence[autotvm.MeasureInput]) -> list[BuildResult]:
        """Does nothing: unknown configurations are built when they are run."""
        return [BuildResult()] * len(measure_inputs)

    def run(self, measure_inputs: Sequence[autotvm.MeasureInput], build_results: Sequence[BuildResult]) -> list[autotvm.MeasureResult]:
        _, unknown = filter_inputs(self._known, measure_inputs)
        if unknown:
            self._measure(unknown)
        return [result for inp in measure_inputs if (result := self._known.load(inp)) is not None]

    def close(self) -> None:
        """Does nothing: the builder and runner stay open between batches of one task; `finish` closes them."""

    def finish(self) -> None:
        """End the processes."""
        self._runner.close()
        self._builder.close()
        self._ready = ""

    def _measure(self, inputs: Sequence[autotvm.MeasureInput]) -> None:
        name = repr(self._task)
        if self._ready != name:
            self._builder.set_task(self._task)
            self._runner.set_task(self._task)
            self._ready = name
        results = self._runner.run(inputs, self._builder.build(inputs))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            for inp, result in zip(inputs, results, strict=True):
                file.write(autotvm.encode(inp, result) + "\n")
                self._known.save(inp, result)
        before, self.measured = self.measured, self.measured + len(inputs)
        if before // 50 < self.measured // 50:
            self._report(self.measured)

    def costs(self, task: autotvm.Task) -> list[float]:
        """Seconds of all known valid configurations of a task."""
        found = self._known.filter(lambda inp, _: inp.task == task and inp.target == task.target)
        return [result.mean_cost for _, result in found if result.error_no == MeasureErrorNo.NO_ERROR]


class BestSoFar:
    """A callback that records the best seconds after each trial."""

    def __init__(self) -> None:
        self.curve: list[float] = []

    def __call__(self, tuner: Tuner, inputs: Sequence[autotvm.MeasureInput], results: Sequence[autotvm.MeasureResult]) -> None:
        for result in results:
            self.curve.append(min(result.mean_cost, self.curve[-1] if self.curve else result.mean_cost))

    def after(self, trials: int) -> float:
        """The best seconds after this many trials, or after all if there were fewer."""
        return self.curve[min(trials, len(self.curve)) - 1]


def curve(tuner: Tuner, once: MeasuredOnce, trials: int) -> BestSoFar:
    """Run a tuner; returns its curve."""
    found = BestSoFar()
    tuner.tune(trials, once.option, callbacks=[found])
    return found


def xgb(features: XGBoostCostModel) -> Make:
    """XGBTuner with features shared by all seeds, because computing them takes most of its time."""

    def make(task: autotvm.Task, seed: int) -> Tuner:
        model = XGBoostCostModel(task, features.feature_type, upper_model=features, seed=seed)
        return ModelBasedTuner(task, model, SimulatedAnnealingOptimizer(task, seed=seed), PLAN, seed=seed)

    return make


def tuners(task: autotvm.Task, feature_type: str) -> dict[str, Make]:
    """The tuners by name."""
    return {
        "GridSearch": lambda task, seed: autotvm.GridSearchTuner(task),
        "Random": lambda task, seed: autotvm.RandomTuner(task, seed=seed),
        "GA": lambda task, seed: autotvm.GATuner(task, pop_size=PLAN, seed=seed),
        "XGB": xgb(XGBoostCostModel(task, feature_type)),
    }


def exhaustive(once: MeasuredOnce, given: argparse.Namespace) -> None:
    """The part `exhaustive`."""
    task = autotvm.task.create("bench/matmul", (given.size,) * 3, given.target)
    trials = min(given.trials or len(task.config_space), len(task.config_space))
    curve(autotvm.GridSearchTuner(task), once, trials)
    best = min(once.costs(task), default=float("inf"))
    steps = [step for step in (10, 25, 50) if step < trials] + [trials]
    rows = {}
    for name, make in tuners(task, given.features).items():
        curves = [curve(make(task, seed), once, trials) for seed in range(given.seeds)]
        rows[name] = [f"{statistics.median(best / one.after(step) for one in curves):.3f}" for step in steps]
    show(f"matmul {given.size} x {given.size} x {given.size}, the best of {trials}: {best * 1e3:.3f} ms; medians of {given.seeds} seeds", steps, rows)


def search(once: MeasuredOnce, given: argparse.Namespace) -> None:
    """The part `search`."""
    task, trials = autotvm.task.create("bench/conv2d", LAYER, given.target), given.trials or 256
    curves = {name: [curve(make(task, seed), once, trials) for seed in range(given.seeds)]
              for name, make in tuners(task, given.features).items() if name != "GridSearch"}  # fmt: skip
    best = min(once.costs(task), default=float("inf"))
    steps = [step for step in (16, 32, 64, 128, 256, 512) if step < trials] + [trials]
    rows = {name: [f"{statistics.median(best / one.after(step) for one in found):.3f}" for step in steps] for name, found in curves.items()}
    show(f"conv2d {LAYER}, {len(task.config_space)} configurations, the best known: {best * 1e3:.3f} ms; medians of {given.seeds} seeds", steps, rows)


def transfer(once: MeasuredOnce, given: argparse.Namespace) -> None:
    """The part `transfer`."""
    first, task = (autotvm.task.create("bench/conv2d", layer, given.target) for layer in (LAYER, OTHER_LAYER))
    trials, records = given.trials or 256, min(HISTORY, 4 * given.trials if given.trials else HISTORY)
    log: list[tuple[autotvm.MeasureInput, autotvm.MeasureResult]] = []
    autotvm.RandomTuner(first).tune(records, once.option, callbacks=[lambda tuner, inputs, results: log.extend(zip(inputs, results, strict=True))])
    make = xgb(XGBoostCostModel(task, given.features))
    curves: dict[str, list[BestSoFar]] = {"without a log": [], f"with a log of {LAYER}": []}
    for seed in range(given.seeds):
        for name, found in curves.items():
            tuner = make(task, seed)
            if name != "without a log":
                tuner.load_history(log, min_seed_records=records // 2)
            found.append(curve(tuner, once, trials))
    best = min(once.costs(task), default=float("inf"))
    shown = table("", ("",), ("mean", "by seed"))
    for name, found in curves.items():
        needed = [next((trial for trial, cost in enumerate(one.curve, 1) if best / cost >= GOOD), None) for one in found]
        shown.add_row(name, f"{statistics.fmean(count or trials for count in needed):.1f}", ", ".join(str(count or f"> {trials}") for count in needed))
    console().print(f"\nconv2d {task.args}, trials to {GOOD:.0%} of the best known, {best * 1e3:.3f} ms; {trials} at most", shown)


def show(title: str, steps: Sequence[int], rows: dict[str, list[str]]) -> None:
    """Print a table of speeds relative to the best, by tuner and trials."""
    shown = table("", ("tuner",), [f"{step} trials" for step in steps])
    for name, shares in rows.items():
        shown.add_row(name, *shares)
    console().print(f"\n{title}", shown)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run (default: all)")
    options.add_argument("--target", default="llvm -threads=1", help="target text (default: %(default)s)")
    options.add_argument("--seeds", type=int, default=5, help="runs of each tuner (default: %(default)s)")
    options.add_argument("--trials", type=int, default=0, help="trials of each run (default: 100 for the first part, 256 for the others)")
    options.add_argument("--size", type=int, default=512, help="size of the matrices in the first part (default: %(default)s)")
    options.add_argument("--features", choices=FEATURE_TYPES, default="itervar", help="features that XGBTuner learns from (default: %(default)s)")
    options.add_argument("--table", type=Path, default=TABLE, help="file of results (default: %(default)s)")
    given = options.parse_args()
    print(machine_line(), flush=True)
    started = time.monotonic()
    once = MeasuredOnce(given.table, lambda measured: print(f"{measured} measured, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True))
    try:
        for part in given.parts:
            {"exhaustive": exhaustive, "search": search, "transfer": transfer}[part](once, given)
    finally:
        once.finish()
    print(f"{once.measured} measured in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
