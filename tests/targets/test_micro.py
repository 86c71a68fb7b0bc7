"""Options of targets that are boards: where code is, and how much stack there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.toolchain import IMAGE, PLAIN
from ansor.errors import TargetError
from ansor.targets.base import parse_target
from ansor.targets.micro import board_of
from ansor.te.tensor import Tensor


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
        ("nrf52840dk -stack=64K", "with 65,536 bytes of local buffers on the stack, but nrf52840dk keeps 8,192 bytes for it"),
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
