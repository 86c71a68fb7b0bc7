"""Alternatives come from an open registry, are checked, and are searched along under the workload's own key."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor import te
from ansor.algorithms import base
from ansor.algorithms.base import Alternative, alternatives_of, register_algorithm
from ansor.api import apply_best
from ansor.cost_model.random_model import RandomModel
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.measure.measurer import Measurer
from ansor.measure.record import load
from ansor.measure.timing import TimingOptions
from ansor.run.budget import Budget
from ansor.run.options import SearchOptions, Trials
from ansor.run.states import best_of_recorded
from ansor.run.tuning import TuningRun
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask
from ansor.te import workloads


def halves(dag: Dag) -> Iterator[Alternative]:
    """The sum of a vector of 64 as the sum of 8 sums."""
    if dag.inputs[0].shape != (64,):
        return
    a = te.placeholder((64,), name="A")
    i, j = te.reduce_axis(8, "i"), te.reduce_axis(8, "j")
    parts = te.compute((8,), lambda k: te.sum(a[k * 8 + i], axis=i), name="parts")
    yield Alternative("halves", Dag([a, te.compute((), lambda: te.sum(parts[j], axis=j), name="B")]))


def wrong(dag: Dag) -> Iterator[Alternative]:
    """Twice the sum."""
    a, i = te.placeholder((64,), name="A"), te.reduce_axis(64, "i")
    dag_of_twice = Dag([a, te.compute((), lambda: te.sum(a[i] * 2.0, axis=i), name="B")])
    yield from (replace(good, name="wrong", dag=dag_of_twice) for good in halves(dag))


TASK = SearchTask(workloads.zero_rank_reduce, (64,), "cpu -threads=1", algorithms=(halves, wrong))


def test_the_spaces_are_those_of_all_and_the_key_is_the_workloads() -> None:
    plain = SearchTask(workloads.zero_rank_reduce, (64,), "cpu -threads=1", algorithms=())
    assert TASK.workload_key == plain.workload_key and not plain.alternatives
    assert [space.name for space in TASK.spaces if not space.algorithm] == [space.name for space in plain.spaces]
    assert {space.algorithm for space in TASK.spaces} == {"", "halves", "wrong"}
    assert not SearchTask(workloads.zero_rank_reduce, (32,), algorithms=(halves,)).alternatives


def test_each_is_measured_verified_recorded_and_found_again(tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    with Measurer(timing=TimingOptions(repeat=1, min_repeat_ms=0.1)) as measurer:
        state = TuningRun([TASK], measurer=measurer, budget=Budget(24), search=SearchOptions(0, RandomModel(0)), trials=Trials(records)).run()[0]
    outcome = {(record.algorithm, record.failure.kind if record.failure else "") for record in load(records).records}
    assert outcome >= {("", ""), ("halves", ""), ("wrong", "wrong_answer")} and ("wrong", "") not in outcome
    assert state.best is not None and len(recorded_outcomes(TASK, records).known) == state.trials
    best = best_of_recorded(TASK, recorded_outcomes(TASK, records))
    assert best is not None and best.sketch.dag is state.best.sketch.dag and best.row == state.best.row
    sketch, tensors = apply_best(TASK, records)
    assert sketch.dag is best.sketch.dag and tuple(tensors) == best.sketch.dag.tensors


def test_records_of_algorithms_that_are_not_searched_are_left_out(tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    with Measurer(timing=TimingOptions(repeat=1, min_repeat_ms=0.1)) as measurer:
        task = SearchTask(workloads.zero_rank_reduce, (64,), "cpu -threads=1", algorithms=(halves,))
        TuningRun([task], measurer=measurer, budget=Budget(12), search=SearchOptions(0, RandomModel(0)), trials=Trials(records)).run()
    found = recorded_outcomes(SearchTask(workloads.zero_rank_reduce, (64,), "cpu -threads=1", algorithms=()), records)
    own = [record for record in load(records).records if not record.algorithm]
    assert 0 < len(found.known) == len(own) < 12 and sum(found.left_out.values()) == 12 - len(own)


def test_a_registered_algorithm_is_offered_to_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_algorithms", dict(base._algorithms))
    assert register_algorithm("halves")(halves) is halves
    assert [one.name for one in SearchTask(workloads.zero_rank_reduce, (64,)).alternatives] == ["halves"]
    with pytest.raises(DeclarationError, match="'halves', which exists already"):
        register_algorithm("halves")(wrong)
    with pytest.raises(DeclarationError, match="not registered; registered are: .*winograd"):
        alternatives_of(TASK.dag, ["winnograd"])


def test_alternatives_of_another_computation_are_refused() -> None:
    def other(dag: Dag) -> Iterator[Alternative]:
        yield Alternative("other", Dag(workloads.zero_rank_reduce(32)))

    with pytest.raises(DeclarationError, match="alternative 'other' takes"):
        alternatives_of(TASK.dag, [other])
    with pytest.raises(DeclarationError, match="two alternatives of one workload are called 'halves'"):
        alternatives_of(TASK.dag, [halves, halves])
