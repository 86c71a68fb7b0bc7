"""Compares calls that are split into batches (`ansor.compile_batches`) with networks compiled for exactly that many rows. Nothing is tuned.

    python benchmarks/batches.py [resnet18 bert] [--rows 3 8 13] [--largest 8] [--threads 1]

`split / exact`: the time of a split call over that of the exact network, median over turns. Weights are random, and nothing is cached. Exits with 1 if a result
differs from PyTorch's.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial

import torch
from common import add_target, console, machine_line, parser, relative_error, short, table, target_of, use_threads
from network_models import NETWORKS

import ansor
from ansor.measure.interleaved import interleaved, ratio
from ansor.networks.size_arithmetic import batch_sizes

TOLERANCE = 1e-3


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", choices=[*NETWORKS, []], metavar="network", help="networks (default: resnet18 and bert)")
    options.add_argument("--rows", type=int, nargs="+", default=[3, 8, 13], help="numbers of rows (default: 3 8 13)")
    options.add_argument("--largest", type=int, default=8, help="most rows computed at once (default: %(default)s)")
    options.add_argument("--turns", type=int, default=9, help="turns of the comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    use_threads(given.threads)
    columns = ["batches", "exact", "split / exact", "error"]
    shown, errors = table(f"{target_of(given)}, at most {given.largest} rows at once", ["network", "rows"], columns), []
    for name in given.names or ["resnet18", "bert"]:
        model, target = NETWORKS[name].model(), str(target_of(given))
        split = ansor.compile_batches(model, NETWORKS[name].inputs(given.largest), target, progress=False)
        for rows in given.rows:
            inputs = NETWORKS[name].inputs(rows)
            exact = ansor.compile(model, inputs, target, progress=False)
            with torch.no_grad():
                wanted, found = model(*inputs), split(*inputs)
            errors.append(relative_error(found, wanted))
            times = interleaved({"split": partial(split, *inputs), "exact": partial(exact, *inputs)}, given.turns, warm=0.05)
            batches = " + ".join(map(str, batch_sizes(rows, split.largest)))
            shown.add_row(name, str(rows), batches, short(times["exact"].median), str(ratio(times["exact"], times["split"])), f"{errors[-1]:.0e}")
    out = console()
    out.print(shown)
    out.print(machine_line())
    return int(not all(one <= TOLERANCE for one in errors))


if __name__ == "__main__":
    sys.exit(main())
