"""Candidates that are built in one call: each has the code, the image and the failure that it has alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.image import toolchain as image_toolchain
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.parts import part_name, parts_script
from ansor.codegen.image.toolchain import IMAGE, ImageToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler
from ansor.targets.boards.catalogue import find_board

pytestmark = pytest.mark.compiler
BOARDS = ("mps2-an386", "spike-rv32")


def _source(number: int, body: str = "") -> CSource:
    text = f"static int helper(int x) {{ return x * {number + 3}; }}\n{body}\nvoid sum{number}(void *const *args, unsigned char *workspace) {{\n"
    return CSource(f"{text}  int *a = args[0];\n  for (int i = 0; i < 16; ++i) a[i] = helper(a[i]) / (a[i] | 1);\n}}\n", f"sum{number}", ())


def _toolchain(board: Board) -> ImageToolchain:
    made = ImageToolchain(find_compiler("zig"), board)
    made.prepare(IMAGE)
    return made


@pytest.mark.parametrize("name", BOARDS)
def test_each_has_the_code_that_it_has_alone(name: str, tmp_path: Path) -> None:
    toolchain, sources = _toolchain(find_board(name)), [_source(number) for number in range(3)]
    made = toolchain.build(sources, IMAGE, tmp_path / "group", timeout=60)
    assert made.said.ok, made.said.text
    alone = [toolchain.build([one], IMAGE, tmp_path / f"alone{number}", timeout=60).artifacts[0] for number, one in enumerate(sources)]
    assert [one.digest for one in made.artifacts] == [one.digest for one in alone] and len({one.digest for one in alone}) == 3
    for together, single in zip(made.artifacts, alone, strict=True):
        image, other = read_image(together.path), read_image(single.path)
        assert image.segments == other.segments and image.symbols["ansor_free"] == other.symbols["ansor_free"]
    assert sorted(tmp_path.iterdir()) == sorted({one.path for one in (*made.artifacts, *alone)})


@pytest.mark.parametrize("name", BOARDS)
def test_the_driver_makes_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain, sources = _toolchain(find_board(name)), [_source(number) for number in range(2)]
    direct = toolchain.build(sources, IMAGE, tmp_path / "direct", timeout=60).artifacts
    monkeypatch.setattr(image_toolchain, "compiler_commands", lambda *words: None)
    driven = toolchain.build(sources, IMAGE, tmp_path / "driven", timeout=60).artifacts
    assert [read_image(one.path) for one in direct] == [read_image(one.path) for one in driven]
    assert [one.digest for one in direct] == [one.digest for one in driven]


def test_boards_with_code_in_flash_have_one_image_for_all(tmp_path: Path) -> None:
    toolchain, sources = _toolchain(find_board("netduinoplus2")), [_source(number) for number in range(3)]
    made = toolchain.build(sources, IMAGE, tmp_path / "group", timeout=60)
    (path,) = {one.path for one in made.artifacts}
    symbols = read_image(path).symbols
    assert len({symbols[one.symbol] for one in made.artifacts}) == 3


WRONG = {
    "this is no C": ("", "error"),
    "int counter;": ("a[0] = ++counter;", "its own variables"),
    "static int many[2] = {5};": ("a[0] = ++many[a[1] & 1];", "its own variables"),
}


@pytest.mark.parametrize("body", WRONG)
def test_what_is_wrong_with_one_is_said_of_all_of_a_call(body: str, tmp_path: Path) -> None:
    use, said = WRONG[body]
    wrong = _source(1, body)
    wrong = replace(wrong, text=wrong.text.replace("int *a = args[0];", f"int *a = args[0]; {use}"))
    made = _toolchain(find_board("mps2-an386")).build([_source(0), wrong], IMAGE, tmp_path / "group", timeout=60)
    assert not made.artifacts and made.said.kind == "compile"
    assert said in made.said.text


def test_a_lost_library_of_the_compiler_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = _toolchain(find_board("mps2-an386"))
    known = toolchain._commands()
    assert known is not None
    lost = replace(known, linking=(*(word for word in known.linking if not word.endswith(".a")), str(tmp_path / "gone.a")))
    monkeypatch.setattr(image_toolchain, "compiler_commands", lambda *words: lost)
    made = toolchain.build([_source(0)], IMAGE, tmp_path / "one", timeout=60)
    assert made.said.ok, made.said.text


def test_candidates_lie_over_one_another_or_behind() -> None:
    board = find_board("spike-rv32")
    common = _toolchain(board).harness()
    over, behind = (parts_script(board, common, ["a", "b"], over=over) for over in (True, False))
    assert "OVERLAY" in over and "OVERLAY" not in behind
    assert all(f"{part_name(one)} " in text and f"ansor_free_{one} = " in text for text in (over, behind) for one in "ab")
