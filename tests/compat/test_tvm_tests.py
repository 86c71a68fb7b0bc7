"""Every test of TVM's auto-scheduler has an existing counterpart, or a reason for having none."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.compat.tvm_tests import TESTS

ROOT = Path(__file__).resolve().parents[2]
ROWS = [(f"test_auto_scheduler_{file}.py::{name}", ours) for file, tests in TESTS.items() for name, ours in tests.items()]


@cache
def names_in(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_tvm_test_is_listed() -> None:
    assert len(ROWS) == len(dict(ROWS)) == 67 and sum("::test_" in ours for _, ours in ROWS) == 55


@pytest.mark.parametrize(("theirs", "ours"), ROWS, ids=[theirs for theirs, _ in ROWS])
def test_each_has_a_counterpart_or_a_reason(theirs: str, ours: str) -> None:
    path, mark, name = ours.partition("::")
    if mark:
        assert name in names_in(ROOT / path)
    else:
        assert len(ours.split()) > 5, "a reason is a sentence"
