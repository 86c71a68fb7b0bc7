"""Instructions in generated code: every one of them, in every width, over the whole range of its operands; and what is written around them."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.codegen.dialect import PRELUDE, Helpers
from ansor.codegen.generate import Machine, generate
from ansor.codegen.tensorized import dot_function
from ansor.codegen.toolchain import compile_shared
from ansor.ir.dag import Dag
from ansor.ir.intrinsics import Intrinsic
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeInline, Pack, Reorder, Split, Step, Tensorize
from ansor.targets.base import parse_target
from ansor.targets.cpu import INTRINSICS
from ansor.targets.neon import MATRICES
from ansor.te.tensor import Tensor
from tests.programs import Bench, Program, case_of, sanitized_problems, sanitizer_compiler

pytestmark = pytest.mark.compiler
HERE = parse_target("cpu -threads=1")
WIDE = parse_target("cpu -mcpu=znver4 -threads=1")
"""Where text is looked at: it has the same vectors on every machine."""


def extremes(shape: tuple[int, ...], dtype: str, seed: int = 0) -> NDArray[np.generic]:
    """Numbers from the whole range, with both of its ends among them."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(limits.min, limits.max, shape, endpoint=True)
    return np.where(rng.integers(0, 3, shape) == 0, rng.choice([limits.min, limits.max], shape), values).astype(dtype)


@pytest.mark.parametrize("intrinsic", [one for one in INTRINSICS if one.result == "int32" and one.block is None], ids=lambda one: one.name)
def test_an_instruction_is_its_declaration(intrinsic: Intrinsic, bench: Bench, tmp_path: Path) -> None:
    """As the processor runs it, or, where this one does not have it, as plain arithmetic."""
    helpers, entries = Helpers(), []
    for lanes in intrinsic.lanes:
        kind, name = helpers.vector("int32", lanes), dot_function(helpers, intrinsic, lanes)
        entries.append(f"void run{lanes}(int *acc, const int *a, const int *b) {{ *({kind} *)acc = {name}(*({kind} *)acc, *({kind} *)a, *({kind} *)b); }}")
    library = tmp_path / "run.so"
    compiled = compile_shared(bench.compiler, ["\n".join([PRELUDE, helpers.text(), *entries])], library)
    assert compiled.ok, compiled.text
    run = ctypes.CDLL(str(library))
    for lanes in intrinsic.lanes:
        for seed in range(20):
            check_one(intrinsic, lanes, seed, getattr(run, f"run{lanes}"))


def check_one(intrinsic: Intrinsic, lanes: int, seed: int, function: object) -> None:
    left, right = intrinsic.operands
    a = np.tile(extremes((intrinsic.group,), "uint8" if intrinsic.offset else left, seed), (lanes, 1))
    b, acc = extremes((lanes, intrinsic.group), right, seed + 100), extremes((lanes,), "int32", seed + 200)
    expected = (acc.astype(np.int64) + (a.astype(np.int64) * b.astype(np.int64)).sum(axis=1)).astype(np.int32)
    held = [np.ascontiguousarray(x.astype(np.int16) if intrinsic.widened else x) for x in (a, b)]
    found = acc.copy()
    assert callable(function)
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (found, *held)))
    assert (found == expected).all(), (intrinsic.name, lanes, seed)


# tiles ------------------------------------------------------------------------------------------------------------------------------------------------


def product(a: str = "int8", b: str = "int8", n: int = 6, m: int = 48, k: int = 16, *, constant: bool = True, transposed: bool = False) -> list[Tensor]:
    x, y = te.placeholder((n, k), a, name="A"), te.placeholder((m, k) if transposed else (k, m), b, name="B", constant=constant)
    return [x, y, te.nn.matmul(x, y, False, transposed, out_dtype="int32", name="C")]


def tile(tensors: list[Tensor], name: str, rows: int = 3, columns: int = 24, packed: bool = True) -> Program:
    group = next(one.group for one in (*INTRINSICS, *MATRICES) if one.name == name)
    steps: list[Step] = [Pack("C", "B")] if packed else []
    steps += [Split("C", "i", (rows,), 2), Split("C", "j", (columns,), 2), Split("C", "k", (group,), 2), Split("C", "k_0", (2,), 2)]
    steps += [Reorder("C", ("i_0", "k_0_0", "j_0", "k_0_1", "i_1", "j_1", "k_1")), Tensorize("C", "j_1", "k_1", name)]
    case = case_of(tensors, **{tensor.name: extremes(tensor.shape, tensor.dtype, k) for k, tensor in enumerate(tensors[:2])})
    return Program(case, Sketch(case.dag).then(*steps), (), HERE, "program")


TRIED = {
    ("int8", "int8"): "avx512_dpbusd_s8s8", ("uint8", "int8"): "avx_dpbusd_u8s8", ("int8", "uint8"): "neon_usdot_s8u8", ("uint8", "uint8"): "avx2_pmaddwd_u8u8",
}  # fmt: skip


