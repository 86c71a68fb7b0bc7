"""How quickly different searches find fast programs: curves of the best program so far, over trials and over seconds.

    python benchmarks/search.py                                   # every operator, 5 seeds, 64 trials: an hour
    python benchmarks/search.py --only matmul softmax --seeds 3
    python benchmarks/search.py --table --plot docs/search.svg    # runs nothing
    python benchmarks/search.py --searches pretrained "population 512" "population 8192"    # one parameter varied; --help names all
    python benchmarks/search.py --table --beside pretrained       # each run relative to the one with the same seed

Searches: `random` programs; `evolution` of the best measured ones, without a model; evolution with a `model` that starts from the analytic estimate and
learns from measurements; and `pretrained`, the package's default, whose model was trained on other operators. All others are the default with one parameter
changed. Each run is a line in the results file; recorded runs are not repeated. A curve is the speed of the best program so far, relative to the best that any
run of the operator found. The table has the geometric mean over operators, averaged over the seeds that all operators have, and the spread of seeds. Seconds
are wall time from the declaration; the first run includes what a process loads once. The pretrained model was trained on none of these operators.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from common import add_target, console, in_one_thread, machine_line, parser, table, target_of
from curve import Curve
from rich.console import Console
from rich.table import Table
from twelve_operators import OPERATORS

from ansor.codegen.toolchain import processor_name
from ansor.cost_model.base import CostModel
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.random_model import RandomModel
from ansor.measure.measurer import Measurer
from ansor.run.budget import Budget
from ansor.run.options import ROUND, Rounds, SearchOptions
from ansor.run.reporter import Callbacks
from ansor.run.states import Progress
from ansor.run.tuning import TuningRun
from ansor.run.zero_tuning import pick
from ansor.search.evolution import EvolutionOptions
from ansor.search.tuner import Halves, TunerOptions
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

RESULTS = Path("build") / "search.jsonl"
TRIALS = (1, 8, 16, 32, 64, 128)
SECONDS = (2, 5, 10, 20, 60)


class NoModel(RandomModel):
    """Evolution with random scores: only measurements guide it."""

    @property
    def fitted(self) -> bool:
        """True from the start, so that the search evolves programs."""
        return True


@dataclass(frozen=True)
class Search:
    """How to search. model: makes it from a seed; picks: whether the first program is the model's pick; overlap: measure while one compiler process runs."""

    model: Callable[[int], CostModel] = lambda seed: pretrained()
    picks: bool = True
    options: TunerOptions = field(default_factory=TunerOptions)
    round_size: int = ROUND
    overlap: bool = False


def evolving(evolution: EvolutionOptions) -> Search:
    """The default search with other evolution options."""
    return Search(options=TunerOptions(evolution=evolution))


KINDS = {
    "random": Search(RandomModel, picks=False),
    "evolution": Search(NoModel, picks=False),
    "model": Search(lambda seed: LightGBMModel(seed, informed=True), picks=False),
    "pretrained": Search(),
}
VARIANTS = {
    "no pick": Search(picks=False),
    "population 512": evolving(EvolutionOptions(population=512)),
    "population 8192": evolving(EvolutionOptions(population=8192)),
    "generations 1": evolving(EvolutionOptions(generations=1)),
    "generations 12": evolving(EvolutionOptions(generations=12)),
    "mutation 0.4": evolving(EvolutionOptions(mutation=0.4)),
    "crossover 0": evolving(EvolutionOptions(crossover=0.0)),
    "epsilon 0": Search(options=TunerOptions(epsilon=0.0)),
    "epsilon 0.2": Search(options=TunerOptions(epsilon=0.2)),
    "explore 0": Search(options=TunerOptions(explore=0.0)),
    "spread 0": Search(options=TunerOptions(spread=Halves(0.0, 0.0))),
    "spread 3": Search(options=TunerOptions(spread=Halves(3.0, 3.0))),
    "local 0": Search(options=TunerOptions(local_share=Halves(0.0, 0.0))),
    "round 4": Search(round_size=4),
    "round 8": Search(round_size=8),
    "overlap": Search(overlap=True),
}
SEARCHES = {**KINDS, **VARIANTS}


