"""A firmware that has no room says what each memory lacks, part by part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansor.codegen.image import harness
from ansor.errors import ModelError
from ansor.integer.compiling import as_declared
from ansor.integer.firmware import build_firmware
from ansor.integer.firmware_room import without_bounds
from ansor.integer.from_torch import from_torch
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import FOLDER, board_names, find_board
from tests.integer.models import samples, small


def test_only_bounds_are_taken_from_a_script() -> None:
    for board in map(find_board, board_names()):
        text = harness.script(board, told=False)
        gone = set(text.splitlines()) - set(without_bounds(text).splitlines())
        assert len(gone) == 1 + board.code_is_apart and all("fit" in line for line in gone)


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize(
    ("name", "before", "after", "parts", "cure"),
    [
        ("qemu-riscv32", "size = 0x0400_0000", "size = 0x0000_5000", "ram has 20,480 bytes", "stack and its guard (run.stack)"),
        ("netduinoplus2", "size = 0x0010_0000", "size = 0x0000_1000", "flash has 4,096 bytes", "code and self-test"),
        ("netduinoplus2", "size = 0x0002_0000", "size = 0x0000_2000", "ram has 8,192 bytes", "stack and its guard (run.stack)"),
    ],
)
def test_numbers_add_up(name: str, before: str, after: str, parts: str, cure: str, tmp_path: Path) -> None:
    text = (FOLDER / f"{name}.toml").read_text()
    assert before in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(before, after, 1))
    code = as_declared(from_torch(small(), samples(), "small"), parse_target(f"micro -board={path}"))
    with pytest.raises(ModelError) as error:
        build_firmware(code, tmp_path / "net")
    said = str(error.value)
    assert parts in said and cure in said and "lld" not in said and "\n" not in said
    needed, listed, over = re.search(r"but ([\d,]+) are needed: (.*); ([\d,]+) bytes too many", said).groups()  # type: ignore[union-attr]
    numbers = [int(one.replace(",", "")) for one in re.findall(r"([\d,]*\d) of ", listed)]
    size = int(re.search(r" has ([\d,]+) bytes", said)[1].replace(",", ""))  # type: ignore[index]
    assert sum(numbers) == int(needed.replace(",", "")) == size + int(over.replace(",", ""))
    assert (code.arena_bytes if "of arena" in listed else code.constant_bytes) in numbers
    assert not list((tmp_path / "net").glob("unbounded*"))
