"""Saving and finding measurements."""

import pytest

from ansor.autotvm import ConfigEntity, MeasureInput, MeasureResult, Task
from ansor.compat.autotvm.database import Database, filter_inputs, measure_str_key
from ansor.compat.autotvm.si_prefix import format_si_prefix


def config(index: int, code_hash: str | None = None) -> ConfigEntity:
    return ConfigEntity(index, code_hash, {})


def inp(index: int, target: str = "llvm", code_hash: str | None = None) -> MeasureInput:
    return MeasureInput(target, Task("matmul", (128,)), config(index, code_hash))


def result(seconds: float, timestamp: float = 1.0, error_no: int = 0) -> MeasureResult:
    return MeasureResult((seconds,), error_no, 0.5, timestamp)


def test_save_and_load() -> None:
    db = Database()
    db.save(inp(1), result(0.1))
    assert db.load(inp(1)) == result(0.1) and db.load(inp(2)) is None and db.load(inp(1, "cuda")) is None and db.load(inp(2), get_all=True) is None
    db.save(inp(1), result(0.2))
    assert db.load(inp(1), get_all=True) == [result(0.2)]
    db.flush()
    assert db.load(inp(1)) is None and len(db) == 0


def test_the_code_hash_distinguishes_templates() -> None:
    db = Database()
    db.save(inp(1, code_hash="aa"), result(0.1))
    db.save(inp(1, code_hash="bb"), result(0.2))
    assert db.load(inp(1, code_hash="aa")) == result(0.1) and db.load(inp(1)) is None
    assert measure_str_key(inp(1, code_hash="aa"), include_config=False) == measure_str_key(inp(2), include_config=False)


def test_the_latest_and_all() -> None:
    db = Database()
    for timestamp in (5.0, 9.0, 7.0):
        db.save(inp(1), result(timestamp / 100, timestamp), extend=True)
    assert db.load(inp(1)) == result(0.09, 9.0)
    assert [one.timestamp for one in db.load(inp(1), get_all=True) or []] == [5, 9, 7]


def test_filter() -> None:
    db = Database()
    for index, seconds in ((1, 0.1), (1, 0.2), (2, 0.3), (3, 0.01)):
        db.save(inp(index), result(seconds), extend=True)
    slow = db.filter(lambda one, results: max(found.mean_cost for found in results) > 0.15)
    assert [(one.config.index, found.costs[0]) for one, found in slow] == [(1, 0.1), (1, 0.2), (2, 0.3)]


@pytest.mark.parametrize("retry", [False, True])
def test_inputs_left_to_measure(retry: bool) -> None:
    db = Database()
    db.save(inp(1), result(0.1))
    db.save(inp(2), result(1e9, error_no=4))
    known, left = filter_inputs(db, [inp(1), inp(2), inp(3)], retry)
    assert known == [result(0.1), None if retry else result(1e9, error_no=4), None]
    assert left == ([inp(2), inp(3)] if retry else [inp(3)])


def test_rates() -> None:
    assert format_si_prefix(2.5e9, "G") == pytest.approx(2.5) and format_si_prefix(3, "") == 3 and format_si_prefix(1e-6, "u") == pytest.approx(1)
    assert format_si_prefix(1e24, "Y") == pytest.approx(1) == format_si_prefix(1e-24, "y")
