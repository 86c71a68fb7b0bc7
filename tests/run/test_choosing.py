"""Where devices do not run plain loops, there is a program or an error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.errors import AnsorWarning, MeasureError, ScheduleError
from ansor.te.tensor import Tensor
from ansor.zoo.operators import matmul
from tests.vta_declarations import conv2d, dense

TINY = "vta -core=uop_bytes=3,input_bytes=5,weight_bytes=9,accumulator_bytes=7"


def test_what_no_core_computes_is_an_error_without_trials_as_with_them() -> None:
    said = "for vta -core=default, but none can run there: it makes C of float32; a VTA core makes one tensor of int8 at a time"
    with pytest.raises(ScheduleError, match=f"asked for a program of matmul.* {said}.*in the declaration$"):
        ansor.auto_schedule(matmul, (16, 16, 16), "vta", progress=False)
    with pytest.raises(MeasureError, match=f"asked to measure programs of matmul.* {said}.*in the declaration$"):
        ansor.auto_schedule(matmul, (16, 16, 16), "vta", trials=2, progress=False)


def test_a_core_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ScheduleError, match=r"which allows no program of its sketches; of \d+ programs its limits refused .*raise or change these limits"):
        ansor.auto_schedule(conv2d((1, 64, 14, 14), 64, 5, pad=2), target=TINY, progress=False)


def test_programs_that_all_failed_are_an_error_with_the_first_reason() -> None:
    with pytest.warns(AnsorWarning, match="all 2 programs that were tried have failed"), pytest.raises(ScheduleError) as caught:
        ansor.auto_schedule(_cubes(), target="vta", trials=2, progress=False)
    assert re.fullmatch(
        r"asked for a program of y for vta -core=default, and no measured program was valid \(instantiation 2\); the first: asked the ALU of a VTA core "
        r"for a value of x_acc three times; .*", str(caught.value),
    )  # fmt: skip


def _cubes() -> list[Tensor]:
    x = te.placeholder((16, 64), "int8", name="x")
    wide = te.compute(x.shape, lambda i, j: x[i, j].astype("int32"), name="wide")
    return [x, te.compute(x.shape, lambda i, j: (wide[i, j] * wide[i, j] * wide[i, j]).astype("int8"), name="y")]


def test_operators_are_saved_as_their_text(tmp_path: Path) -> None:
    from ansor.vta.compiled import operator_from_text

    program = ansor.auto_schedule(dense(16, 32, 32), target="vta", progress=False)
    assert isinstance(program, ansor.Program)
    (file,) = program.save(tmp_path / "out").iterdir()
    assert file.name == "out.vta" and file.read_text() == program.source
    assert np.array_equal(operator_from_text(file.read_text()).words, operator_from_text(program.source).words)
