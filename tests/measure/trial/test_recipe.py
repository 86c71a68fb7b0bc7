"""Recipes: golden text, and programs that refuse what is none."""

from __future__ import annotations

import json

import pytest

from ansor.codegen.source import Argument
from ansor.measure.timing import TimingOptions
from ansor.measure.trial.fill import Fill
from ansor.measure.trial.recipe import HEAD, File, Source, Stored, SumsRequest, check_lines, double, input_lines, moves_line, recipe_text, sums_lines, time_line
from tests.trial_programs import built, kernel, said

ARGUMENTS = (Argument("A", (4,), "float32", "input"), Argument("B", (4,), "int8", "input"), Argument("C", (4,), "float32", "output"))


def test_golden_text() -> None:
    sources: dict[str, Source] = {"A": Fill("float32", 255, -1.0, 1.0), "B": File("int8", "/some where/b", 4)}
    source = kernel("", ARGUMENTS, tolerance=2.0)
    lines = [
        *input_lines(ARGUMENTS, sources), *check_lines(source, ARGUMENTS[2:], 16, ""), *sums_lines(ARGUMENTS, [SumsRequest("C", 16, 12, 7)]),
        moves_line(0, ""), time_line(TimingOptions(), None, wall=True),
    ]  # fmt: skip
    assert recipe_text(lines) == """\
ansor-trial 1
fill 0 f4 00000000000000ff xbff0000000000000 x3ff0000000000000
file 1 i1 4 /some where/b
check 2 0 x4030000000000000 x3e80000000000000 x3810000000000000 x4000000000000000
sums 2 16 12 0000000000000007
moves 3 0cd9473531962aaf x3e80000000000000 x4024000000000000
time wall 1 3 9 0 x3f747ae147ae147b x4008000000000000 x3ff199999999999a x4024000000000000 x7ff0000000000000
end
"""


def test_integers_have_a_first_and_a_count() -> None:
    assert input_lines([Argument("A", (4,), "int64", "input")], {"A": Fill("int64", 1, -8, 8)}) == ["fill 0 i8 0000000000000001 -8 0000000000000010"]


def test_stored_bytes_have_no_dtype() -> None:
    assert input_lines(ARGUMENTS[:1], {"A": Stored("/some where/a", 16)}) == ["stored 0 16 /some where/a"]


def test_doubles_are_their_bits() -> None:
    assert [double(value) for value in (0.0, -2.0, float("inf"))] == ["x0000000000000000", "xc000000000000000", "x7ff0000000000000"]


@pytest.mark.compiler
@pytest.mark.parametrize(("recipe", "why"), (
    ("", "it has no end after line 0"), ("ansor-trial 2\nend\n", "it is not one of version 1, see line 1"), (f"{HEAD}\nfill 0", "it has no end after line 1"),
    (f"{HEAD}\nfill 0\nend\n", "no dtype in line 2"), (f"{HEAD}\nfill 9 f4 0\nend\n", "an integer is missing, or too large, in line 2"),
    (f"{HEAD}\nfill 0 f4 12\nend\n", "16 hexadecimal digits are missing in line 2"), (f"{HEAD}\ndance\nend\n", "an unknown word begins line 2"),
    (f"{HEAD}\nfill 0 f4 {1:016x} 1.0 2.0\nend\n", "the bits of a number are missing in line 2"),
    (f"{HEAD}\nfile 0 f4 16 /not/there\nend\n", "the values of 'A' cannot be read from their file"),
    (f"{HEAD}\nstored 0 12 /dev/null\nend\n", "the stored number of bytes differs from that of 'A': 12"),
    (f"{HEAD}\nstored 0 16 /dev/null\nend\n", "the values of 'A' cannot be read from their file"),
))  # fmt: skip
def test_a_program_refuses_what_is_no_recipe(recipe: str, why: str) -> None:
    answer = said(built(kernel("", ARGUMENTS)), recipe)
    kind, text = json.loads(answer.stdout)["failure"]
    assert answer.returncode == 0 and kind == "load" and text.endswith(why)
