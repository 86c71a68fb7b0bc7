"""Compares kernels that the model picks without measuring with tuned kernels, on operators in sizes that the model was not trained on.

    python benchmarks/zero_tuning.py                                   # a few of each kind, 64 trials each
    python benchmarks/zero_tuning.py --tasks 40 --records build/zero   # more, continued from earlier trials
    python benchmarks/zero_tuning.py --model unseen.json.gz --kinds capsule transposed

The operators are tasks of the data set that were held out when the package's model was trained. The model was trained on other sizes of their families, and
constants were chosen by their figures; neither is true of the operators of `pristine.py`. For each operator, a kernel is picked (`trials=0`) and one is tuned,
and both are timed alternately in one process, with constants bound. `share`: speed of the picked kernel relative to the tuned one, median and middle 80 % of
the turns; `picked in`: seconds from the declaration to the choice, without the compiler; `sure`: the confidence of the pick.
`--model` takes another model, such as one trained without some kinds: `ansor dataset train DIR --without capsule transposed --output unseen.json.gz`.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path

from common import add_target, console, geomean, in_one_thread, machine_line, parser, records_at, short, side_by_side, table, target_of
from operator_sets import LEGEND, mark

from ansor import api
from ansor.cost_model.base import CostModel
from ansor.cost_model.saved import load_model
from ansor.dataset.collect import search_task
from ansor.dataset.operators import KINDS, dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.measure.interleaved import Ratio
from ansor.run.choosing import chosen
from ansor.run.zero_tuning import pick
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--tasks", type=int, default=24, help="number of tasks; kinds alternate (default: %(default)s)")
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="only these (default: all)")
    options.add_argument("--trials", type=int, default=64, help="trials of the tuned kernel (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to record files in this folder")
    options.add_argument("--model", type=Path, metavar="FILE", help="model to use instead of the package's")
    options.add_argument("--seen", action="store_true", help="include tasks that the package's model was trained on")
    options.add_argument("--turns", type=int, default=60, help="turns of each comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    in_one_thread()
    out, target = console(), target_of(given)
    model = "package" if given.model is None else load_model(given.model)
    tasks = tasks_of(given, target)
    shown = table(f"picks compared with {given.trials} trials, {target}", ["operator"], ["picked ms", "tuned ms", "share", "sure", "picked in"])
    shares: dict[str, list[float]] = {}
    slowest = 0.0
    for number, (kind, task) in enumerate(tasks, 1):
        share, picked, tuned, confidence, seconds = compared(task, model, given.trials, records_at(given.records, task.name), given.turns)
        sure = "-" if confidence is None else f"{confidence:.2f}"
        name = f"{task.name}{mark(task.declared.tensors)}"
        shown.add_row(name, f"{picked * 1e3:.3f}", f"{tuned * 1e3:.3f}", str(share), sure, short(seconds))
        shares.setdefault(kind, []).append(share.median)
        slowest = max(slowest, seconds)
        print(f"{number}/{len(tasks)} {task.name}: {share}", file=sys.stderr, flush=True)
    out.print(shown)
    out.print(LEGEND)
    for kind, found in shares.items():
        out.print(f"{kind:18} {geomean(found):.2f}  ({len(found)} tasks)")
    everything = [share for found in shares.values() for share in found]
    out.print(f"geomean of all {len(everything)}: {geomean(everything):.3f}, minimum {min(everything):.2f}; slowest pick {short(slowest)}. {machine_line()}")
    return 0


def tasks_of(given: Namespace, target: Target) -> list[tuple[str, SearchTask]]:
    """The chosen tasks, each with its kind."""
    held_out = [one for one in dataset_tasks() if one.kind in given.kinds and (given.seen or fold_of(one) == HELD_OUT)]
    return [(one.kind, search_task(one, target)) for one in held_out[: given.tasks]]


def compared(task: SearchTask, model: CostModel | str, trials: int, records: Path | None, turns: int) -> tuple[Ratio, float, float, float | None, float]:
    """The share, the median seconds of both kernels, the confidence of the pick, and the seconds that the pick took."""
    begin = time.perf_counter()
    choice = pick(task, model)
    seconds = time.perf_counter() - begin
    state = api.tune_tasks([task], trials=trials, records=records)[0]
    return *side_by_side(task, choice.program, chosen(state), turns), choice.confidence, seconds


if __name__ == "__main__":
    sys.exit(main())
