"""The rows are what was promised: names that stay apart, flags that fit, kinds that are tested."""

from __future__ import annotations

from collections import Counter

import pytest
from suite import GROUP_TITLES, GROUPS, ROWS, chosen

from tests.benchmarks.tiny import TINY

pytestmark = pytest.mark.torch


def test_names_are_unique_and_no_group_has_one() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert not set(names) & set(GROUPS)


def test_no_two_rows_of_a_group_are_the_same_operator() -> None:
    same = Counter((row.group, row.operator.func, row.operator.args) for row in ROWS)
    assert max(same.values()) == 1


def test_every_kind_is_tested_at_a_tiny_size() -> None:
    assert {row.operator.func for row in ROWS} == {operator.func for operator, _ in TINY.values()}


def test_groups() -> None:
    assert Counter(row.group for row in ROWS) == {"ansor": 20, "resnet": 23, "mobilenet": 14, "bert": 8, "subgraph": 4, "odd": 10, "int8": 2}
    assert set(GROUP_TITLES) == set(GROUPS)


def test_flags() -> None:
    layers = ((64, 56), (128, 28), (256, 14), (512, 7))
    assert [row.name for row in ROWS if row.resnet_3x3_s1] == [f"resnet_3x3_{width}_{width}_{size}" for width, size in layers]
    assert {row.name for row in ROWS if not row.fp32} == {"int8_matmul_512", "int8_matmul_1024"}
    unusual = Counter(row.name.partition("_")[0] for row in ROWS if row.unusual)
    assert unusual == {"grouped": 2, "dilated": 2, "depthwise": 2, "transposed": 2, "capsule": 2, "norm": 2, "mobilenet": 7}
    assert {row.name: row.aim for row in ROWS if row.aim is not None and not row.resnet_3x3_s1} == {
        "matmul_127": 0.95, "matmul_255": 0.95, "matmul_512": 0.97, "matmul_1000": 0.95, "matmul_1024": 0.97, "int8_matmul_512": 1.0,
    }  # fmt: skip


def test_chosen_takes_names_and_groups_in_the_order_of_the_suite() -> None:
    assert [row.name for row in chosen(["int8", "matmul_512"])] == ["matmul_512", "int8_matmul_512", "int8_matmul_1024"]
    assert chosen([]) == list(ROWS)
