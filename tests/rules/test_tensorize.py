"""What the rule that tiles around an instruction derives, and where it keeps away."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Tensorize
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
