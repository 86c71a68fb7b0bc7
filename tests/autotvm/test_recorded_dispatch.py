"""Dispatch contexts for logs and tasks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansor import autotvm
from ansor.autotvm import ApplyFixedConfig, ApplyGraphBest, ApplyHistoryBest, ConfigEntity, DispatchContext, FallbackConfigEntity, MeasureInput, MeasureResult
from ansor.compat.autotvm.recorded_dispatch import Pair, Records
from ansor.errors import ConfigError, RecordError
from tests.autotvm.templates import matmul

ARGS = (32, 32, 64)
WORKLOAD = ("tests/matmul", *ARGS)


def pair(index: int, seconds: float, target: str = "llvm", *, error_no: int = 0, args: tuple[int, ...] = ARGS) -> Pair:
    inp = MeasureInput(target, autotvm.Task("tests/matmul", args), ConfigEntity(index, None, {}))
    return inp, MeasureResult((seconds,), error_no, 1.0, 2.0)


def index_of(context: DispatchContext, target: str = "llvm") -> int | None:
    with context:
        config = context.query(target, WORKLOAD)
    return config.index if isinstance(config, ConfigEntity) else None


def test_the_least_mean_cost_is_best() -> None:
    context = ApplyHistoryBest([pair(0, 3.0), pair(1, 2.0), pair(2, 1.0, error_no=4), pair(3, 2.0), pair(4, 1.0, args=(1, 1, 1))])
    assert index_of(context) == 1
    with context:
        assert context.query("llvm", WORKLOAD).cost == 2.0


def test_files_and_iterators(tmp_path: Path) -> None:
    """Source: TVM 0.9, test_autotvm_record.py :: test_apply_history_best."""
    files = [tmp_path / "a.log", tmp_path / "b.log"]
    for path, pairs in zip(files, [[pair(0, 3.0), pair(1, 4.0)], [pair(2, 1.0), pair(3, 2.0)]], strict=True):
        path.write_text("".join(autotvm.encode(*one) + "\n" for one in pairs))

    def generated() -> Iterator[Pair]:
        yield from (pair(0, 3.0), pair(2, 1.0))

    given: list[Records] = [files[0], str(files[0]), files, generated(), autotvm.load_from_file(files[1])]
    assert [index_of(ApplyHistoryBest(records)) for records in given] == [0, 0, 2, 2, 2]
    assert index_of(ApplyHistoryBest(files, n_lines=1)) == 0 and index_of(autotvm.apply_history_best(None)) is None
    with pytest.raises(RecordError):
        ApplyHistoryBest(tmp_path / "none.log")


def test_contexts_answer_outside_of_with() -> None:
    assert autotvm.apply_history_best(None).query("llvm", ("nobody", 1)).is_fallback


def test_models_come_before_keys() -> None:
    context = ApplyHistoryBest([pair(0, 3.0, "llvm -model=a"), pair(1, 2.0, "llvm -model=b"), pair(2, 1.0, "llvm -model=unknown")])
    assert [index_of(context, target) for target in ("llvm -model=a", "llvm -model=b", "llvm -model=c", "llvm", "cuda")] == [0, 1, 2, 2, None]


def test_user_configurations_override_the_log() -> None:
    context, own = ApplyHistoryBest([pair(0, 3.0)]), ConfigEntity(9, None, {})
    context.update("llvm", WORKLOAD, own)
    context.load([pair(1, 1.0)])
    assert index_of(context) == 9 and own.cost == 0.0


def test_templates_get_logged_configurations() -> None:
    space = autotvm.task.create("tests/matmul", ARGS, "llvm").config_space
    inp, result = pair(0, 1.0)
    with ApplyHistoryBest([(inp._replace(config=space.get(8)), result)]):
        s, _ = matmul(32, 32, 64)
    assert [step.to_json()[3] for step in s.sketch().steps[:2]] == [[4], [2]]


def test_fixed_configurations_choose_between_schedules() -> None:
    task = autotvm.task.create("tests/matmul", ARGS, "llvm")
    with ApplyFixedConfig([task], "tests/matmul") as named, ApplyFixedConfig([task], ["another"]) as other:
        assert [context.query("llvm", WORKLOAD).cost for context in (named, other)] == [1e-6, 1e5]
        assert named.query("llvm", WORKLOAD) == task.config_space.get(0) and named.workload == WORKLOAD
        with pytest.raises(ConfigError, match="which is not among the tasks"):
            other.query("llvm", ("x",))


def test_records_of_a_network_come_in_order(caplog: pytest.LogCaptureFixture) -> None:
    small = ("tests/matmul", 1, 1, 1)
    with ApplyGraphBest([pair(0, 1.0), pair(1, 1.0, args=(1, 1, 1)), pair(2, 1.0)]) as context:
        given = [context.query("llvm", workload) for workload in (WORKLOAD, small, None, small, WORKLOAD)]
        assert [config.index for config in given if isinstance(config, ConfigEntity)] == [0, 1, 2, 1, 2] and not caplog.records
        assert isinstance(context.query("llvm", ("x",)), FallbackConfigEntity) and len(caplog.records) == 1
    with ApplyGraphBest([pair(0, 1.0)]) as context, pytest.raises(RecordError, match="record 0 is of"):
        context.query("llvm", small)
