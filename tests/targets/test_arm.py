"""The kinds `arm` and `armv7`: what their processors have, and that C for them compiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import Machine, generate
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import compile_files
from ansor.errors import DeclarationError, TargetError
from ansor.ir.dag import Dag
from ansor.run.zero_tuning import pick
from ansor.schedule.sketch import Sketch
from ansor.targets.arm import AARCH64, ARM, ARMV7
from ansor.targets.base import parse_target, register_kind
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor


@pytest.mark.parametrize("text", [*(f"arm -mcpu={name}" for name in ARM), *(f"armv7 -mcpu={name}" for name in ARMV7), "arm -mcpu=cortex-a72 -mattr=+dotprod"])
def test_every_processor_is_a_target_that_reads_back(text: str) -> None:
    target = parse_target(text)
    assert parse_target(str(target)) == target and target.threads == 1 and not target.is_local
    assert target.unit == INSTRUCTIONS and target.device == ("qemu-arm" if target.kind == "armv7" else "qemu-aarch64")
    assert target.vector_bytes == 16 and target.vector_registers == (16 if target.kind == "armv7" else 32)


def test_a_board_made_of_the_kind_is_built_as_it_is() -> None:
    register_kind(replace(AARCH64, name="board_of_arm", default=lambda mcpu: replace(AARCH64.default(mcpu), kind="board_of_arm")))
    made = parse_target("board_of_arm -mattr=+dotprod").toolchain()
    assert isinstance(made, CToolchain) and (made.triple, made.mcpu) == ("aarch64-linux-musl", "cortex-a72+dotprod")


def test_instructions_are_those_that_a_processor_has() -> None:
    assert not parse_target("arm -mcpu=cortex-a53").intrinsics and not parse_target("armv7").intrinsics
    assert {one.name for one in parse_target("arm -mcpu=cortex-a76").intrinsics} == {"neon_sdot", "neon_udot"}
    assert "neon_usdot_u8s8" in {one.name for one in parse_target("arm -mcpu=neoverse-v1").intrinsics}


def test_processors_that_are_not_known_are_told() -> None:
    with pytest.raises(TargetError, match="asked for target arm with -mcpu=pentium; the processors are cortex-a35, cortex-a53"):
        parse_target("arm -mcpu=pentium")


def test_added_features_are_told_to_the_compiler() -> None:
    made = parse_target("arm -mcpu=cortex-a72 -mattr=+dotprod,+fp16").toolchain()
    assert isinstance(made, CToolchain) and made.mcpu == "cortex-a72+dotprod+fullfp16" and made.triple == "aarch64-linux-musl"


def test_features_that_are_taken_away_are_told_to_the_compiler() -> None:
    made = parse_target("arm -mcpu=cortex-a76 -mattr=-dotprod,+i8mm,-fp16").toolchain()
    assert isinstance(made, CToolchain) and made.mcpu == "cortex-a76+i8mm" and made.extra == ("-mcpu=cortex_a76+i8mm-dotprod-fullfp16",)
    usual = parse_target("arm -mcpu=cortex-a76").toolchain()
    assert isinstance(usual, CToolchain) and usual.extra == ()


@pytest.mark.compiler
@pytest.mark.parametrize(("target", "has"), [("arm -mcpu=cortex-a76", True), ("arm -mcpu=cortex-a76 -mattr=-dotprod", False), ("arm -mattr=+dotprod", True)])
def test_the_compiler_uses_the_features_that_are_left(target: str, has: bool, tmp_path: Path) -> None:
    toolchain = parse_target(target).toolchain()
    assert isinstance(toolchain, CToolchain)
    text = f"#if {'!' if has else ''}defined(__ARM_FEATURE_DOTPROD)\n#error other features than asked for\n#endif\n"
    made = compile_files(toolchain.compiler, [text], tmp_path / "one.o", (*toolchain.flags, "-c"), timeout=300)
    assert made.ok, made.text


def test_where_indices_have_32_bits_buffers_and_values_are_kept_apart() -> None:
    x = te.placeholder((64,), "int64", name="X")
    y = te.placeholder((8,), "int64", name="Y")
    out = te.compute((8,), lambda i: te.floordiv(x[y[i]], y[i]), name="Z")
    loops = Sketch(Dag([x, y, out])).lower_row(())
    narrow, usual = (generate(loops, Machine(16, 1, dialect)).text for dialect in (Dialect(index_bits=32), Dialect()))
    assert "ansor_index(Y[i" in narrow.replace("Z_", "") and "static inline long long ansor_floordiv_i64" in narrow
    assert "ansor_index" not in usual and "_i64" not in usual.replace("any_i64", "")
    with pytest.raises(DeclarationError, match=r"which is 2\^31 bytes or more"):
        generate(Sketch(Dag(workloads.matmul(1 << 15, 1 << 14, 8))).lower_row(()), Machine(16, 1, Dialect(index_bits=32)))


def half_product() -> list[Tensor]:
    a, b = te.placeholder((24, 32), "float16", name="A"), te.placeholder((32, 40), "float16", name="B")
    return [a, b, nn.matmul(a, b, name="C")]


def byte_product() -> list[Tensor]:
    a, b = te.placeholder((24, 32), "int8", name="A"), te.placeholder((32, 40), "int8", name="B")
    return [a, b, nn.matmul(a, b, out_dtype="int32", name="C")]


def convolution() -> list[Tensor]:
    data, weight = te.placeholder((1, 8, 14, 14), name="data"), te.placeholder((16, 8, 3, 3), name="weight", constant=True)
    return [data, weight, nn.relu(nn.conv2d(data, weight, padding=1))]


def drawn(task: SearchTask, count: int) -> list[CSource]:
    """What the estimate picks, and some more programs."""
    best, rng = pick(task).program, np.random.default_rng(0)
    found = [task.source(best.sketch, best.row, "program")]
    for space in [task.spaces[int(k)] for k in rng.integers(0, len(task.spaces), count)]:
        rows = np.stack([rng.integers(0, size, 30) for size in space.sizes], axis=1)
        found += [task.source(space.sketch, row, "program") for row in rows[space.legal(rows)][:1].tolist()]
    return found


@pytest.mark.compiler
@pytest.mark.parametrize("target", ["arm -mcpu=cortex-a53", "arm -mcpu=neoverse-v1 -threads=2", "armv7 -mcpu=cortex-a9"])
@pytest.mark.parametrize("workload", [half_product, byte_product, convolution], ids=lambda one: one.__name__)
def test_programs_compile(workload: Callable[[], list[Tensor]], target: str, tmp_path: Path) -> None:
    task = SearchTask(workload, target=target)
    toolchain = task.target.toolchain()
    assert isinstance(toolchain, CToolchain)
    for number, source in enumerate(drawn(task, 2)):
        made = compile_files(toolchain.compiler, [source.text], tmp_path / f"{number}.o", (*toolchain.flags, "-c"), timeout=300)
        assert made.ok, made.text
