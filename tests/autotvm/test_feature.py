"""Features of scheduled programs, compared with AutoTVM's numbers."""

import random

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.autotvm import feature
from ansor.compat.autotvm.loop_touches import ANNOTATIONS
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor

SERIAL = [0] * 9 + [1, 0]


def gemm(n: int = 128) -> tuple[Schedule, list[Tensor]]:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")
    return ansor.create_schedule(c.op), [a, b, c]


def named(rows: list[list[list[object]]]) -> list[dict[object, list[object]]]:
    return [{group[0]: group[1:] for group in row} for row in rows]


def test_itervar_of_gemm() -> None:
    y, x, k = named(feature.get_itervar_feature(*gemm()))
    assert y["_attr_"] == [128, 1, 128, 2097152, *SERIAL]
    assert y["A_0"] == [128, -1, 16384, 128, 0, 0] and y["B_0"] == [0, -1, 16384, 128, 0, 0]
    assert y["C_0"] == y["C_1"] == [128, -1, 16384, 128, 0, 0]
    assert x["_attr_"] == [128, 2, 16384, 16384, *SERIAL]
    assert x["A_0"] == [0, -1, 128, 128, 0, 0] and x["B_0"] == [1, -1, 16384, 1, 0, 0]
    assert x["C_0"] == x["C_1"] == [1, -1, 128, 128, 0, 0]
    assert k["_attr_"] == [128, 3, 2097152, 128, *SERIAL]
    assert k["A_0"] == [1, -1, 128, 1, 0, 0] and k["B_0"] == [128, -1, 128, 1, 0, 0]
    assert k["C_0"] == k["C_1"] == [0, -1, 1, 128, 0, 0]
    assert y["_arith_"] == x["_arith_"] == [0, 0, 0] and k["_arith_"] == [1, 1, 0]
    assert list(y) == ["_itervar_", "_attr_", "_arith_", "A_0", "B_0", "C_0", "C_1"]


def test_itervar_describes_annotations_and_sharing_between_threads() -> None:
    s, args = gemm()
    c = s[args[2]]
    (y, x), (k,) = c.op.axis, c.op.reduce_axis
    yo, xo, yi, xi = c.tile(y, x, 8, 16)
    c.reorder(yo, xo, k, yi, xi)
    c.parallel(yo)
    c.unroll(yi)
    c.vectorize(xi)
    rows = named(feature.get_itervar_feature(s, args))
    assert [row["_attr_"][:2] for row in rows] == [[16, 1], [8, 2], [128, 3], [8, 4], [16, 5]]
    kinds = [ANNOTATIONS[row["_attr_"][4:].index(1)] for row in rows]
    assert kinds == ["parallel", "serial", "serial", "unroll", "vectorize"]
    # 16 threads together read the rows of A of a row of tiles; all of them read the same part of B.
    assert rows[0]["A_0"] == [1024, -1, 16384, 128, 16, 1] and rows[0]["B_0"] == [0, -1, 16384, 128, 1, 16]
    assert all(row["A_0"][4:] == [0, 0] for row in rows[1:])


def test_logarithms() -> None:
    s, args = gemm()
    flat = feature.get_itervar_feature_flatten(s, args)
    plain = feature.flatten_itervar_feature(feature.get_itervar_feature(s, args))
    assert len(flat) == len(plain) == 3 * (4 + 11 + 3 + 4 * 6) and flat.dtype == np.float32
    assert flat[1] == plain[1] == 1 and list(flat[4:15]) == list(plain[4:15])
    assert flat[0] == pytest.approx(np.log2(129)) and flat[19] == -1  # mod


def test_index_through_a_fused_loop() -> None:
    s, args = gemm()
    c = s[args[2]]
    c.fuse(*c.op.axis)
    fused, k = named(feature.get_itervar_feature(s, args))
    assert fused["_attr_"][:4] == [16384, 1, 16384, 2097152] and k["A_0"][0] == 1
    assert fused["A_0"][0] == fused["B_0"][0] == 1  # inside a quotient and a remainder


def test_curve_of_gemm_has_720_numbers() -> None:
    s, args = gemm()
    curve = feature.get_buffer_curve_sample_flatten(s, args)
    assert len(curve) == 3 * 4 * 30 * 2
    assert len(feature.get_buffer_curve_sample_flatten(s, args, sample_n=20)) == 480
    # A by count: reuse is 1 (k), and 128 (x and y) from 2**7 elements on; all 2**14 of them are reached last.
    reuse_by_count = curve[:60].reshape(30, 2)
    assert reuse_by_count[6].tolist() == [0, 6] and reuse_by_count[7].tolist() == [7, 0] and reuse_by_count[29].tolist() == [7, 15]


def test_loop_order_does_not_change_the_feature_count() -> None:
    rng, lengths, curves = random.Random(0), set(), set()
    for _ in range(20):
        s, args = gemm(1024)
        c = s[args[2]]
        (y, x), (k,) = c.op.axis, c.op.reduce_axis
        loops = [*c.tile(y, x, 8, 8), k]
        rng.shuffle(loops)
        c.reorder(*loops)
        lengths.add(len(feature.get_itervar_feature_flatten(s, args)))
        curves.add(len(feature.get_buffer_curve_sample_flatten(s, args)))
    assert lengths == {5 * (4 + 11 + 3 + 4 * 6)} and curves == {720}


def test_a_copy_is_the_same_buffer_in_curves() -> None:
    s, args = gemm(64)
    local = s.cache_write(args[2], "local")
    y, x = s[args[2]].op.axis
    yo, xo, yi, xi = s[args[2]].tile(y, x, 8, 8)
    s[local].compute_at(s[args[2]], xo)
    assert len(feature.get_buffer_curve_sample_flatten(s, args)) == 720
