"""C texts that are built together, in one file or in files of their own."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.artifact import LIBRARY, PROGRAM
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler

pytestmark = pytest.mark.compiler

COUNT = 3
TEXT = "static int number(void) {{ return {0}; }}\nint one(void) {{ return number(); }}\n"
SOURCES = [CSource(TEXT.format(number), "one", ()) for number in range(COUNT)]


@pytest.fixture(scope="module")
def toolchain() -> CToolchain:
    return CToolchain(find_compiler("zig"))


@pytest.mark.parametrize(("apart", "files"), ((False, 1), (True, COUNT)))
def test_texts_share_a_library_or_have_their_own(toolchain: CToolchain, apart: bool, files: int, tmp_path: Path) -> None:
    made = replace(toolchain, apart=apart).build(SOURCES, LIBRARY, tmp_path / "made", timeout=60)
    assert made.said.ok and [one.source for one in made.artifacts] == SOURCES and {one.form for one in made.artifacts} == {LIBRARY}
    assert len({one.path for one in made.artifacts}) == files == len(list(tmp_path.iterdir()))
    assert [getattr(ctypes.CDLL(str(one.path)), one.symbol)() for one in made.artifacts] == list(range(COUNT))
    assert apart == all(one.symbol == "one" for one in made.artifacts)


def test_a_library_of_its_own_has_the_same_code_however_it_was_built(toolchain: CToolchain, tmp_path: Path) -> None:
    apart = replace(toolchain, apart=True)
    several = apart.build(SOURCES, LIBRARY, tmp_path / "several", timeout=60).artifacts
    alone = [apart.build([one], LIBRARY, tmp_path / f"alone{number}", timeout=60).artifacts[0] for number, one in enumerate(SOURCES)]
    assert [one.digest for one in several] == [one.digest for one in alone] and len({one.digest for one in alone}) == COUNT


def test_one_wrong_text_fails_the_call(toolchain: CToolchain, tmp_path: Path) -> None:
    made = replace(toolchain, apart=True).build([*SOURCES, CSource("int one(void) { wrong }\n", "one", ())], LIBRARY, tmp_path / "made", timeout=60)
    assert made.said.kind == "compile" and "wrong" in made.said.text and not made.artifacts and not list(tmp_path.iterdir())


def test_fewer_texts_share_a_call_where_each_is_linked_alone(toolchain: CToolchain) -> None:
    assert toolchain.together(LIBRARY) > toolchain.together(PROGRAM) == replace(toolchain, apart=True).together(LIBRARY) > 1
