"""The loop around the search: budgets, records, failures, interruption. A fake measurer stands for compiler and clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ansor.codegen.toolchain import find_compiler
from ansor.cost_model.random_model import RandomModel
from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.measure.measurer import Job, Measurement
from ansor.measure.record import load
from ansor.task import SearchTask
from ansor.te import workloads
from ansor.tuning import Progress, TuningRun, best_of_record, recorded_outcomes

TASK = SearchTask(workloads.matmul, (16, 16, 16), "cpu -threads=1")
OTHER = SearchTask(workloads.matmul, (16, 32, 16), "cpu -threads=1")


@dataclass
class FakeMeasurer:
    """Times are lengths of the C text; every `fail_every`-th job crashes; Ctrl-C comes at trial `interrupt_at`."""

    fail_every: int = 0
    interrupt_at: int = 0
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.compiler = find_compiler()

    def measure(self, batch: Sequence[Job]) -> Iterator[Measurement]:
        for job in batch:
            self.jobs.append(job)
            if self.interrupt_at and len(self.jobs) == self.interrupt_at:
                raise KeyboardInterrupt
            if self.fail_every and len(self.jobs) % self.fail_every == 0:
                yield Measurement(failure=Failure("crash", "SIGSEGV"))
            else:
                yield Measurement((len(job.source.text) * 1e-9,))


def run(measurer: FakeMeasurer, trials: int, records: Path | None = None, tasks: Sequence[SearchTask] = (TASK,), seed: int = 0) -> TuningRun:
    """A run that is ready to go."""
    return TuningRun(tasks, trials=trials, measurer=measurer, records=records, seed=seed, model=RandomModel(seed))  # type: ignore[arg-type]  # a fake


def test_the_budget_is_met_exactly_and_the_best_is_kept() -> None:
    measurer = FakeMeasurer()
    states = run(measurer, 21).run()
    assert len(measurer.jobs) == states[0].trials == 21
    assert states[0].seconds == min(len(job.source.text) for job in measurer.jobs) * 1e-9


def test_failures_are_counted_recorded_and_never_best(tmp_path: Path) -> None:
    seen: list[Progress] = []
    tuning = run(FakeMeasurer(fail_every=2), 10, tmp_path / "r.jsonl")
    tuning.on_progress = seen.append
    tuning.run()
    assert seen[-1].failures == {"crash": 5}
    kinds = [record.failure.kind if record.failure else "" for record in load(tmp_path / "r.jsonl").records]
    assert kinds == ["", "crash"] * 5


def test_the_same_command_continues_and_measures_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 8, path).run()
    second = FakeMeasurer()
    states = run(second, 20, path).run()
    assert len(second.jobs) == 12
    assert (states[0].resumed, states[0].trials) == (8, 20)
    rows = [(record.sketch, record.row) for record in load(path).records]
    assert len(set(rows)) == len(rows) == 20
    third = FakeMeasurer()
    assert run(third, 20, path).run()[0].seconds == states[0].seconds
    assert not third.jobs


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    tuning = run(FakeMeasurer(interrupt_at=6), 30, path)
    with pytest.raises(KeyboardInterrupt):
        tuning.run()
    assert tuning.states[0].trials == len(load(path).records) == 5
    assert tuning.states[0].best is not None


def test_seeds_reproduce_the_candidates() -> None:
    texts = []
    for seed in (0, 0, 1):
        measurer = FakeMeasurer()
        run(measurer, 24, seed=seed).run()
        texts.append([job.source.text for job in measurer.jobs])
    assert texts[0] == texts[1] != texts[2]


def test_several_tasks_share_the_budget() -> None:
    measurer = FakeMeasurer()
    states = run(measurer, 40, tasks=(TASK, OTHER)).run()
    assert sum(state.trials for state in states) == 40
    assert all(state.trials >= 8 for state in states)


def test_records_of_something_else_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 6, path).run()
    assert best_of_record(OTHER, path) is None
    assert best_of_record(SearchTask(workloads.matmul, (16, 16, 16), "cpu -threads=2"), path) is None
    found = best_of_record(TASK, path)
    assert found is not None
    assert found.seconds == min(record.latency_s for record in load(path).records)
    assert best_of_record(TASK, None) is None


def test_sketches_that_no_longer_exist_are_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    path.write_text(path.read_text().replace('"SP"', '"XX"'))
    lines: list[str] = []
    tuning = run(FakeMeasurer(), 6, path)
    tuning.report = lines.append
    assert tuning.run()[0].resumed == 0
    assert any("name sketches that do not exist in this version" in line for line in lines)


def test_records_of_another_machine_are_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    path.write_text(path.read_text().replace("-mcpu=native -threads=1 (", "-mcpu=native -threads=1 (another "))
    lines: list[str] = []
    tuning = run(FakeMeasurer(), 6, path)
    tuning.report = lines.append
    assert tuning.run()[0].resumed == 0
    assert any("4 records" in line and "made for another target" in line for line in lines)


def test_a_record_file_of_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"header":{"format":99}}\n')
    with pytest.raises(RecordError, match="format 99"):
        run(FakeMeasurer(), 4, path).run()


def test_rows_of_other_choice_tables_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    digest = TASK.spaces[0].sketch.to_json()[-1]
    assert isinstance(digest, list)
    path.write_text(path.read_text().replace(str(digest[1]), "0" * 16))
    found = recorded_outcomes(TASK, path)
    assert len(found.known) < 4
    assert list(found.left_out) == ["they name sketches that do not exist in this version"]


def test_times_of_another_compiler_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    path.write_text(path.read_text().replace(find_compiler().version, "cc 1.0"))
    assert [reason.split(" than ")[0] for reason in recorded_outcomes(TASK, path).left_out] == ["made for another target"]
