"""How close a short tuning run comes to a long one.

    python benchmarks/few_trials.py                                       # 64 trials compared with 1000, twelve operators: half an hour
    python benchmarks/few_trials.py --only softmax --long 256
    python benchmarks/few_trials.py --records build/few                   # recorded trials are not measured again

Each operator is tuned twice, with different seeds. The fastest programs of both runs are then timed alternately in one process, with constants bound, because
the times in the records are minima of many, and minutes apart. `share`: speed of the short run's program relative to the long one's, median and middle 80 % of
the turns; the last two columns are the seconds of the runs. The package's model was not trained on these operators, but on others of their families, and the
search was developed with them: `pristine.py` has operators for which neither is true.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import twelve_operators
from common import add_target, console, geomean, in_one_thread, machine_line, parser, records_at, short, side_by_side, table, target_of
from operator_sets import LEGEND, mark

from ansor import api
from ansor.run.choosing import chosen
from ansor.run.states import Best
from ansor.tasks.task import SearchTask

LONG_SEED = 1000


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", metavar="OPERATOR", help="some of the twelve operators (default: all)")
    options.add_argument("--trials", type=int, default=64, help="trials of the short runs (default: %(default)s)")
    options.add_argument("--long", type=int, default=1000, metavar="TRIALS", help="trials of the long runs (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of the short runs (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to record files in this folder")
    options.add_argument("--turns", type=int, default=100, help="turns of each comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    in_one_thread()
    out, target, operators = console(), target_of(given), twelve_operators.OPERATORS
    unknown = next((name for name in given.only or () if name not in operators), None)
    if unknown is not None:
        options.error(f"asked for the operator {unknown}, which does not exist; use some of {', '.join(operators)}")
    shown = table(f"best of {given.trials} trials compared with the best of {given.long}, {target}", ["operator"],
                  [f"{given.trials} trials, ms", f"{given.long} trials, ms", "share", "seconds", "seconds"])
    shares = []
    for name in given.only or operators:
        task = SearchTask(tensors=operators[name](), target=target, name=name)
        few, few_s = tuned(task, given.trials, given.seed, records_at(given.records, f"{name}-{given.trials}-{given.seed}"))
        many, many_s = tuned(task, given.long, LONG_SEED, records_at(given.records, f"{name}-{given.long}"))
        share, few_one, many_one = side_by_side(task, few, many, given.turns)
        shares.append(share.median)
        label = f"{name}{mark(task.declared.tensors)}"
        shown.add_row(label, f"{few_one * 1e3:.4f}", f"{many_one * 1e3:.4f}", str(share), short(few_s), short(many_s))
        print(f"{name}: {share}", file=sys.stderr, flush=True)
    out.print(shown)
    out.print(LEGEND)
    out.print(f"geomean of {len(shares)}: {geomean(shares):.3f}, minimum {min(shares):.2f}. {machine_line()}")
    return 0


def tuned(task: SearchTask, trials: int, seed: int, records: Path | None) -> tuple[Best, float]:
    """The best program of this many trials, including those in `records`, and the seconds it took to find it."""
    begin = time.perf_counter()
    if records is not None:
        records.parent.mkdir(parents=True, exist_ok=True)
    state = api.tune_tasks([task], trials=trials, records=records, seed=seed)[0]
    return chosen(state, seed=seed), time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
