"""What the rule that tiles around an instruction derives, and where it keeps away."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split, Tensorize
from ansor.search.derive import derive_sketches
from ansor.targets.base import Target, parse_target
from ansor.te import nn
from ansor.te.tensor import Tensor

VNNI = parse_target("cpu -mcpu=znver4 -threads=1")


def product(a: str = "int8", b: str = "int8", n: int = 32, m: int = 64, k: int = 32, *, constant: bool = True) -> list[Tensor]:
    x, y = te.placeholder((n, k), a, name="A"), te.placeholder((k, m), b, name="B", constant=constant)
    return [x, y, nn.matmul(x, y, out_dtype="int32", name="C")]


def sketches(tensors: list[Tensor], target: Target = VNNI) -> list[Sketch]:
    return derive_sketches(Dag(tensors), target.rules, target)


def intrinsics(found: list[Sketch]) -> set[str]:
    return {step.intrinsic if isinstance(step, Tensorize) else "" for sketch in found for step in sketch.steps} - {""}


def test_every_sketch_of_a_product_has_the_instruction_inside() -> None:
    found = sketches(product())
    assert len(found) > 2
    assert all(any(isinstance(step, Tensorize) for step in sketch.steps) for sketch in found)
    plain = found[0]
    assert str(plain) == """\
Pack(stage='C', tensor='B')
Split(stage='C', loop='i', lengths='C.i', parts=4)
Split(stage='C', loop='j', lengths='C.j', parts=4)
Split(stage='C', loop='k', lengths=(4,), parts=2)
Split(stage='C', loop='k_0', lengths='C.k', parts=2)
Reorder(stage='C', loops=('i_0', 'j_0', 'i_1', 'j_1', 'k_0_0', 'i_2', 'j_2', 'k_0_1', 'i_3', 'j_3', 'k_1'))
Tensorize(stage='C', lanes='j_3', group='k_1', intrinsic='avx512_dpbusd_s8s8')"""


@pytest.mark.parametrize(
    ("a", "b", "target", "expected"),
    [
        ("uint8", "int8", "cpu -mcpu=znver4", "avx512_dpbusd_u8s8"),
        ("int8", "uint8", "cpu -mcpu=alderlake", "avx_dpbusd_s8u8"),
        ("uint8", "uint8", "cpu -mcpu=znver4", "avx512_pmaddwd_u8u8"),
        ("int8", "int8", "cpu -mcpu=znver4 -mattr=-avx512vnni", "avx512_pmaddwd_s8s8"),
        ("int8", "int8", "cpu -mcpu=haswell", "avx2_pmaddwd_s8s8"),
        ("int8", "int8", "cpu -mcpu=neoverse-n1", "neon_sdot"),
        ("uint8", "int8", "cpu -mcpu=neoverse-v1", "neon_usdot_u8s8"),
    ],
)
def test_the_first_instruction_that_fits_is_taken(a: str, b: str, target: str, expected: str) -> None:
    assert intrinsics(sketches(product(a, b), parse_target(target))) == {expected}


@pytest.mark.parametrize(
    "tensors",
    [product(k=30), product(m=10, constant=False), product("int16", "int16")],
    ids=["no whole groups", "no whole vectors", "other dtypes"],
)
def test_where_it_does_not_apply_the_other_rules_tile(tensors: list[Tensor]) -> None:
    found = sketches(tensors)
    wide = {name for name in intrinsics(found) if "dpbusd" in name}
    assert not wide and any("C.i" in str(sketch) or "C_local.i" in str(sketch) for sketch in found)


def test_a_processor_without_instructions_tiles_as_before() -> None:
    assert intrinsics(sketches(product(), parse_target("cpu -mcpu=cortex-a53"))) == set()


def test_operands_that_are_not_constant_are_copied_or_not() -> None:
    found = sketches(product(constant=False))
    copied = {("PackInside(stage='C_local', tensor='B')" in str(sketch)) for sketch in found}
    assert copied == {True, False}


# matrix registers -------------------------------------------------------------------------------------------------------------------------------------

AMX = parse_target("cpu -mcpu=sapphirerapids -threads=1")


def test_an_instruction_on_matrix_registers_computes_rows_columns_and_sixteen_groups() -> None:
    plain = sketches(product("uint8", k=256), AMX)[0]
    assert str(plain) == """\
