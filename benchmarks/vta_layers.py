"""Convolutions of ResNet-18 on a VTA core: tuned programs compared with the hand-written template, searched exhaustively, and with the roofline.

    python benchmarks/vta_layers.py [C2 C9 ...] [--trials 200] [--core default] [--template]

Cycles are those of the printed model. "GEMM": cycles of the products alone; "of GEMM": these relative to the tuned program. "compute": cycles in which GEMM and
ALU of the tuned program start micro-ops; "share": these relative to all of its cycles. "untuned": the estimate's pick, without a trial.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ansor
from ansor import te
from ansor.run.zero_tuning import pick
from ansor.targets.base import parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor
from ansor.vta.compiled import Operator, finish, linked, operator_from_text
from ansor.vta.configuration import Configuration
from ansor.vta.cycles import CHISEL, count_cycles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.vta_template import Layer, configurations, least_cycles, program

LAYERS = (
    Layer("C2", 56, 64, 64, 3, 1, 1), Layer("C3", 56, 64, 64, 1, 1, 0), Layer("C4", 56, 64, 128, 3, 2, 1), Layer("C5", 56, 64, 128, 1, 2, 0),
    Layer("C6", 28, 128, 128, 3, 1, 1), Layer("C7", 28, 128, 256, 3, 2, 1), Layer("C8", 28, 128, 256, 1, 2, 0), Layer("C9", 14, 256, 256, 3, 1, 1),
    Layer("C10", 14, 256, 512, 3, 2, 1), Layer("C11", 14, 256, 512, 1, 2, 0), Layer("C12", 7, 512, 512, 3, 1, 1),
)  # fmt: skip


def declared(layer: Layer) -> list[Tensor]:
    """The layer as a plain declaration."""
    x = te.placeholder((1, layer.channels_in, layer.size, layer.size), "int8", name="x")
    w = te.placeholder((layer.channels_out, layer.channels_in, layer.kernel, layer.kernel), "int8", name="w", constant=True)
    b, p, end = te.placeholder((layer.channels_out,), "int32", name="b", constant=True), layer.pad, layer.size + layer.pad

    def zeros_around(n: Expr, c: Expr, y: Expr, z: Expr) -> Expr:
        return te.if_then_else(te.all(y >= p, y < end, z >= p, z < end), x[n, c, y - p, z - p], te.const(0, "int8"))

    source = te.compute((1, layer.channels_in, end + p, end + p), zeros_around, name="padded") if p else x
    c, ky, kx = te.reduce_axis(layer.channels_in, "ci"), te.reduce_axis(layer.kernel, "ky"), te.reduce_axis(layer.kernel, "kx")

    def products(n: Expr, o: Expr, y: Expr, z: Expr) -> Expr:
        return te.sum(source[n, c, y * layer.stride + ky, z * layer.stride + kx].astype("int32") * w[o, c, ky, kx].astype("int32"), axis=[c, ky, kx])

    acc = te.compute((1, layer.channels_out, layer.result, layer.result), products, name="acc")
    narrow = te.compute(acc.shape, lambda n, o, y, z: te.maximum(te.minimum((acc[n, o, y, z] + b[o]) >> 9, 127), 0).astype("int8"), name="out")
    return [x, w, b, narrow]


def cycles_of(operator: Operator) -> int:
    """Cycles of an operator alone."""
    words = np.concatenate([linked(operator, [0] * len(operator.tensors), 0, 0), finish(operator.configuration)])
    return count_cycles(words, operator.configuration, CHISEL).total


def best_of_template(layer: Layer, core: Configuration) -> int:
    """The fewest cycles of all configurations. Those whose lower bound exceeds the best so far are skipped."""
    best = math.inf
    for tiles in sorted(configurations(layer, core), key=lambda one: least_cycles(layer, one, core, CHISEL)):
        if least_cycles(layer, tiles, core, CHISEL) < best:
            best = min(best, cycles_of(program(layer, tiles, core)))
    return int(best)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", help="names of layers, all by default")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--core", default="default")
    parser.add_argument("--template", action="store_true", help="also search the hand-written template")
    given = parser.parse_args()
    target, ratios, table, console = parse_target(f"vta -core={given.core}"), [], Table(), Console(width=150)
    core = configuration_of(target)
    for heading in ("layer", "GEMM", "tuned", "of GEMM", "compute", "share", "untuned", "template", "template / tuned"):
        table.add_column(heading, justify="right")
    for layer in (one for one in LAYERS if not given.layers or one.name in given.layers):
        found = ansor.auto_schedule(declared(layer), target=target, trials=given.trials)
        task = SearchTask(tensors=declared(layer), target=target)
        guess = pick(task).program
        untuned = cycles_of(operator_from_text(task.source(guess.sketch, guess.row).text))
        assert found.cost is not None
        blocks = [-(-channels // (1 << core.block)) for channels in (layer.channels_in, layer.channels_out)]
        gemm, compute = layer.result**2 * layer.kernel**2 * blocks[0] * blocks[1], found.stats["gemm_cycles"] + found.stats["alu_cycles"]
        row = [layer.name, f"{gemm}", f"{found.cost:.0f}", f"{gemm / found.cost:.3f}", f"{compute:.0f}", f"{compute / found.cost:.3f}", f"{untuned}"]
        if given.template:
            template = best_of_template(layer, core)
            ratios.append(template / found.cost)
            row += [f"{template}", f"{ratios[-1]:.3f}"]
        table.add_row(*row)
        print(*row, flush=True)
    console.print(table)
    if ratios:
        print(f"geometric mean of template / tuned: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")
    print(CHISEL)


if __name__ == "__main__":
    main()
