"""Programs of the algorithms for processors of 32 and 64 bits as C, under gcc's sanitizers: any row of any sketch, on bytes at both ends of their range."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.algorithms.test_packed_products import bytes_of, dense, joined
from tests.declarations import Case
from tests.programs import Program, sanitized_problems, sanitizer_compiler

SKETCHES = 4


class Alone(Program):
    """A program without threads, called as those with threads are."""

    @cached_property
    def source(self) -> CSource:
        one, parameters = self.target.emit(self.loops, self.entry), "(void *const *args, unsigned char *workspace"
        return replace(one, text=one.text.replace(f"{self.entry}{parameters})", f"{self.entry}{parameters}, void *parallel_for, void *pool)"))


def convolution(stride: int, padding: int, layout: str, channels: tuple[int, int] = (16, 18), size: tuple[int, int] = (8, 4)) -> list[Tensor]:
    ci, co = channels
    shapes = {"NHWC": ((2, *size, ci), (3, 3, ci, co)), "NCHW": ((2, ci, *size), (co, ci, 3, 3))}[layout]
    data, weight = te.placeholder(shapes[0], "int8", name="data"), te.placeholder(shapes[1], "int8", name="weight", constant=True)
    return [data, weight, nn.conv2d(data, weight, stride, padding, data_layout=layout, out_dtype="int32")]


CASES = {"three in two": dense(3, (65, 33)), "pairs": dense(5, (128, 2)), "tiles": convolution(1, 1, "NHWC"), "tiles NCHW": convolution(1, 1, "NCHW"),
         "odd": convolution(3, 0, "NHWC", (17, 5), (7, 5))}  # fmt: skip


@pytest.mark.compiler
@pytest.mark.parametrize(("name", "board"), [*((name, "qemu-riscv32") for name in CASES), *((name, "spike-rv64") for name in ("pairs", "tiles", "tiles NCHW"))])
def test_any_program_is_exact(name: str, board: str, tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    tensors, rng = CASES[name], np.random.default_rng(len(name))
    task = SearchTask(tensors=tensors, target=f"micro -board={board}")
    made = {one.name: one for one in task.alternatives}
    inputs = bytes_of(tensors, 3, extreme=True)
    (expected,) = evaluate(Dag(tensors).outputs, inputs)
    spaces = [space for space in task.spaces if space.algorithm in made]
    assert spaces
    programs = []
    for place in rng.permutation(len(spaces))[:SKETCHES]:
        sketch, algorithm = spaces[place].sketch, made[spaces[place].algorithm]
        (output,) = sketch.dag.outputs
        case = Case(algorithm.name, sketch.dag, joined(algorithm, inputs), {output.name: expected.reshape(output.shape)})
        programs.append(Alone(case, sketch, tuple(int(rng.integers(choice.size)) for choice in sketch.choices), task.target, "program"))
    assert sanitized_problems(programs, tmp_path, gcc) == [""] * len(programs)
