"""What we generate says nothing under the warnings that people build with: kinds of declarations, their sketches, processors and compilers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.generate import generate
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.targets.base import Target, parse_target
from tests.c_compilers import STRICT, complaints, need_compiler
from tests.declarations import seeded_draw
from tests.half_declarations import HALF_KINDS, half_case
from tests.mixed_declarations import ALL_KINDS, any_case
from tests.programs import sketches

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")]  # arithmetic that wraps, on purpose
MOST = 2  # sketches of one declaration
AS_KERNELS = ("-std=gnu99", "-O1", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
HERE = {
    "cpu -mcpu=x86-64 -threads=2": "x86-64",
    "cpu -mcpu=haswell -threads=1": "haswell",
    "cpu -mcpu=x86-64-v4 -threads=2": "x86-64-v4",
    "cpu -mcpu=znver4 -threads=1": "haswell",  # vectors wider than the processor's
}
"""Targets, and the processors that their texts are built for."""
ELSEWHERE = ("arm -mcpu=cortex-a76", "micro -board=nucleo-l4r5zi", "micro -board=mps3-an547", "micro -board=spike-rvv128", "micro -board=rp2040-pico")


def texts(target: Target, seed: int, kinds: Sequence[str]) -> Iterator[str]:
    """C of every kind of declaration: of some of its sketches, each at a row; whole, and in its parts."""
    numbers = itertools.count()
    for kind in kinds:
        draw = seeded_draw(seed)
        case = any_case(draw, kind) if kind in ALL_KINDS else half_case(draw, kind)
        found = sketches(case, target)
        for sketch in found[:: -(-len(found) // MOST)]:
            row = tuple(draw.integer(0, int(size) - 1) for size in sketch.sizes)
            entry = f"program{next(numbers)}"  # zig joins the objects
            source = generate(sketch.lower_row(row, entry), target.machine, entry)
            yield source.text
            if source.apart is not None:
                yield source.apart.entry.replace(f"void {entry}(", f"void {entry}_of_parts(")
                yield from (one.text(one.name) for one in source.apart.nests)


@cache
def texts_here(text: str) -> Sequence[str]:
    """The texts for a target without halves, which both compilers build."""
    return tuple(texts(parse_target(text), 1, sorted(ALL_KINDS)))


@pytest.mark.parametrize("text", HERE)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_programs_for_this_system(compiler: str, text: str, tmp_path: Path) -> None:
    command = (need_compiler(compiler), *STRICT, *AS_KERNELS, f"-march={HERE[text]}")
    halves = texts(parse_target(text), 1, sorted(HALF_KINDS)) if compiler == "gcc" else ()  # Debian's clang has no halves for these processors
    assert not complaints(command, [*texts_here(text), *halves], tmp_path)


@pytest.mark.parametrize("text", ELSEWHERE)
def test_programs_for_other_processors(text: str, tmp_path: Path) -> None:
    target = parse_target(text)
    toolchain = target.toolchain()
    assert isinstance(toolchain, CToolchain | ImageToolchain)
    flags = [flag for flag in toolchain.flags if flag not in ("-O3", "-shared")]
    assert "-w" not in flags
    assert not complaints((*toolchain.compiler.command, *flags, *STRICT), list(texts(target, 2, [*sorted(ALL_KINDS), *sorted(HALF_KINDS)])), tmp_path)
