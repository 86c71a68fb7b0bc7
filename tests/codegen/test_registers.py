"""Register tiles as large as legality lets them be stay in registers: nothing is spilled in the innermost loop of a matrix product."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.toolchain import Compiler
from ansor.ir.dag import Dag
from ansor.schedule.legality import accumulators, legal
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Reorder, Split, Vectorize
from ansor.support.settings import environment_with
from ansor.targets.base import parse_target
from tests.programs import Bench

TILES = {
    "x86-64-v3": [(6, 16), (2, 32), (3, 24), (12, 8), (5, 16)],
    "znver4": [(13, 32), (12, 32), (8, 48), (6, 64), (26, 16), (5, 80), (4, 96), (3, 112), (1, 416)],
    "sapphirerapids": [(13, 32), (6, 64), (26, 16)],  # clang's own choice for it is vectors of 32 bytes
    "neoverse_n1": [(13, 8), (8, 12), (6, 16)],
}


def product(rows: int, columns: int) -> Sketch:
    """A packed product, `rows` x `columns` of it held at a time."""
    a, b = te.placeholder((4 * rows, 256), name="A"), te.placeholder((256, 2 * columns), name="B", constant=True)
    k = te.reduce_axis((0, 256), name="k")
    c = te.compute((4 * rows, 2 * columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return Sketch(Dag([a, b, c])).then(
        Pack("C", "B"), Split("C", "i", (rows,), 2), Split("C", "j", (columns,), 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")), Vectorize("C", "j_1")
    )


def assembly(compiler: Compiler, text: str, mcpu: str, flags: tuple[str, ...], folder: Path) -> str:
    source, result = folder / "tile.c", folder / "tile.s"
    source.write_text(text)
    flags = (*(flag for flag in compiler.flags(mcpu) if flag not in ("-shared", "-fPIC")), *flags)
    command = (*compiler.command, *flags, "-g0", "-S", str(source), "-o", str(result))
    subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment_with({}))
    return result.read_text()


def innermost_loop(text: str, multiply: str) -> list[str]:
    """The instructions of the loop with the most multiplications, from the label its last jump goes back to."""
    bare = [re.sub(r"(#|//).*", "", line).strip() for line in text.splitlines()]
    lines = [line for line in bare if line and (not line.startswith(".") or line.endswith(":"))]
    labels = {line.rstrip(":"): number for number, line in enumerate(lines) if re.fullmatch(r"\.?L\w+:", line)}
    loops = []
    for number, line in enumerate(lines):
        found = re.search(r"(\.?L\w+)$", line)
        if found and re.match(r"j|b\.|cbn?z", line) and labels.get(found[1], number) < number:
            loops.append(lines[labels[found[1]] : number])
    simple = [loop for loop in loops if not any(re.fullmatch(r"\.?L\w+:", line) for line in loop[1:])]
    return max(simple, key=lambda loop: sum(line.startswith(multiply) for line in loop))


@pytest.mark.parametrize(("mcpu", "tile"), [(mcpu, tile) for mcpu, tiles in TILES.items() for tile in tiles])
def test_nothing_is_spilled_in_the_innermost_loop(bench: Bench, tmp_path: Path, mcpu: str, tile: tuple[int, int]) -> None:
    arm = mcpu == "neoverse_n1"
    target = parse_target("cpu -mcpu=x86-64-v2" if arm else f"cpu -mcpu={mcpu}")
    machine = Machine(16 if arm else target.vector_bytes, 1)
    loops = product(*tile).lower_row(())
    vectors = tile[0] * tile[1] * 4 // machine.vector_bytes
    assert vectors <= accumulators(32) if arm else legal(loops, target)
    text = assembly(bench.compiler, generate(loops, machine).text, mcpu, ("-target", "aarch64-linux-gnu") if arm else (), tmp_path)
    loop = innermost_loop(text, "fmla" if arm else "vfmadd")
    multiplications = sum(line.startswith("fmla" if arm else "vfmadd") for line in loop)
    assert multiplications >= vectors and multiplications % vectors == 0, loop
    assert not [line for line in loop if re.search(r"%rsp|%rbp|\bsp\b", line) and ("mm" in line or arm)], loop


@pytest.mark.parametrize("tile", [(4, 24), (3, 32), (2, 40), (7, 16), (13, 8)])
def test_tiles_that_would_spill_are_not_legal(tile: tuple[int, int]) -> None:
    assert not legal(product(*tile).lower_row(()), parse_target("cpu -mcpu=x86-64-v3"))