def tiles() -> list[Program]:
    found = []
    for (a, b), name in TRIED.items():
        found += [
            tile(product(a, b), name),
            tile(product(a, b), name, packed=False),  # rows of B are interleaved
            tile(product(a, b, transposed=True), name, packed=False),  # groups of B are gathered
            tile(product(a, b, m=44), name, columns=44),  # 16, 16, 8 and 4 lanes
            tile(product(a, b, m=23), name, columns=23),  # and 2 and 1, written out
            tile(product(a, b, n=7, m=40), name),  # tiles that are cut at both ends
            tile(product(a, b, k=24), name, columns=8),
        ]
    return found


def blocks() -> list[Program]:
    """Instructions that multiply two rows at once: tiles of an odd number of rows, of one, and cut; operands packed and not."""
    found = []
    for a, b, name in (("int8", "int8", "neon_smmla"), ("uint8", "int8", "neon_usmmla"), ("uint8", "uint8", "neon_ummla")):
        found += [
            tile(product(a, b), name, rows=2),
            tile(product(a, b), name),
            tile(product(a, b), name, rows=1),
            tile(product(a, b), name, packed=False),
            tile(product(a, b, transposed=True), name, packed=False),
            tile(product(a, b, m=23), name, columns=23),
            tile(product(a, b, n=7, m=40, k=32), name, rows=4),
        ]
    return found


def test_tiles_are_exact(shipped: Bench) -> None:
    programs = [*tiles(), *blocks()]
    for program in programs:
        assert "ANSOR_" + next(step.intrinsic for step in program.sketch.steps if isinstance(step, Tensorize)) in program.source.text
    assert shipped.problems(programs) == [""] * len(programs)


def test_tiles_under_sanitizers(tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    programs = [*tiles()[1:6:2], *tiles()[-1:], *blocks()[-7:]]
    assert sanitized_problems(programs, tmp_path, gcc) == [""] * len(programs)


def test_an_input_is_padded_and_converted_on_the_way(shipped: Bench) -> None:
    """What is read of `a` may be any expression that was inlined."""
    x, w = te.placeholder((6, 16), "int32", name="x"), te.placeholder((16, 48), "int8", name="B", constant=True)
    shifted = te.compute((6, 16), lambda i, k: te.if_then_else(i >= 1, (x[i - 1, k] % 200 - 100).astype("int8"), te.const(-5, "int8")), name="A")
    tensors = [x, w, te.nn.matmul(shifted, w, out_dtype="int32", name="C")]
    case = case_of(tensors, x=np.arange(96, dtype=np.int32).reshape(6, 16) * 37, B=extremes((16, 48), "int8"))
    given = tile(product(), "avx512_dpbusd_s8s8")
    program = replace(given, case=case, sketch=Sketch(Dag(tensors)).then(*given.sketch.steps, ComputeInline("A")))
    assert "i8x4" in program.source.text
    assert shipped.problems([program]) == [""]


def test_what_a_tile_shares_is_loaded_once() -> None:
    text = replace(tile(product(m=64), "avx512_dpbusd_s8s8", rows=3, columns=32), target=WIDE).source.text
    inside = text[text.index("for (long C_k_0_1") :].split("\n          }")[0]
    assert inside.count("(const i8x64 *)&B[") == 2 and inside.count("&A[") == 3
    assert len(re.findall(r" = ANSOR_avx512_dpbusd_s8s8_16\(", inside)) == 3 * 2 + 2  # and the offset once for each of the two vectors of B


def test_unsigned_operands_have_nothing_taken_off() -> None:
    text = tile(product("uint8"), "avx512_dpbusd_u8s8").source.text
    assert "offset" not in text and "less_" not in text


@pytest.mark.parametrize(
    ("name", "mcpu", "word"),
    [("neon_sdot", "neoverse_n1", "sdot"), ("neon_usdot_u8s8", "neoverse_v1", "usdot"), ("avx_dpbusd_s8s8", "alderlake", "vpdpbusd")],
)
def test_other_processors_get_their_instruction(name: str, mcpu: str, word: str, bench: Bench, tmp_path: Path) -> None:
    if bench.compiler.kind != "zig":
        pytest.skip("only the embedded compiler builds for other processors")
    program = tile(product("uint8" if "u8" in name else "int8"), name)
    source = generate(program.loops, Machine(16 if "neon" in name else 32), "program")
    machine = "aarch64" if "neon" in name else "x86_64"
    output = tmp_path / "program.s"
    compiled = compile_shared(bench.compiler, [source.text], output, mcpu=mcpu, flags=("-target", f"{machine}-linux-gnu", "-S"))
    assert compiled.ok, compiled.text
    assert re.search(rf"\b{word}\b", output.read_text())

