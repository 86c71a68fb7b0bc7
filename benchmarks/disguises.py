"""Does it matter how a declaration is written? Rewrites twenty operators in sixteen equivalent ways ("disguises"), and in several at once.

    python benchmarks/disguises.py [--seeds 5] [--picks]

Each row is a disguise: it says for how many operators the key equals that of the plain declaration, as written and in the normal form. `--picks`: also for how
many operators the picked program is the same C except for names; this takes minutes.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ansor
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te import workloads
from ansor.te.tensor import Tensor
from ansor.zoo import operators

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.disguises import DISGUISES, disguised

OPERATORS: dict[str, Callable[[], Sequence[Tensor]]] = {
    "matmul": lambda: operators.matmul(128, 128, 128),
    "odd matmul": lambda: operators.matmul(127, 96, 33),
    "batch matmul": lambda: operators.batch_matmul(8, 64, 64, 32),
    "dense": lambda: operators.dense(32, 256, 128),
    "conv 1x1": lambda: workloads.conv2d(1, 14, 14, 64, 64, 1),
    "conv 3x3": lambda: workloads.conv2d(1, 14, 14, 32, 32, 3, 1, 1),
    "conv 3x3, norm, relu": lambda: workloads.conv2d_nchw_bn_relu(1, 28, 28, 32, 32, 3, 1, 1),
    "conv 3x3, stride 2": lambda: workloads.conv2d_nchw_bn_relu(1, 28, 28, 16, 32, 3, 2, 1),
    "conv 5x5": lambda: workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 16, 5, 1, 2),
    "conv, dilated": lambda: workloads.conv2d(1, 16, 16, 16, 16, 3, 1, 2, 2),
    "conv, batch 4": lambda: workloads.conv2d(4, 14, 14, 16, 16, 3, 1, 1),
    "conv in groups": lambda: operators.group_conv2d(1, 14, 14, 32, 32, 3, 1, 1, 4),
    "depthwise": lambda: workloads.depthwise_conv2d(1, 28, 28, 32, 3, 1, 1),
    "depthwise, stride 2": lambda: workloads.depthwise_conv2d(1, 28, 28, 32, 3, 2, 1),
    "transposed conv": lambda: workloads.conv2d_transpose(1, 8, 8, 16, 16, 4, 2, 1),
    "softmax": lambda: operators.softmax(64, 128),
    "softmax, odd": lambda: operators.softmax(33, 100),
    "layer norm": lambda: operators.layer_norm(64, 128),
    "layer norm, odd": lambda: operators.layer_norm(7, 96),
    "dense, odd": lambda: operators.dense(7, 100, 36),
}
NAMES = re.compile(r"[A-Za-z_]\w*")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of combined disguises (default: %(default)s)")
    parser.add_argument("--picks", action="store_true")
    given = parser.parse_args()
    table = Table(title=f"{len(OPERATORS)} operators: the same as the plain declaration")
    for column in ("disguise", "as written", "normal form", *(["pick"] if given.picks else [])):
        table.add_column(column, justify="left" if column == "disguise" else "right")
    worn = [[name] for name in DISGUISES] + [_several(seed) for seed in range(given.seeds)]
    missed = 0
    for seed, names in enumerate(worn):
        found = [_same(declare, names, seed, given.picks) for declare in OPERATORS.values()]
        missed += sum(not normal for _, normal, _ in found)
        counts = [str(sum(one[column] for one in found)) for column in range(3 if given.picks else 2)]
        table.add_row(" + ".join(names), *counts)
    Console(width=160).print(table)
    print(f"{missed} of {len(worn) * len(OPERATORS)} differ in the normal form")
    return 1 if missed > 0.05 * len(worn) * len(OPERATORS) else 0


def _several(seed: int) -> list[str]:
    generator = random.Random(seed)
    return [generator.choice(list(DISGUISES)) for _ in range(2 + seed)]


def _same(declare: Callable[[], Sequence[Tensor]], names: Sequence[str], seed: int, picks: bool) -> tuple[bool, bool, bool]:
    plain, hidden = Dag(declare()), Dag(disguised(declare(), names, seed))
    normal = Dag(normal_form(plain.tensors)).key == Dag(normal_form(hidden.tensors)).key
    return plain.key == hidden.key, normal, picks and _text(plain.tensors) == _text(hidden.tensors)


def _text(tensors: Sequence[Tensor]) -> str:
    """The C of the pick, with names numbered in order of appearance."""
    numbers: dict[str, str] = {}
    source = ansor.auto_schedule(ansor.SearchTask(tensors=tensors), trials=0, progress=False).source
    return NAMES.sub(lambda found: numbers.setdefault(found[0], f"n{len(numbers)}"), source)


if __name__ == "__main__":
    sys.exit(main())
