"""The tables that describe a candidate: golden text, names, and what there is no room for."""

from __future__ import annotations

import json

import pytest

from ansor.codegen.source import Argument, CSource, Pack, Transform
from ansor.codegen.trial.manifest import HEADER, program_text
from ansor.measure.trial.recipe import recipe_text
from tests.trial_programs import HERE, built, kernel, said

ARGUMENTS = (
    Argument("A", (4, 6), "float32", "input"),
    Argument("W", (2, 2, 3), "float16", "constant", Pack((2, 3), ((1, 0), (0, 2)), (0, -1)), Transform(((0.5, -1.0, 0.0, 2.0),), (0, 1), (2,))),
    Argument("C", (4,), "bool", "output"),
)


def test_golden_text() -> None:
    text = program_text(CSource("void f(void) {}", "f", ARGUMENTS, 64, 2))
    assert text.startswith("void f(void) {}\n" + HEADER.read_text())
    assert text[len("void f(void) {}\n" + HEADER.read_text()) + 1 :] == """\
static const long long trial_shape_0[] = {4, 6};
static const long long trial_shape_1[] = {2, 2, 3};
static const long long trial_pack_1_extents[] = {2, 3};
static const long long trial_pack_1_strides[] = {1, 0, 0, 2};
static const long long trial_pack_1_starts[] = {0, -1};
static const trial_pack trial_pack_1 = {2, trial_pack_1_extents, trial_pack_1_strides, trial_pack_1_starts};
static const int trial_transform_1_axes[] = {0, 1};
static const int trial_transform_1_rest[] = {2};
static const double trial_transform_1_matrix[] = {0x1.0000000000000p-1, -0x1.0000000000000p+0, 0x0.0p+0, 0x1.0000000000000p+1};
static const trial_transform trial_transform_1 = {1, 4, 2, 1, trial_transform_1_axes, trial_transform_1_rest, trial_transform_1_matrix};
static const long long trial_shape_2[] = {4};
static const trial_argument trial_arguments[] = {
  {"A", 'i', 'f', 4, 2, trial_shape_0, 24ull, 0, 0},
  {"W", 'c', 'f', 2, 3, trial_shape_1, 6ull, &trial_pack_1, &trial_transform_1},
  {"C", 'o', 'b', 1, 1, trial_shape_2, 4ull, 0, 0},
  };
const trial_manifest ansor_trial_manifest = {(trial_entry)f, 3, 2, 64ull, trial_arguments};
"""


@pytest.mark.compiler
def test_any_name_arrives() -> None:
    name = 'a "b" \\ \n é ??/ %s'
    source = kernel("", [Argument(name, (2,), "int32", "input"), Argument("C", (2,), "int32", "output")])
    answer = json.loads(said(built(source), recipe_text([])).stdout)
    assert answer["failure"] == ["load", f"the recipe says nothing of '{name}'"]


@pytest.mark.compiler
def test_what_there_is_no_room_for_does_not_compile_and_says_why(tmp_path_factory: pytest.TempPathFactory) -> None:
    source = kernel("", [Argument(f"x{number}", (1,), "int8", "input") for number in range(257)])
    making = HERE.toolchain.build([source], "program", tmp_path_factory.mktemp("full") / "program", timeout=60)
    assert not making.said.ok and "supports 256 arguments" in making.said.text and "measure it on the device local" in making.said.text
