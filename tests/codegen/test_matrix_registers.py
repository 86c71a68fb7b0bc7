"""Matrix registers in C: what processors are told about them, and that plain C does the same."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen.dialect import PRELUDE, Helpers
from ansor.codegen.matrix_registers import Registers, macros, shape_text
from ansor.codegen.toolchain import compile_shared
from ansor.ir.intrinsics import Intrinsic
from ansor.targets.cpu import INTRINSICS
from tests.codegen.tiles_here import PLAIN, REFUSED
from tests.programs import Bench

BLOCKS = [one for one in INTRINSICS if one.block is not None]


def test_a_shape_has_the_bytes_that_processors_load() -> None:
    text = shape_text("shape0", {0: (16, 64), 4: (3, 20)})
    numbers = [int(number) for number in text[text.index("{") + 1 : text.index("}")].split(", ")]
    assert text.startswith("static const unsigned char shape0[64] __attribute__((aligned(64))) = {")
    assert (len(numbers), numbers[0]) == (64, 1)
    assert np.flatnonzero(numbers).tolist() == [0, 16, 24, 48, 52]
    assert [numbers[k] for k in (16, 24, 48, 52)] == [64, 20, 16, 3]


def test_a_shape_serves_all_that_use_a_part_of_it() -> None:
    registers = Registers()
    assert registers.named({0: (16, 64), 1: (16, 64)}, "m", str) == "shape0"
    assert registers.named({1: (16, 64)}, "m", str) == "shape0"
    assert registers.named({1: (15, 64)}, "m", str) == "shape1"
    assert registers.first == "shape0"
    lines = registers.around(["work();"])
    assert lines[2:] == ["m_begin(shape0);", "work();", "m_end();"]
    assert Registers().around(["work();"]) == ["work();"]


@pytest.mark.compiler
@pytest.mark.parametrize("flags", [pytest.param((), marks=REFUSED), PLAIN], ids=["as here", "plain"])
@pytest.mark.parametrize("intrinsic", BLOCKS, ids=lambda one: one.name)
def test_an_instruction_is_its_declaration(intrinsic: Intrinsic, flags: tuple[str, ...], bench: Bench, tmp_path: Path) -> None:
    """As the processor runs it, or, where this one does not have it, as plain C: an incomplete block, its operands with room between rows."""
    name, helpers = f"ANSOR_{intrinsic.name}", Helpers()
    assert macros(helpers, intrinsic) == name
    body = f"""
    {shape_text("shape", {0: (5, 48), 4: (5, 28), 6: (7, 48)})}
    {name}_begin(shape);
    {name}_load(0, acc, 64);
    {name}_load(4, a, 32);
    {name}_load(6, b, 48);
    {name}_dot(0, 4, 6);
    {name}_store(0, acc, 64);
    {name}_end();"""
    library, text = tmp_path / "run.so", "void run(unsigned char *acc, unsigned char *a, unsigned char *b) {"
    compiled = compile_shared(bench.compiler, ["\n".join([PRELUDE, helpers.text(), text, body, "}"])], library, flags=(*bench.compiler.flags("native"), *flags))
    assert compiled.ok, compiled.text
    rng = np.random.default_rng(0)
    a, b, acc = (numbers(shape, dtype, rng) for shape, dtype in zip(((5, 8), (7, 12), (5, 16)), (*intrinsic.operands, intrinsic.result), strict=True))
    expected = acc.copy()
    expected[:, :12] += product(a[:, :7], b)
    ctypes.CDLL(str(library)).run(*(ctypes.c_void_p(one.ctypes.data) for one in (acc, a, b)))
    np.testing.assert_array_equal(acc, expected)


def numbers(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> NDArray[Any]:
    """Rows of four bytes: groups, or one result."""
    if dtype == "bfloat16":
        halves = rng.integers(-8, 9, (*shape, 2)).astype(np.float32).view(np.uint32) >> 16
        return halves.astype(np.uint16)  # small whole numbers, whose sums are exact
    if dtype in ("float32", "int32"):
        return rng.integers(-50, 50, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (*shape, 4), endpoint=True).astype(dtype)


def product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Sums of products over groups and what is in them."""
    one, other = ((part.astype(np.uint32) << 16).view(np.float32) if a.dtype == np.uint16 else part.astype(np.int32) for part in (a, b))
    found: NDArray[Any] = np.einsum("rgq,glq->rl", one, other)
    return found
