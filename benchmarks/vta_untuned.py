"""Compares the estimate's picks without a trial with a search, on a VTA core, for layers that nothing was fitted to (MobileNet, VGG, BERT, Inception).

    python benchmarks/vta_untuned.py [part of a name ...] [--trials 200] [--core default]

Cycles are those of the stated model. The estimate's only fitted number (`OUT_OF_STEP`) comes from the convolutions of ResNet-18, which are not among these.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ansor
from ansor.run.zero_tuning import pick
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.vta.compiled import operator_from_text
from ansor.vta.cycles import CHISEL

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.vta_layers import cycles_of
from tests.vta_declarations import added, conv2d, dense, depthwise, pool

LAYERS: dict[str, list[Tensor]] = {
    "MobileNet 28, 128 to 256, 1x1": conv2d((1, 128, 28, 28), 256, 1),
    "MobileNet 14, 512 to 512, 1x1": conv2d((1, 512, 14, 14), 512, 1),
    "MobileNet 14, 256, depthwise": depthwise((1, 256, 14, 14), 3, pad=1),
    "MobileNet-v2 14, 96 to 576, 1x1": conv2d((1, 96, 14, 14), 576, 1),
    "MobileNet-v2 28, 32, add": added((1, 32, 28, 28)),
    "VGG 28, 256 to 512, 3x3": conv2d((1, 256, 28, 28), 512, 3, pad=1),
    "VGG 14, 512 to 512, 3x3": conv2d((1, 512, 14, 14), 512, 3, pad=1),
    "VGG 56, 256, pool 2": pool((1, 256, 56, 56), 2, stride=2),
    "Inception 35, 48 to 64, 5x5": conv2d((1, 48, 35, 35), 64, 5, pad=2),
    "Inception 17, 192 to 192, 3x3, stride 2": conv2d((1, 192, 17, 17), 192, 3, stride=2),
    "BERT 128, 768 to 768": dense(128, 768, 768),
    "BERT 128, 768 to 3072": dense(128, 3072, 768),
    "BERT 128, 3072 to 768": dense(128, 768, 3072),
}


def compared(tensors: list[Tensor], target: Target, trials: int) -> tuple[int, int]:
    """Cycles of the estimate's pick, and of the program that a search finds."""
    task = SearchTask(tensors=tensors, target=target)
    guess = pick(task).program
    untuned = cycles_of(operator_from_text(task.source(guess.sketch, guess.row).text))
    return untuned, cycles_of(operator_from_text(ansor.auto_schedule(tensors, target=target, trials=trials).source))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of layers, all by default")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--core", default="default")
    given = parser.parse_args()
    target, ratios, table = parse_target(f"vta -core={given.core}"), [], Table()
    for heading in ("layer", "untuned", "tuned", "tuned / untuned"):
        table.add_column(heading, justify="right")
    for name, tensors in LAYERS.items():
        if given.names and not any(one in name for one in given.names):
            continue
        untuned, tuned = compared(tensors, target, given.trials)
        ratios.append(min(tuned, untuned) / untuned)
        table.add_row(name, f"{untuned}", f"{tuned}", f"{ratios[-1]:.3f}")
        print(name, untuned, tuned, f"{ratios[-1]:.3f}", flush=True)
    if not ratios:
        parser.error(f"asked for {' and '.join(given.names)}; layers are {', '.join(LAYERS)}")
    Console(width=120).print(table)
    print(f"minimum {min(ratios):.3f}, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, {given.trials} trials")
    print(CHISEL)


if __name__ == "__main__":
    main()