def run(operator: str, search: str, seed: int, trials: int, target: Target) -> Curve:
    """Tune once."""
    best: list[float] = []
    elapsed: list[float] = []
    begin = time.perf_counter()

    def note(progress: Progress) -> None:
        latest = progress.latest.cost
        best.append(min(latest, best[-1]) if best else latest)
        elapsed.append(time.perf_counter() - begin)

    task = SearchTask(tensors=OPERATORS[operator](), target=target, name=operator)
    how = SEARCHES[search]
    with Measurer(target, overlap=how.overlap, jobs=1 if how.overlap else None) as measurer:
        search_options = SearchOptions(seed, how.model(seed), first=partial(pick, seed=seed) if how.picks else None, tuner=how.options)
        callbacks = Callbacks(update=note)
        TuningRun([task], measurer=measurer, budget=Budget.of(trials), search=search_options, rounds=Rounds(how.round_size), callbacks=callbacks).run()
    return Curve(operator, search, seed, str(target), processor_name(), tuple(best), tuple(elapsed))


def load(path: Path) -> list[Curve]:
    """The runs in a file. Of several with the same operator, search, seed and target, the longest counts."""
    if not path.exists():
        return []
    found: dict[tuple[str, str, int, str], Curve] = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        curve = Curve(**{**one, "best": tuple(one["best"]), "elapsed": tuple(one["elapsed"])})
        key = curve.operator, curve.search, curve.seed, curve.target
        if key not in found or len(curve.best) > len(found[key].best):
            found[key] = curve
    return list(found.values())


def missing(done: Sequence[Curve], wanted: Iterable[tuple[str, str, int]], trials: int, target: Target) -> Iterator[tuple[str, str, int]]:
    """The wanted runs that are not recorded."""
    known = {(one.operator, one.search, one.seed) for one in done if one.target == str(target) and len(one.best) >= trials}
    return (one for one in wanted if one not in known)


def shares(curves: Sequence[Curve], at: Callable[[Curve], float]) -> Mapping[str, tuple[float, float]]:
    """For each search, the geometric mean over operators of the speed relative to the best of all, and its standard deviation over seeds."""
    best = {name: min(one.best[-1] for one in curves if one.operator == name) for name in {one.operator for one in curves}}
    found = {}
    for search in dict.fromkeys(one.search for one in curves):
        seeds: dict[int, list[float]] = {}
        for one in curves:
            if one.search == search:
                seeds.setdefault(one.seed, []).append(math.log(max(best[one.operator] / at(one), 1e-3)))
        means = [math.exp(statistics.mean(logs)) for logs in seeds.values() if len(logs) == len(best)]
        if means:
            found[search] = statistics.mean(means), statistics.stdev(means) if len(means) > 1 else 0.0
    return found


def beside(curves: Sequence[Curve], base: str, value: Callable[[Curve, Curve], float]) -> Mapping[str, tuple[float, float, int]]:
    """For each other search, the geometric mean of a ratio over pairs of runs with the same operator and seed, its standard error, and the number of pairs."""
    own = {(one.operator, one.seed): one for one in curves if one.search == base}
    logs: dict[str, list[float]] = {}
    for one in curves:
        other = own.get((one.operator, one.seed))
        if other is not None and one is not other:
            logs.setdefault(one.search, []).append(math.log(value(one, other)))
    return {
        search: (math.exp(statistics.mean(found)), statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else 0.0, len(found))
        for search, found in logs.items()
    }


def _speed(one: Curve, other: Curve, count: int) -> float:
    """The speed of the best program of one run after this many trials, relative to that of the other."""
    return other.at_trial(count) / one.at_trial(count)


