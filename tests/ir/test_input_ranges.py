"""Inputs that decide indices and divisors, on their way through arithmetic and computed stages."""

from collections.abc import Callable
from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.input_ranges import input_ranges
from ansor.measure.record import load
from ansor.te.tensor import Tensor

Declared = list[Tensor]


def shifted() -> Declared:
    ids, tab = te.placeholder((7,), "int32", name="ids"), te.placeholder((10,), name="tab")
    idx = te.compute((7,), lambda i: ids[i] + 1, name="idx")
    return [ids, tab, te.compute((7,), lambda i: tab[idx[i]], name="out")]


def strided() -> Declared:
    ids, tab = te.placeholder((7,), "int64", name="ids"), te.placeholder((100,), name="tab")
    return [ids, tab, te.compute((7, 3), lambda i, j: tab[ids[i].astype("int32") * 3 + j], name="out")]


def reduced() -> Declared:
    ids, tab = te.placeholder((7, 4), "int32", name="ids"), te.placeholder((16,), name="tab")
    r, m = te.reduce_axis((0, 4), name="r"), te.reduce_axis((0, 4), name="m")
    total = te.compute((7,), lambda i: te.sum(ids[i, r], axis=r), name="total")
    most = te.compute((7,), lambda i: te.max(ids[i, m], axis=m), name="most")
    return [ids, tab, te.compute((7,), lambda i: tab[total[i]] + tab[most[i]], name="out")]


def nested() -> Declared:
    ids, perm, tab = te.placeholder((7,), "int8", name="ids"), te.placeholder((500,), "int32", name="perm"), te.placeholder((20,), name="tab")
    return [ids, perm, tab, te.compute((7,), lambda i: tab[perm[ids[i].astype("int32")]], name="out")]


def divided() -> Declared:
    a, d = te.placeholder((7,), "int32", name="a"), te.placeholder((7,), "int32", name="d")
    twice = te.compute((7,), lambda i: d[i] * 2, name="twice")
    return [a, d, te.compute((7,), lambda i: te.truncdiv(a[i], d[i]) + te.floormod(a[i], twice[i]) + te.floordiv(a[i], d[i]), name="out")]


def divided_index() -> Declared:
    a, d, tab = te.placeholder((7,), "int32", name="a"), te.placeholder((7,), "int32", name="d"), te.placeholder((9,), name="tab")
    return [a, d, tab, te.compute((7,), lambda i: tab[te.floordiv(a[i], d[i])], name="out")]


def guarded() -> Declared:
    ids, tab = te.placeholder((7,), "int32", name="ids"), te.placeholder((10,), name="tab")
    return [ids, tab, te.compute((7,), lambda i: te.if_then_else(ids[i] >= 2, tab[ids[i] - 2], 0.0), name="out")]


CASES: list[tuple[Callable[[], Declared], dict[str, tuple[int, int]]]] = [
    (shifted, {"ids": (0, 4)}), (strided, {"ids": (0, 24)}), (reduced, {"ids": (0, 3)}), (nested, {"ids": (0, 127), "perm": (0, 19)}),
    (divided, {"d": (1, 7)}), (divided_index, {"a": (0, 8), "d": (1, 7)}), (guarded, {"ids": (0, 9)}),
]  # fmt: skip


@pytest.mark.parametrize(("declare", "expected"), CASES)
def test_ranges_keep_inside(declare: Callable[[], Declared], expected: dict[str, tuple[int, int]]) -> None:
    assert input_ranges(Dag(declare())) == expected


@pytest.mark.compiler
@pytest.mark.parametrize("declare", [case[0] for case in CASES])
def test_such_declarations_are_tuned(declare: Callable[[], Declared], tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    ansor.auto_schedule(declare, (), "cpu -threads=1", trials=2, records=records)
    found = load(records).records
    assert found and all(record.costs for record in found), found
