"""Compares calls of any length (`ansor.compile_lengths`), which are padded, with networks compiled for exactly that length, and with PyTorch. Nothing is tuned.

    python benchmarks/lengths.py [bert gpt2 llama_small] [--lengths 128 112 97 40] [--largest 128] [--threads 1]

`padded / exact`: the time of a padded call over that of the exact network; `eager / padded`: that of PyTorch over that of a padded call; medians over turns.
A line for each model says how much memory the weights of its networks take. Weights are random, and nothing is cached. Exits with 1 if a result differs from
PyTorch's.
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
from ansor.networks.size_arithmetic import size_for
from ansor.support.text import format_bytes

TOLERANCE = 1e-3
TEXT = ("bert", "gpt2", "llama_small")


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", choices=["distilbert", *TEXT, []], metavar="network", help=f"networks (default: {' '.join(TEXT)})")
    options.add_argument("--lengths", type=int, nargs="+", default=[128, 112, 97, 40], help="lengths of calls (default: 128 112 97 40)")
    options.add_argument("--largest", type=int, default=128, help="the longest input (default: %(default)s)")
    options.add_argument("--turns", type=int, default=9, help="turns of the comparison (default: %(default)s)")
    add_target(options)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    use_threads(given.threads)
    columns = ["padded to", "exact", "padded / exact", "eager / padded", "error"]
    memory: list[str] = []
    shown, errors = table(f"{target_of(given)}, at most {given.largest} words", ["network", "words"], columns), []
    for name in given.names or TEXT:
        model, target, words = NETWORKS[name].model(), str(target_of(given)), torch.randint(0, 1000, (1, given.largest))
        padded = ansor.compile_lengths(model, words, target, progress=False)
        for length in given.lengths:
            inputs = words[:, :length]
            exact = ansor.compile(model, inputs, target, progress=False)
            with torch.no_grad():
                wanted, found = model(inputs), padded(inputs)
                errors.append(relative_error(found, wanted))
                calls = {"padded": partial(padded, inputs), "exact": partial(exact, inputs), "eager": partial(model, inputs)}
                times = interleaved(calls, given.turns, warm=0.05)
            to = size_for(length, padded.lengths)
            ratios = ratio(times["exact"], times["padded"]), ratio(times["padded"], times["eager"])
            shown.add_row(name, str(length), str(to), short(times["exact"].median), *map(str, ratios), f"{errors[-1]:.0e}")
        weights = [one for made in padded.networks.values() for one in made.network.constants]
        together = {one.ctypes.data: one.nbytes for one in weights}
        memory.append(f"{name}: weights of {len(padded.networks)} networks take {format_bytes(sum(together.values()))}, and "
                      f"{format_bytes(sum(one.nbytes for one in weights))} if each had its own")  # fmt: skip
    out = console()
    out.print(shown)
    out.print("\n".join(memory))
    out.print(machine_line())
    return int(not all(one <= TOLERANCE for one in errors))


if __name__ == "__main__":
    sys.exit(main())
