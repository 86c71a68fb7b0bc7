"""What is proposed for a board fits it: arguments, workspace and code, before anything is built."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.toolchain import IMAGE, ImageToolchain
from ansor.codegen.source import CSource
from ansor.errors import MeasureError
from ansor.measure.boards.fit import misfit
from ansor.schedule.legality import legal, legal_rows
from ansor.targets.base import Target, parse_target
from ansor.targets.boards.catalogue import FOLDER
from ansor.targets.micro import board_of
from ansor.targets.room import needs_of, room_of
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

SIZES = (1, 16, 16, 8, 16, 3, 1, 1)


def board(folder: Path, kibibytes: int, name: str = "qemu-riscv32") -> Target:
    """A board of the package with little memory."""
    path = folder / "small.toml"
    text = (FOLDER / f"{name}.toml").read_text().replace("size = 0x0400_0000", f"size = {kibibytes << 10}").replace("stack = 0x1_0000", "stack = 0x2000")
    path.write_text(text)
    return parse_target(f"micro -board={path}")


def rows_of(space: SketchSpace, count: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, np.asarray(space.sizes, dtype=np.int64), (count, len(space.sizes)))


@pytest.mark.parametrize(("op", "args"), [("conv2d", SIZES), ("softmax", (16, 64))])
def test_populations_are_judged_as_single_programs_are(op: str, args: tuple[int, ...], tmp_path: Path) -> None:
    target, seen = board(tmp_path, 112), set()
    for space in SearchTask(op, args, target).spaces[:6]:
        rows = rows_of(space, 24)
        together = legal_rows(space.sketch.lower_rows(rows), target, len(rows))
        limit = next(one for one in target.limits if one.name == "room")
        single = [space.sketch.lower_row(row) for row in rows.tolist()]
        assert together.tolist() == [bool(legal(one, target)) for one in single] == space.legal(rows).tolist()
        seen |= {bool(limit.holds(one, target)) for one in single}
    assert seen == {True, False}


@pytest.mark.compiler
@pytest.mark.parametrize(("name", "kibibytes"), [("qemu-riscv32", 128), ("qemu-riscv64", 128)])
def test_what_is_proposed_is_linked_and_has_room(name: str, kibibytes: int, tmp_path: Path) -> None:
    target = board(tmp_path, kibibytes, name)
    toolchain, checked = target.toolchain(), 0
    for op, args in (("conv2d", SIZES), ("softmax", (8, 64)), ("matmul", (32, 32, 32))):
        task = SearchTask(op, args, target)
        for number, space in enumerate(task.spaces[:3]):
            rows = rows_of(space, 40, number)
            for row in rows[space.legal(rows)][:1].tolist():
                made = toolchain.build([task.source(space.sketch, row)], IMAGE, tmp_path / "one", timeout=60)
                assert made.said.ok, made.said.text
                image, needs = made.artifacts[0], needs_of(space.sketch.lower_row(row), board_of(target), target.alignment)
                free = read_image(image.path).symbols["ansor_free"]
                assert misfit(image.source, board_of(target), free) is None and room_of(board_of(target)).holds(needs)
                checked += 1
    assert checked >= 3


@pytest.mark.compiler
def test_code_that_has_no_room_does_not_fit_and_says_how_much_there_is(tmp_path: Path) -> None:
    target = board(tmp_path, 96)
    table = CSource("const char table[99999] = {1};\nvoid run(void *const *args, unsigned char *workspace) { *(const char **)args = table; }\n", "run", ())
    made = target.toolchain().build([table], IMAGE, tmp_path / "one", timeout=60)
    assert made.said.kind == "does_not_fit" and re.search(r"code of the program does not fit: ram of .*small.toml has [\d,]+ bytes for it", made.said.text)


@pytest.mark.parametrize(("name", "said"), [("nrf52840dk", "38,912 for its code"), ("netduinoplus2", "bytes of flash are left")])
def test_a_task_that_cannot_fit_is_refused_with_the_numbers_before_anything_is_built(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageToolchain, "prepare", lambda *one: pytest.fail("nothing is built"))
    numbers = r"its arguments need 3,146,496 bytes .*\(float32\[512, 512\]\), and .* has [\d,]+ for them: [\d,]+ of ram, less"
    with pytest.raises(MeasureError, match=numbers) as error:
        ansor.auto_schedule("matmul", (512, 512, 512), target=f"micro -board={name}", trials=4, progress=False)
    assert "for the stack" in str(error.value) and said in str(error.value)
