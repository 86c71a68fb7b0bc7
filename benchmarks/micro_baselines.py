"""Counts instructions of int8 kernels with requantisation on boards: tuned kernels compared with the plain loops of their declarations, with reference loops as
in TensorFlow Lite Micro, and with optimised C.

    python benchmarks/micro_baselines.py [WORDS ...] [--trials 64] [--seeds 3]

WORDS: rows whose names or boards contain one of them; all by default. The C is in micro_kernels/, written by hand from published descriptions of common
kernels. It gets its weights in its own order, and its sizes as constants. Every result is checked. Costs are exact, so other work on the machine does not
matter. It needs the simulators.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ansor.api import tune_tasks
from ansor.codegen.source import Argument, CSource, Pack
from ansor.integer.declare import declaration
from ansor.integer.operators import SIGNED, Convolution, Dense, Form, Window
from ansor.integer.rescale import HIGH_WORD, Rescale
from ansor.measure.measure_task import MeasureTask
from ansor.measure.measurer import Candidate, Measurer
from ansor.schedule.sketch import Sketch
from ansor.tasks.task import SearchTask

KERNELS = Path(__file__).parent / "micro_kernels"
LARGEST = 2.0**HIGH_WORD / 10
"""The largest multiplier of a rescale; results then fill most of a byte."""
RANGES = (("bias", -500.0, 500.0), ("multipliers", LARGEST / 2, LARGEST))


@dataclass(frozen=True)
class Geometry:
    """A layer. into, out: channels of the input and of the output; taps: 0 for a dense layer."""

    height: int
    width: int
    into: int
    out: int
    taps: int = 0
    stride: int = 1
    pad: int = 0
    depthwise: bool = False

    @property
    def reference(self) -> str:
        """The C file of its reference loops."""
        return "depthwise_reference.c" if self.depthwise else "conv_reference.c" if self.taps else "dense_reference.c"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input."""
        return (1, self.height, self.width, self.into) if self.taps else (1, self.into)

    def sizes(self) -> dict[str, int]:
        """The sizes, by their names in the C code."""
        height, width = ((size + 2 * self.pad - self.taps) // self.stride + 1 for size in (self.height, self.width))
        named = {"HEIGHT": self.height, "WIDTH": self.width, "IN": self.into, "OUT": self.out, "TAPS_Y": self.taps, "TAPS_X": self.taps}
        return named | {"STRIDE": self.stride, "PAD": self.pad, "OUT_HEIGHT": height, "OUT_WIDTH": width}

    def operator(self, wide: bool) -> Convolution | Dense:
        """The operator with constants of the right shapes. wide: weights have 16 bits."""
        form = Form(wide=True, multiple=2) if wide else SIGNED
        bias = np.zeros(self.out, np.int32)
        rescale = Rescale(bias, HIGH_WORD, 0, rounds=False)
        if not self.taps:
            return Dense("y", ("x",), np.zeros((self.into, self.out), np.int8), bias, rescale, form)
        weights = np.zeros((self.taps, self.taps, self.into, 1 if self.depthwise else self.out), np.int8)
        window = Window((self.taps, self.taps), (self.stride, self.stride), (self.pad,) * 4)
        return Convolution("y", ("x",), weights, bias, rescale, replace(window, depthwise=self.depthwise), form)


class Rescaled(SearchTask):
    """A task with realistic multipliers of a rescale: with the usual small integers, every result would be 0 or -1."""

    @cached_property
    def measure_task(self) -> MeasureTask:
        made = super().measure_task
        return replace(made, ranges=(*made.ranges, *RANGES))


@dataclass(frozen=True)
class Row:
    """A comparison. files: optimised C; the best of them counts, or the plain loops if there are none. most: the limit on the instructions of a tuned kernel,
    relative to the optimised C.

    wide: the tuned kernel's weights have 16 bits, as `ansor.compile_int8` stores them for this board; the handwritten C and the plain loops have 8-bit weights.
    as_declared: the optimised C takes the weights of a convolution as [y, x, in, out].
    """

    name: str
    board: str
    geometry: Geometry
    files: tuple[str, ...]
    most: float
    wide: bool = False
    as_declared: bool = False

    def task(self, *, wide: bool = False) -> SearchTask:
        """The task of its declaration, for its board."""
        tensors = declaration(self.geometry.operator(wide), [self.geometry.shape])
        return Rescaled(tensors=tensors, target=f"micro -board={self.board}", name=self.name)


CONV, DEPTHWISE = Geometry(16, 16, 16, 32, 3, 1, 1), Geometry(25, 5, 64, 64, 3, 1, 1, depthwise=True)
POINTWISE, DENSE = Geometry(25, 5, 64, 64, 1), Geometry(1, 1, 640, 128)
M4, M55 = "mps2-an386", "mps3-an547"
BY_DSP, BY_HELIUM = ("conv_smlad.c",), ("conv_vmladava.c",)
RVV, BY_RVV = ("spike-rvv128", "spike-rvv256"), ("conv_rvv.c",)
SCALAR = ("qemu-riscv32", "qemu-riscv64")
VECTOR_ROWS = (("conv 3x3 16-32", CONV), ("conv 1x1 64-64", POINTWISE))
ROWS = (
    Row("conv 3x3 16-32", M4, CONV, BY_DSP, 1.0, wide=True),
    Row("conv 5x5 stride 2 16-32", M4, Geometry(16, 16, 16, 32, 5, 2, 2), BY_DSP, 1.0, wide=True),
    Row("conv 1x1 64-64", M4, POINTWISE, BY_DSP, 1.0, wide=True),
    Row("conv 1x1 64-64, weights of bytes", M4, POINTWISE, BY_DSP, 1.0),
    Row("depthwise 3x3 64", M4, DEPTHWISE, ("depthwise_smlad.c", "depthwise_3x3.c"), 1.0),
    Row("depthwise 3x3 64 stride 2", M4, replace(DEPTHWISE, stride=2), ("depthwise_smlad.c", "depthwise_3x3.c"), 1.0),
    Row("dense 640-128", M4, DENSE, ("dense_smlad.c",), 1.0, wide=True),
    Row("conv 3x3 16-32", M55, CONV, BY_HELIUM, 1.15),
    Row("conv 1x1 64-64", M55, POINTWISE, BY_HELIUM, 1.15),
    Row("dense 640-128", M55, DENSE, ("dense_vmladava.c",), 1.15),
    *(Row(name, board, geometry, BY_RVV, 1.15, as_declared=True) for board in RVV for name, geometry in VECTOR_ROWS),
    *(Row("dense 640-128", board, DENSE, ("dense_rvv.c",), 1.15) for board in RVV),
    *(Row(name, board, geometry, (), 1 / 3) for board in SCALAR for name, geometry in (*VECTOR_ROWS, ("dense 640-128", DENSE))),
)


@dataclass(frozen=True)
class Result:
    """Instructions of the plain loops, the reference loops, the best optimised C, and a tuned program for each seed."""

    row: Row
    plain: float
    reference: float
    by_hand: float
    tuned: tuple[float, ...]

    def __str__(self) -> str:
        worst = max(self.tuned)
        found = ", ".join(f"{one:,.0f}" for one in self.tuned)
        word = "" if worst <= self.row.most * self.by_hand else f"  more than {self.row.most:.3g}"
        return (f"{self.row.name:34}{self.row.board:14}{self.plain:12,.0f}{self.reference:12,.0f}{self.by_hand:12,.0f}  {found:36}"
                f"{self.plain / worst:6.2f}{self.reference / worst:8.2f}{worst / self.by_hand:7.2f}{word}")  # fmt: skip


HEAD = f"{'kernel':34}{'board':14}{'plain':>12}{'reference':>12}{'optimised':>12}  {'tuned, a seed each':36}{'/plain':>6}{'/refer.':>8}{'share':>7}"


def plain(task: SearchTask, entry: str = "plain") -> CSource:
    """The loops of the declaration."""
    return task.source(Sketch(task.dag), (), entry)


def by_hand(row: Row, task: SearchTask, file: str) -> CSource:
    """Handwritten C with the sizes of a row. It takes weights as [out, y, x, in], for a dense layer as [out, in], or as declared for depthwise layers and for
    optimised C with `as_declared`."""
    given, turned = plain(task, "by_hand"), not row.geometry.depthwise and (not row.as_declared or file == row.geometry.reference)
    sizes = ", ".join(f"{name} = {size}" for name, size in row.geometry.sizes().items())
    arguments = tuple(replace(one, pack=_outputs_first(one)) if one.name == "weights" and turned else one for one in given.arguments)
    return replace(given, text=f"enum {{ {sizes} }};\n{(KERNELS / file).read_text()}", arguments=arguments)


def _outputs_first(weights: Argument) -> Pack:
    """The layout with the last dimension first."""
    *taps, out = weights.shape
    rank = len(weights.shape)
    strides = [tuple(int(loop == dimension + 1) for loop in range(rank)) for dimension in range(rank - 1)]
    return Pack((out, *taps), (*strides, (1, *(0,) * (rank - 1))))


def counted(task: SearchTask, source: CSource) -> float:
    """Instructions of one run; its results are checked."""
    with Measurer(task.target, None) as measurer, closing(measurer.measure([Candidate(task.measure_task, source, None)])) as results:
        (found,) = results
    assert found.failure is None and found.cost is not None, found.failure
    return found.cost


def tuned(row: Row, trials: int, seed: int) -> float:
    """Instructions of the best program that the search finds."""
    (state,) = tune_tasks([row.task(wide=row.wide)], trials=trials, seed=seed, progress=False)
    assert state.cost is not None
    return state.cost


def result_of(row: Row, trials: int, seeds: Sequence[int]) -> Result:
    """One row of the table."""
    task = row.task()
    loops = counted(task, plain(task))
    reference = counted(task, by_hand(row, task, row.geometry.reference))
    best = min((counted(task, by_hand(row, task, file)) for file in row.files), default=loops)
    return Result(row, loops, reference, best, tuple(tuned(row, trials, seed) for seed in seeds))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORDS", help="rows whose names or boards contain one of them; all by default")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(arguments)
    chosen = [row for row in ROWS if not given.words or any(word in f"{row.name} {row.board}" for word in given.words)]
    print(HEAD)
    over = 0
    for row in chosen:
        result = result_of(row, given.trials, range(given.seeds))
        over += max(result.tuned) > row.most * result.by_hand
        print(result, flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
