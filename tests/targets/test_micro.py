"""Options of targets that are boards: where code is, and how much stack there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.toolchain import IMAGE, PLAIN
from ansor.errors import MeasureError, TargetError
from ansor.ir.loops import stores
from ansor.measure.trial.fill import fills_of
from ansor.measure.trial.proof import HostProof
from ansor.targets.base import parse_target
from ansor.targets.micro import board_of
from ansor.te.tensor import Tensor
from tests.measure.boards.simulated import qemu_gdb


@pytest.mark.parametrize(
    ("text", "memory", "shown"),
    [
        ("netduinoplus2", "flash", ""), ("netduinoplus2 -code=flash", "flash", ""), ("netduinoplus2 -code=ram", "ram", " -code=ram"),
        ("nrf52840dk", "ram", ""), ("nrf52840dk -code=flash", "flash", " -code=flash"), ("mps3-an547 -code=ram", "itcm", ""),
        ("mps3-an547 -code=sram", "sram", " -code=sram"), ("esp32c3 -code=ram", "iram", ""),
    ],
)  # fmt: skip
def test_code_is_where_the_option_says(text: str, memory: str, shown: str) -> None:
    target = parse_target(f"micro -board={text}")
    assert board_of(target).code.name == memory and str(target) == f"micro -board={text.split()[0]}{shown}" and parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mps2-an386 -code=flash", "with -code=flash, but mps2-an386 has no flash memory; its memories are ram, code"),
        ("mps2-an386 -code=attic", "with -code=attic, but mps2-an386 has no memory of that name; its memories are ram, code"),
        ("nrf52840dk -stack=64K", "with -stack=65,536 bytes for local buffers, but the whole stack of nrf52840dk has 8,192 bytes"),
    ],
)
def test_what_a_board_does_not_have_is_refused(text: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        parse_target(f"micro -board={text}")


@pytest.mark.compiler
@pytest.mark.parametrize(("text", "boots"), [("netduinoplus2 -code=ram", 0x0800_0000), ("nrf52840dk -code=flash", None), ("mps2-an385 -code=ram", 0)])
def test_images_with_code_elsewhere_lie_there(text: str, boots: int | None, tmp_path: Path) -> None:
    target = parse_target(f"micro -board={text}")
    made = target.toolchain().build([PLAIN], IMAGE, tmp_path / "one", timeout=60)
    assert made.said.ok, made.said.text
    memory, found = board_of(target).code, read_image(made.artifacts[0].path).segments
    outside = [one for one in found if not memory.start <= one.address < memory.end]
    assert [(one.address, len(one.content)) for one in outside] == ([] if boots is None else [(boots, 8)])


def functions() -> list[Tensor]:
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: te.tanh(x[i]) + te.erf(x[i]) * te.atan(x[i]) + te.power(te.exp(x[i]), x[i]), name="y")
    return [x, te.compute((8,), lambda i: te.log1p(te.round(y[i] * y[i])), name="z")]


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("name", ["mps2-an386", "spike-rv32"])
def test_functions_need_no_library(name: str) -> None:
    program = ansor.auto_schedule(functions, (), target=f"micro -board={name}", trials=1, progress=False)
    assert program.cost and "math.h" not in program.source


def gathered() -> list[Tensor]:
    """Reads at computed places, floor division of negative numbers, a padded row."""
    x, at = te.placeholder((37, 23), name="x"), te.placeholder((37,), name="at", dtype="int32")
    return [x, at, te.compute((37, 25), lambda i, j: te.if_then_else(j // 2 - 1 >= 0, x[at[i], te.min(j // 2 + (j - 9) // 4 + 3, 22)], 0.0), name="y")]


@pytest.mark.compiler
@pytest.mark.parametrize(("func", "args"), [("conv2d", (1, 11, 11, 5, 7, 3, 2, 1)), ("matmul", (17, 23, 29)), ("softmax", (7, 33)), (gathered, ())])
def test_programs_with_any_loop_variables_compute_the_same(func: Any, args: tuple[int, ...]) -> None:
    """Row by row of random schedules, as this machine runs them."""
    tasks = [ansor.SearchTask(func, args, f"micro -board=mps2-an386 -index={bits}") for bits in (16, 32)]
    random, proof = np.random.default_rng(0), HostProof()
    for space in tasks[0].spaces[:2]:
        rows = random.integers(0, np.asarray(space.sizes, dtype=np.int64), (64, len(space.sizes)))
        for row in rows[space.legal(rows)][:1].tolist():
            sources = [task.source(space.sketch, row) for task in tasks]
            assert "for (short " in sources[0].text and "short" not in sources[1].text
            fills = fills_of(sources[0].arguments, 1, {"at": (0.0, 37.0)})
            inputs = [{one.name: fills[one.name].array(one.shape) for one in sources[0].arguments if one.role != "output"}]
            found = [proof.outputs(source, inputs) for source in sources]
            for one in found[1:]:
                assert isinstance(one, list) and isinstance(found[0], list), one
                for name, array in found[0][0].items():  # compilers add in another order
                    np.testing.assert_allclose(np.asarray(array, np.float64), np.asarray(one[0][name], np.float64), rtol=1e-5, atol=1e-5)


def test_loops_that_are_too_long_are_refused() -> None:
    target = parse_target("micro -board=mps2-an386 -index=16")
    task = ansor.SearchTask("matmul", (160, 160, 4), target)
    limit = next(one for one in target.limits if one.name == "index")
    space = task.spaces[0]
    rows = np.random.default_rng(0).integers(0, np.asarray(space.sizes, dtype=np.int64), (200, len(space.sizes)))
    for row in rows.tolist():
        loops = space.sketch.lower_row(row)
        assert bool(limit.holds(loops, target)) == all(int(loop.var.extent) < 1 << 14 for path, _ in stores(loops.body) for loop in path)
    with pytest.raises(MeasureError, match="a dimension of 20,000 is too long for a loop with -index=16, whose limit is 16,384"):
        ansor.auto_schedule("matmul", (20000, 1, 1), target=target, trials=2, progress=False)
    with pytest.raises(TargetError, match="-index=24; -index .* is a power of two, at least 16"):
        parse_target("micro -index=24")


def dense(dtype: str) -> list[Tensor]:
    a, b, k = te.placeholder((8, 32), dtype=dtype, name="a"), te.placeholder((16, 32), dtype=dtype, name="b", constant=True), te.reduce_axis((0, 32), name="k")
    return [a, b, te.compute((8, 16), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")]


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_halves_are_computed_where_the_core_has_them() -> None:
    """Proved on the board; twice as many fit a vector of Helium."""
    floats, halves = (ansor.auto_schedule(dense, (dtype,), target="micro -board=mps3-an547", trials=4, progress=False).cost for dtype in ("float32", "float16"))
    assert floats and halves and halves < 0.8 * floats


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_a_board_with_flash_is_measured_over_a_wire_with_its_code_in_ram() -> None:
    target = "micro -board=netduinoplus2 -code=ram"
    with qemu_gdb("netduinoplus2") as (text, _):
        behind = ansor.auto_schedule("matmul", (8, 8, 8), target=target, devices=[text], trials=2, progress=False)
    simulated = ansor.auto_schedule("matmul", (8, 8, 8), target=target, trials=2, progress=False)
    assert behind.cost and behind.cost == simulated.cost
