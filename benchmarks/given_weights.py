"""The suite's operators with all operands as inputs, even weights: the model's picks without a trial, compared with PyTorch eager, on one thread each.

    python benchmarks/given_weights.py [--trials 0] [--seconds 1.5] [NAME ...]

Each row has PyTorch's best time over ours, timed alternately. The model was trained only on operators with constants; marks say on which.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

import ansor
from ansor.te.expr import Expr
from ansor.te.fold import fold, with_operands
from ansor.te.tensor import Compute, Read, Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))
from operator_sets import LEGEND, mark
from provenance import here
from suite import ROWS, Row


def given(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same declaration with inputs in place of constants."""
    made: dict[int, Tensor] = {}

    def visit(tensor: Tensor) -> Tensor:
        if id(tensor) not in made:
            made[id(tensor)] = replace(tensor, constant=False) if tensor.compute is None else _over(tensor, tensor.compute)
        return made[id(tensor)]

    def _over(tensor: Tensor, compute: Compute) -> Tensor:
        for read in compute.reads:
            visit(read.tensor)

        def reading(node: Expr, operands: tuple[Expr, ...]) -> Expr:
            return Read(made[id(node.tensor)], operands, node.dtype) if isinstance(node, Read) else with_operands(node, operands)

        return replace(tensor, compute=Compute(compute.axes, compute.reduce_axes, fold(compute.body, reading)))

    return [visit(tensor) for tensor in tensors]


def speed(row: Row, trials: int, seconds: float) -> float:
    """PyTorch's best time over ours, for one row."""
    operator = row.operator()
    task = ansor.SearchTask(tensors=given(operator.declare()), name=row.name, target="cpu -threads=1")
    program = ansor.auto_schedule(task, trials=trials, progress=False)
    values = {**operator.inputs, **operator.our_constants}
    arguments = [torch.as_tensor(values[one.name]) for one in program.arguments if one.role != "output"]
    with torch.no_grad():
        return _ratio(lambda: program(*arguments), lambda: operator.function(*operator.inputs.values(), *operator.constants.values()), seconds)


def _ratio(ours: Callable[[], object], theirs: Callable[[], object], seconds: float) -> float:
    best = [math.inf, math.inf]
    ours(), theirs()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for place, call in enumerate((ours, theirs)):
            start = time.perf_counter()
            call()
            best[place] = min(best[place], time.perf_counter() - start)
    return best[1] / best[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows of the suite, all by default")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds of timing for each row")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for row in ROWS:
        if not asked.names or row.name in asked.names:
            found.append(speed(row, asked.trials, asked.seconds))
            print(f"{row.name:30}{found[-1]:6.2f}{mark(row.operator().declare())}", flush=True)
    if not found:
        parser.error(f"asked for {' and '.join(asked.names)}, which the suite does not have; use some of {', '.join(row.name for row in ROWS)}")
    print(f"{len(found)} rows: geometric mean {math.exp(sum(map(math.log, found)) / len(found)):.2f}, minimum {min(found):.2f}")
    print(f"{LEGEND}. It was trained on operators with constant weights\n{here()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
