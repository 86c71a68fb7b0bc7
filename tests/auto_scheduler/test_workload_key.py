"""Parsing and comparing workload keys."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.auto_scheduler import calc_workload_dis_factor, decode_workload_key
from ansor.compat.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from tests.auto_scheduler.lines import HASHED, MATMUL

CONV = ["func1", [8, 3, 224, 224], [32, 3, 3, 3], [0, 0], [1, 1], "float32"]


def test_both_forms() -> None:
    named, hashed = parse_workload_key(MATMUL), parse_workload_key(HASHED)
    assert named == WorkloadKey("matmul", (512, 512, 512, "float32")) and not named.is_hash and str(named) == MATMUL
    assert hashed.is_hash and hashed.args == (1, 56, 56, 64, 3, 3, 64, 64) and str(hashed) == HASHED
    tensors = '["dense", ["TENSOR", [1, 512], "float32"], null]'
    assert parse_workload_key(tensors).args == (("TENSOR", (1, 512), "float32"), None) and str(parse_workload_key(tensors)) == tensors
    assert decode_workload_key(tensors) == ("dense", ["TENSOR", 1, 512, "float32", None])


@pytest.mark.parametrize("text", ["", "matmul", "[]", "{}", "3", "[" * 5000, "[" * 60 + "]" * 60, '["x"', '["x", NaN]', "\ud800"])
def test_a_text_that_is_not_a_list_is_a_name(text: str) -> None:
    assert decode_workload_key(text) == (text, None) and parse_workload_key(text) == WorkloadKey(text)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=9).map(json.dumps))
def test_any_text_is_a_key(text: str) -> None:
    name, args = decode_workload_key(text)
    assert args is None or not any(isinstance(item, list) for item in args)
    assert calc_workload_dis_factor((name, args), (name, args)) == 1


@pytest.mark.parametrize("place, to, factor", [
    (0, "func1", 1), (1, [1, 3, 112, 112], 32), (3, [1, 1], math.inf), (4, [0, 0], math.inf), (1, [5, 3, 224, 224], math.inf), (0, "func2", math.inf),
    (5, "float16", math.inf), (1, [8, 3, 224], math.inf), (1, [16, 3, 224, 224], math.inf), (1, [-1, 3, 224, 224], math.inf), (4, [True, 1], math.inf),
    (1, ["8", 3, 224, 224], math.inf),
])  # fmt: skip
def test_distances_of_workloads(place: int, to: object, factor: float) -> None:
    other = json.dumps([*CONV[:place], to, *CONV[place + 1 :]])
    assert calc_workload_dis_factor(decode_workload_key(json.dumps(CONV)), decode_workload_key(other)) == factor


def test_incompatible_workloads() -> None:
    assert calc_workload_dis_factor(("f", [10**400]), ("f", [1])) == math.inf and calc_workload_dis_factor(("f", None), ("f", None)) == 1
