"""Which stages are an intrinsic's declaration, along which axes, and which intrinsics a processor has."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from ansor import te
from ansor.errors import TargetError
from ansor.ir.intrinsics import Block, Intrinsic, available, declare, intrinsic_named, matched
from ansor.targets.base import find_intrinsic
from ansor.targets.cpu import FEATURES, INTRINSICS
from ansor.targets.neon import MATRICES
from ansor.te import nn
from ansor.te.tensor import Tensor


def named(name: str) -> Intrinsic:
    found = find_intrinsic(name)
    assert found is not None
    return found


SIGNED = named("avx512_dpbusd_s8s8")
MIXED = named("avx512_dpbusd_u8s8")


def product(a: str = "int8", b: str = "int8", k: int = 8, m: int = 16, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    x, y = te.placeholder((k, 6) if transpose_a else (6, k), a, name="x"), te.placeholder((m, k) if transpose_b else (k, m), b, name="y")
    return nn.matmul(x, y, transpose_a, transpose_b, out_dtype="int32", name="c")


def places(tensor: Tensor, intrinsic: Intrinsic) -> tuple[str, str, str, str] | None:
    found = matched(tensor, intrinsic)
    return None if found is None else (found.lanes.name, found.group.name, found.a.name, found.b.name)


def test_a_product_of_matrices_is_an_inner_product_along_its_rows() -> None:
    assert places(product(), SIGNED) == ("j", "k", "x", "y")
    assert places(product(transpose_b=True), SIGNED) == ("j", "k", "x", "y")


def test_operands_are_told_apart_by_their_dtypes_and_by_which_has_neighbours_in_a_group() -> None:
    assert places(product("uint8", "int8"), MIXED) == ("j", "k", "x", "y")
    assert places(product("int8", "uint8"), MIXED) is None  # x would have to be b, but then a group of y is no neighbours
    assert places(product("int8", "uint8", transpose_b=True), MIXED) == ("i", "k", "y", "x")
    assert places(product(transpose_a=True, transpose_b=True), SIGNED) == ("i", "k", "y", "x")
    assert places(product(transpose_a=True), SIGNED) is None


def test_a_convolution_sums_groups_of_channels() -> None:
    data, weight = te.placeholder((1, 6, 6, 8), "int8", name="data"), te.placeholder((3, 3, 8, 16), "int8", name="weight")
    conv = nn.conv2d(data, weight, data_layout="NHWC", out_dtype="int32")
    assert places(conv, SIGNED) == ("co", "rc", "data", "weight")
    first = te.placeholder((1, 6, 6, 3), "int8", name="first")
    assert places(nn.conv2d(first, te.placeholder((3, 3, 3, 16), "int8", name="w"), data_layout="NHWC", out_dtype="int32"), SIGNED) is None


def test_what_is_not_that_declaration() -> None:
    assert matched(product(k=6), SIGNED) is None  # no whole groups
    assert matched(product(k=6), named("avx2_pmaddwd_s8s8")) is not None  # groups of two
    assert matched(product(m=3), SIGNED) is None  # fewer columns than the narrowest vector has lanes
    x, y, k = te.placeholder((6, 8), "int8", name="x"), te.placeholder((8, 16), "int8", name="y"), te.reduce_axis((0, 8), name="k")
    narrow = te.compute((6, 16), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name="narrow")
    greatest = te.compute((6, 16), lambda i, j: te.max(x[i, k].astype("int32") * y[k, j].astype("int32"), axis=k), name="greatest")
    added = te.compute((6, 16), lambda i, j: te.sum(x[i, k].astype("int32") + y[k, j].astype("int32"), axis=k), name="added")
    assert [matched(tensor, SIGNED) for tensor in (narrow, greatest, added, x)] == [None] * 4


@pytest.mark.parametrize(
    ("features", "vector_bytes", "first"),
    [
        ("avx512vnni avx512vl avx512bw avx2 sse2", 64, "avx512_dpbusd_s8s8"),
        ("avxvnni avx2 sse2", 32, "avx_dpbusd_s8s8"),
        ("avx512bw avx2 sse2", 64, "avx512_pmaddwd_s8s8"),
        ("avx2 sse2", 32, "avx2_pmaddwd_s8s8"),
        ("sse2", 16, "sse2_pmaddwd_s8s8"),
        ("dotprod", 16, "neon_sdot"),
        ("sse2", 8, None),
        ("", 64, None),
    ],
)
def test_a_processor_has_what_its_features_give(features: str, vector_bytes: int, first: str | None) -> None:
    found = [one.name for one in available(INTRINSICS, frozenset(features.split()), vector_bytes) if one.operands == ("int8", "int8")]
    assert (found[0] if found else None) == first


def test_every_intrinsic_is_its_own_declaration() -> None:
    assert len({one.name for one in INTRINSICS}) == len(INTRINSICS)
    for one in INTRINSICS:
        found = matched(one.declaration, one)
        assert found is not None and (found.lanes.name, found.group.name) == ("l", "q")
        assert one.features <= frozenset(FEATURES) and max(one.lanes) == one.declaration.shape[0]
        assert all(one.text(lanes) for lanes in one.lanes)


def test_instructions_of_two_rows_take_products_with_rows() -> None:
    for one in MATRICES:
        assert (one.rows, one.group, one.lanes) == (2, 8, (4,))
        a, b = one.operands
        assert places(product(a, b, k=16), one) == ("j", "k", "x", "y")
        x, y, k = te.placeholder((16,), a, name="x"), te.placeholder((24, 16), b, name="y"), te.reduce_axis((0, 16), name="k")
        assert matched(te.compute((24,), lambda j, x=x, y=y, k=k: te.sum(x[k].astype("int32") * y[j, k].astype("int32"), axis=k), name="one_row"), one) is None


def test_a_name_stands_for_one_intrinsic() -> None:
    assert intrinsic_named("avx512_dpbusd_s8s8") is SIGNED and pickle.loads(pickle.dumps(SIGNED)) is SIGNED
    declare([SIGNED])  # again is fine: several kinds of targets may list it
    with pytest.raises(TargetError, match="asked to declare the intrinsic 'avx512_dpbusd_s8s8', which exists already"):
        declare([replace(SIGNED, features=frozenset())])
    assert find_intrinsic("abacus") is None


@pytest.mark.parametrize(("registers", "held"), [(8, 2), (7, 1), (15, 3), (3, 1)])
def test_registers_hold_products_of_blocks_with_their_operands(registers: int, held: int) -> None:
    assert Block(16, 16, registers).held == held
