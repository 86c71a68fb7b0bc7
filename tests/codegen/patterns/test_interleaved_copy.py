"""Operands of instructions that the kernel copies into groups, and what is summed of them ahead of the tiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.toolchain import compile_shared
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite, ComputeAt, Pack, PackInside, Reorder, Split, Step, Tensorize
from ansor.targets.base import find_intrinsic, parse_target
from tests.codegen.test_tensorized import extremes
from tests.programs import Bench, Program, case_of, sanitized_problems, sanitizer_compiler

pytestmark = pytest.mark.compiler
HERE = parse_target("cpu -threads=1")
WIDE = parse_target("cpu -mcpu=znver4 -threads=1")
"""Where text is looked at: it has the same vectors on every machine."""
SIGNED = "avx512_dpbusd_s8s8"


def program(name: str = SIGNED, n: int = 40, m: int = 96, k: int = 24, columns: int = 48, *, constant: bool = False, outside: bool = False) -> Program:
    """A product whose B is copied by the kernel (or packed ahead of time), in tiles of 5 rows.

    outside: k is summed in blocks around tiles half as wide, which are stored and loaded again.
    """
    intrinsic = find_intrinsic(name)
    assert intrinsic is not None
    left, right = intrinsic.operands
    a, b = te.placeholder((n, k), left, name="A"), te.placeholder((k, m), right, name="B", constant=constant)
    tensors = [a, b, te.nn.matmul(a, b, out_dtype="int32", name="C")]
    own = "C_local"
    steps: list[Step] = [CacheWrite("C"), (Pack if constant else PackInside)(own, "B")]
    steps += [Split("C", "i", (5,), 2), Split("C", "j", (columns,), 2), Reorder("C", ("i_0", "j_0", "i_1", "j_1")), ComputeAt(own, "C", "j_0")]
    steps += [Split(own, "j", (columns // 2 if outside else columns,), 2), Split(own, "k", (intrinsic.group,), 2), Split(own, "k_0", (3,), 2)]
    order = ("k_0_0", "j_0", "k_0_1") if outside else ("j_0", "k_0_0", "k_0_1")
    steps += [Reorder(own, (*order, "i", "j_1", "k_1")), Tensorize(own, "j_1", "k_1", name)]
    case = case_of(tensors, **{tensor.name: extremes(tensor.shape, tensor.dtype, seed) for seed, tensor in enumerate(tensors[:2])})
    return Program(case, Sketch(case.dag).then(*steps), (), HERE, "program")


def programs() -> list[Program]:
    return [
        program(),
        program(constant=True),
        program(outside=True),
        program(constant=True, outside=True),
        program(n=43, m=90),  # tiles that are cut at both ends, and zeros beyond the columns
        program(m=46, columns=23),  # 23 = 16 + 4 + 2 + 1
        program(k=20),  # groups that do not divide into blocks
        program("avx_dpbusd_s8s8", columns=24),
        program("avx512_dpbusd_u8s8"),
        program("avx2_pmaddwd_u8u8", columns=32),
        program("neon_sdot", columns=32),
    ]


def test_copies_and_sums_are_exact(shipped: Bench) -> None:
    found = programs()
    assert shipped.problems(found) == [""] * len(found)


def test_copies_and_sums_under_sanitizers(tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    two = parse_target("cpu -threads=2")
    found = [program(outside=True), program(n=43, m=90), program(m=46, columns=23), replace(program(), target=two), replace(program(outside=True), target=two)]
    assert sanitized_problems(found, tmp_path, gcc) == [""] * len(found)


def test_rows_are_interleaved_in_registers() -> None:
    text = program().source.text
    copy = text[text.index("static void program_nest0") :].split("\n}\n")[0]
    assert copy.count("= interleaved4_i8x32(") == copy.count("= interleaved4_i8x16(") == 1 and copy.count("for (") == 3
    assert "else" not in copy


def test_where_columns_end_elements_are_copied_one_by_one() -> None:
    text = program(m=90).source.text
    copy = text[text.index("static void program_nest0") :].split("\n}\n")[0]
    assert "interleaved4_i8x32(" in copy and "else {" in copy and " ? " in copy.split("else {")[1]


@pytest.mark.parametrize("found", [program(), program(constant=True), program(outside=True)], ids=["copied", "constant", "blocks"])
def test_what_an_offset_adds_is_summed_once_for_all_rows(found: Program) -> None:
    text = replace(found, target=WIDE).source.text
    assert "offset" not in text and re.search(r"\bB(_packed)?_sums\b", text)
    tile = text[text.index("static void program_nest1" if "packed" not in text else "static void program_nest2") :]
    calls = len(re.findall(rf" = ANSOR_{SIGNED}_\d+\(", tile))
    assert calls == tile.count("= less_i32x") == 5 * (2 if "C_local_k_0_0 == 1" in tile else 3)


def test_what_is_summed_ahead_is_taken_off_in_the_last_block() -> None:
    assert re.search(r"if \(C_local_k_0_0 == 1\) \{\s+acc\d_0 = less_i32x16\(", replace(program(outside=True), target=WIDE).source.text)
    assert "if (C_local_k_0_0" not in replace(program(), target=WIDE).source.text


def test_few_rows_sum_on_the_way() -> None:
    text = program(n=20).source.text
    assert "_sums" not in text and "_offset" in text


def test_blocks_of_the_reduction_that_do_not_divide_get_plain_code() -> None:
    text = program(k=20).source.text
    assert "_sums" not in text and "ANSOR_avx" not in text


@pytest.mark.parametrize("name", ["avx512_dpbusd_u8s8", "avx2_pmaddwd_u8u8", "neon_sdot"])
def test_without_an_offset_there_is_nothing_to_sum(name: str) -> None:
    text = program(name, columns=32).source.text
    assert "_sums" not in text and "less_" not in text


def test_arm_gets_its_instruction_after_the_copy(bench: Bench, tmp_path: Path) -> None:
    if bench.compiler.kind != "zig":
        pytest.skip("only the embedded compiler builds for other processors")
    source = generate(program("neon_sdot", columns=32).loops, Machine(16), "program")
    assert "interleaved4_i8x16(" in source.text
    output = tmp_path / "program.s"
    compiled = compile_shared(bench.compiler, [source.text], output, mcpu="neoverse_n1", flags=("-target", "aarch64-linux-gnu", "-S"))
    assert compiled.ok, compiled.text
    text = output.read_text()
    assert re.search(r"\bsdot\b", text) and re.search(r"\b(zip[12]|st4)\b", text)