def pairs_table(curves: Sequence[Curve], base: str) -> Table:
    """Speeds after some trials, and the time of all of them, relative to the runs of one search."""
    counts = [count for count in TRIALS if all(len(one.best) >= count for one in curves)]
    columns = [beside(curves, base, partial(_speed, count=count)) for count in counts]
    columns.append(beside(curves, base, lambda one, other: one.elapsed[-1] / other.elapsed[-1]))
    shown = table(f"relative to {base}: speed after some trials, and time of a run", ["search"], ["pairs", *(f"{count} trials" for count in counts), "time"])
    for search in columns[0]:
        shown.add_row(search, str(columns[0][search][2]), *(f"{mean:.2f} ± {error:.2f}" for mean, error, _ in (column[search] for column in columns)))
    return shown


def curves_table(known: Sequence[Curve], curves: Sequence[Curve], searches: Sequence[str]) -> Table:
    """For each search, the speed after some trials and some seconds. known: the runs that define the best of all; curves: the runs of the searches."""
    counts = [count for count in TRIALS if all(len(one.best) >= count for one in curves)]
    columns = [shares(known, partial(Curve.at_trial, count=count)) for count in counts]
    columns += [shares(known, partial(Curve.at, seconds=seconds)) for seconds in SECONDS]
    shown = table("speed of the best program so far relative to the best of all runs", ["search"],
                  [*(f"{count} trials" for count in counts), *(f"{seconds} s" for seconds in SECONDS)])
    for search in (one for one in searches if any(one in column for column in columns)):
        shown.add_row(search, *(f"{column[search][0]:.2f} ± {column[search][1]:.2f}" if search in column else "-" for column in columns))
    return shown


def run_missing(given: argparse.Namespace, target: Target, out: Console) -> None:
    """Do the runs that the results file lacks, and write each as it ends."""
    given.results.parent.mkdir(parents=True, exist_ok=True)
    # Searches alternate, so that a stopped run has some of each.
    wanted = [(name, search, seed) for seed in range(given.seeds) for name in given.only for search in given.searches or KINDS]
    for operator, search, seed in missing(load(given.results), wanted, given.trials, target):
        curve = run(operator, search, seed, given.trials, target)
        with given.results.open("a") as file:
            file.write(json.dumps(asdict(curve)) + "\n")
        out.print(f"{operator} by {search}, seed {seed}: {curve.best[-1] * 1e3:.4f} ms in {curve.elapsed[-1]:.1f} s, {given.trials} trials")


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS), help="operators (default: all)")
    options.add_argument("--seeds", type=int, default=5, help="runs of each search (default: %(default)s)")
    options.add_argument("--searches", nargs="+", choices=SEARCHES, metavar="SEARCH",
                         help=f"of {', '.join(SEARCHES)} (default: the first {len(KINDS)}; with --table, all in the results file)")
    options.add_argument("--beside", choices=SEARCHES, metavar="SEARCH", help="compare the runs of each seed with those of this search")
    options.add_argument("--trials", type=int, default=64, help="trials of a run (default: %(default)s)")
    options.add_argument("--results", type=Path, metavar="FILE", default=RESULTS, help="file of results (default: %(default)s)")
    options.add_argument("--table", action="store_true", help="print what the results file has, run nothing")
    options.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the curves")
    add_target(options)
    given = options.parse_args()
    in_one_thread()
    out, target = console(), target_of(given)
    if not given.table:
        run_missing(given, target, out)
    known = [one for one in load(given.results) if one.operator in given.only and one.target == str(target)]
    searches = given.searches or ([one for one in SEARCHES if any(one == curve.search for curve in known)] if given.table else list(KINDS))
    curves = [one for one in known if one.search in searches]
    if not curves:
        out.print(f"asked for runs for target {target} in {given.results}, which has none; run without --table")
        return 1
    out.print(curves_table(known, curves, searches))
    if given.beside is not None:
        out.print(pairs_table(curves, given.beside))
    out.print(f"{len(curves)} runs of {len({one.operator for one in curves})} operators, target {target}. {machine_line()}")
    if given.plot is not None:
        from plot_search import draw

        draw(given.plot, known, shares, searches)
        out.print(f"drawn: {given.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