Pack(stage='C', tensor='B')
Split(stage='C', loop='i', lengths='C.i', parts=4)
Split(stage='C', loop='j', lengths='C.j', parts=4)
Split(stage='C', loop='k', lengths=(64,), parts=2)
Split(stage='C', loop='k_1', lengths=(4,), parts=2)
Split(stage='C', loop='k_0', lengths='C.k', parts=2)
Reorder(stage='C', loops=('i_0', 'j_0', 'i_1', 'j_1', 'k_0_0', 'i_2', 'j_2', 'k_0_1', 'i_3', 'k_1_0', 'j_3', 'k_1_1'))
Tensorize(stage='C', lanes='j_3', group='k_1_1', intrinsic='amx_u8s8')"""


@pytest.mark.parametrize(("k", "groups"), [(256, 16), (64, 16), (40, 10), (72, 9), (16, 4)])
def test_a_block_sums_as_many_groups_as_divide_the_reduction(k: int, groups: int) -> None:
    found = sketches(product("uint8", k=k), AMX)[0]
    assert Split("C", "k", (4 * groups,), 2) in found.steps


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        (product("uint8", n=5), {"avx512_dpbusd_u8s8"}),
        (product("uint8", k=12), {"avx512_dpbusd_u8s8"}),
        (product("uint8", constant=False), {"amx_u8s8", "avx512_dpbusd_u8s8"}),
    ],
    ids=["few rows", "few groups", "an operand that is not packed"],
)
def test_where_blocks_would_be_nearly_empty_vectors_are_used(tensors: list[Tensor], expected: set[str]) -> None:
    assert intrinsics(sketches(tensors, AMX)) == expected


def test_registers_load_no_operand_that_is_computed_where_it_is_read() -> None:
    x, y = te.placeholder((32, 64), "uint8", name="A"), te.placeholder((64, 64), "int8", name="B", constant=True)
    shifted = te.compute((32, 64), lambda i, k: x[i, k] + te.const(1, "uint8"), name="shifted")
    found = sketches([x, y, nn.matmul(shifted, y, out_dtype="int32", name="C")], AMX)
    copied = [sketch for sketch in found if "tensor='shifted'" in str(sketch)]
    assert intrinsics(copied) == {"amx_u8s8"}
    assert intrinsics([sketch for sketch in found if sketch not in copied]) == {"avx512_dpbusd_u8s8"}


def test_padding_is_written_first() -> None:
    x, y = te.placeholder((1, 8, 8, 64), "uint8", name="A"), te.placeholder((3, 3, 64, 32), "int8", name="B", constant=True)
    found = sketches([x, y, nn.conv2d(x, y, padding=1, out_dtype="int32", data_layout="NHWC", kernel_layout="HWIO")], AMX)
    assert intrinsics(found) == {"amx_u8s8"}


@pytest.mark.parametrize("columns", [16, 17, 20, 24, 33, 36, 50])
def test_any_number_of_columns_has_programs(columns: int) -> None:
    found = derive_sketches(Dag(product("uint8", n=64, m=columns, k=64)), AMX.rules, AMX)
    assert intrinsics(found) == {"amx_u8s8"}
    for sketch in found:
        rows = np.stack([np.random.default_rng(0).integers(0, size, 400) for size in sketch.sizes], axis=1)
        assert legal_rows(sketch.lower_rows(rows), AMX, len(rows)).any()


@pytest.mark.parametrize(("size", "expected"), [(5, "avx512_dpbusd_u8s8"), (7, "amx_u8s8")])
def test_narrow_images_have_few_rows_for_blocks(size: int, expected: str) -> None:
    x, y = te.placeholder((1, size, size, 64), "uint8", name="A"), te.placeholder((3, 3, 64, 32), "int8", name="B", constant=True)
    found = sketches([x, y, nn.conv2d(x, y, padding=1, out_dtype="int32", data_layout="NHWC", kernel_layout="HWIO")], AMX)
    assert intrinsics(found) == {expected}
