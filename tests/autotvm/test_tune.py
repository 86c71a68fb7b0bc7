"""The loop that asks a tuner, measures, and reports back."""

import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansor import autotvm
from ansor.autotvm import ConfigSpace, GATuner, GridSearchTuner, MeasureInput, MeasureResult, RandomTuner, XGBTuner, callback, database, record
from ansor.compat.autotvm.base_tuner import Tuner
from ansor.compat.autotvm.local_measure import BuildResult
from ansor.compat.autotvm.measure import MeasureOption, Runner
from ansor.compat.autotvm.measured import Failed
from ansor.errors import ConfigError, RecordError
from tests.autotvm import templates


class NoBuilder:
    """Builds nothing, `n_parallel` at a time."""

    def __init__(self, n_parallel: int = 4) -> None:
        self.n_parallel, self.closed = n_parallel, 0

    def set_task(self, task: autotvm.Task) -> None:
        self.task = task

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        return [BuildResult() for _ in measure_inputs]

    def close(self) -> None:
        self.closed += 1


class Invented(Runner):
    """Configuration n takes |n - best| + 1 milliseconds; those from `broken` on fail. `batches`: the requested indices."""

    def __init__(self, best: int = 6, broken: int = 10**9) -> None:
        self.best, self.broken, self.batches = best, broken, list[list[int]]()

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]) -> list[MeasureResult]:
        indices = [inp.config.index for inp in measure_inputs]
        self.batches.append(indices)
        return [Failed(4, f"broken {index}", 0.1, 5.0 + index) if index >= self.broken
                else MeasureResult(((abs(index - self.best) + 1) * 1e-3,), 0, 0.1, 5.0 + index) for index in indices]  # fmt: skip


@pytest.fixture
def task() -> autotvm.Task:
    assert templates.LIMIT
    return autotvm.task.create("tests/matmul", (16, 32, 8))


def test_trials_in_batches_and_the_best(task: autotvm.Task) -> None:
    tuner, builder, runner = GridSearchTuner(task), NoBuilder(), Invented()
    tuner.tune(10, MeasureOption(builder, runner))
    assert runner.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and builder.closed == 1 and builder.task is task
    assert tuner.best_config == task.config_space.get(6) and tuner.best_iter == 6 and tuner.best_flops == pytest.approx(2 * 16 * 32 * 8 / 1e-3)
    assert tuner.best_measure_pair is not None and tuner.best_measure_pair[1].costs == (1e-3,) and tuner.ttl == 0


def test_stops_at_the_end_of_the_space(task: autotvm.Task) -> None:
    runner = Invented()
    GridSearchTuner(task, (0, 6)).tune(100, MeasureOption(NoBuilder(), runner))
    assert sum(map(len, runner.batches)) == 7


def test_early_stopping(task: autotvm.Task) -> None:
    runner = Invented(best=2)
    tuner = GridSearchTuner(task)
    tuner.tune(50, MeasureOption(NoBuilder(), runner), early_stopping=5)
    assert runner.batches == [[0, 1, 2, 3], [4, 5, 6, 7]] and (tuner.n_trial, tuner.early_stopping) == (50, 5)


@pytest.mark.lightgbm
@pytest.mark.parametrize("kind", [GridSearchTuner, RandomTuner, GATuner, XGBTuner])
def test_every_tuner_tunes_without_measuring(kind: type[Tuner], task: autotvm.Task) -> None:
    tuner = kind(task)
    tuner.tune(10, MeasureOption(NoBuilder(), Invented()))
    assert tuner.best_flops > 1


@pytest.mark.compiler
@pytest.mark.lightgbm
def test_a_tuned_program(task: autotvm.Task, tmp_path: Path) -> None:
    """With a compiler and a processor, logging to a file; then the best of the log."""
    tuner = XGBTuner(task, plan_size=4, seed=1)
    option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0))
    tuner.tune(9, option, callbacks=[callback.log_to_file(tmp_path / "logs" / "matmul.log")])
    loaded = record.load(tmp_path / "logs" / "matmul.log").records
    assert len(loaded) == 9 and tuner.best_measure_pair is not None and tuner.train_ct == 2
    best = min(loaded, key=lambda one: one.result.mean_cost)
    assert best.input.config == tuner.best_config and best.input.task == task
    with autotvm.apply_history_best(tmp_path / "logs" / "matmul.log"):
        s, args = templates.matmul(16, 32, 8)
    again, same = task.instantiate(best.input.config)
    assert str(s.sketch(args)) == str(again.sketch(same))


def test_tuners_can_be_reset(task: autotvm.Task) -> None:
    for tuner in (GridSearchTuner(task), RandomTuner(task, seed=2), GATuner(task, pop_size=6, seed=2)):
        runs = []
        for _ in range(2):
            runs.append(Invented())
            tuner.tune(20, MeasureOption(NoBuilder(), runs[-1]))
            tuner.reset()
            assert tuner.best_config is None and tuner.best_flops == 0
        assert runs[0].batches == runs[1].batches


@pytest.mark.lightgbm
def test_model_based_tuners_can_be_reset(task: autotvm.Task) -> None:
    tuner, runs = XGBTuner(task, plan_size=8, seed=2), [Invented(), Invented()]
    for runner in runs:
        tuner.tune(20, MeasureOption(NoBuilder(), runner))
        tuner.reset()
    assert runs[0].batches == runs[1].batches and not tuner.xs


def test_when_everything_fails(task: autotvm.Task, caplog: pytest.LogCaptureFixture) -> None:
    tuner = GridSearchTuner(task)
    tuner.tune(6, MeasureOption(NoBuilder(), Invented(broken=0)))
    (warning,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    path = Path(warning.rpartition(" ")[2])
    assert "no configuration of task tests/matmul works" in warning and path.read_text().count("broken") == 6
    path.unlink()
    assert tuner.best_config is None and tuner.best_flops == 0


def test_too_many_failures_are_logged(task: autotvm.Task, caplog: pytest.LogCaptureFixture) -> None:
    tuner, level = GridSearchTuner(task), logging.getLogger("autotvm").level
    tuner.set_error_threshold(7)
    tuner.tune(16, MeasureOption(NoBuilder(), Invented(broken=1)))
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.DEBUG]
    assert len(told) == 16 - 12 and "No: 13\tGFLOPS: 0.00/0.00" in told[0] and logging.getLogger("autotvm").level == level


def test_mistakes(task: autotvm.Task) -> None:
    space = ConfigSpace()
    with pytest.raises(ConfigError, match="asked for a tuner of 'matmul'; give autotvm.task.create"):
        autotvm.RandomTuner("matmul")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ConfigError, match="asked to measure by None; give autotvm.measure_option"):
        autotvm.RandomTuner(task).tune(1, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="asked to measure by 3; give 'local'"):
        autotvm.measure_option(runner=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="asked to tune ConfigSpace, which has no programs"):
        GridSearchTuner(space).tune(3, MeasureOption(NoBuilder(), Invented()))
    with pytest.raises(ConfigError, match="a rate in 'GB'"):
        GridSearchTuner(task).tune(3, MeasureOption(NoBuilder(), Invented()), si_prefix="GB")


# callbacks --------------------------------------------------------------------------------------------------------------------------------------------


def test_log_to_file(task: autotvm.Task, tmp_path: Path) -> None:
    opened = io.StringIO()
    for _ in range(2):
        GridSearchTuner(task).tune(
            6, MeasureOption(NoBuilder(), Invented(broken=5)), callbacks=[callback.log_to_file(str(tmp_path / "a.log")), callback.log_to_file(opened)]
        )
    records = record.load(tmp_path / "a.log").records
    assert len(records) == 12 and opened.getvalue() == (tmp_path / "a.log").read_text()
    assert [one.input.config.index for one in records] == [*range(6)] * 2 and records[5].result.costs == (1e9,)
    with pytest.raises(RecordError, match="protocol 'pickle'; give 'json'"):
        callback.log_to_file("x", protocol="pickle")
    with pytest.raises(RecordError, match="cannot be written to .*; name another file"):
        GridSearchTuner(task).tune(1, MeasureOption(NoBuilder(), Invented()), callbacks=[callback.log_to_file(tmp_path)])


def test_monitor_and_database(task: autotvm.Task) -> None:
    monitor, db = callback.Monitor(), database.Database()
    GridSearchTuner(task).tune(6, MeasureOption(NoBuilder(), Invented(broken=5)), callbacks=[monitor, callback.log_to_database(db)])
    flop = 2 * 16 * 32 * 8
    assert monitor.trial_scores() == pytest.approx([flop / milliseconds * 1e3 for milliseconds in (7, 6, 5, 4, 3)] + [0])
    assert monitor.trial_timestamps().tolist() == [5, 6, 7, 8, 9, 10]
    assert len(db) == 6 and db.load(next(iter(db))) is not None
    monitor.reset()
    assert not len(monitor.trial_scores())


def test_progress_bar(task: autotvm.Task, capsys: pytest.CaptureFixture[str]) -> None:
    GridSearchTuner(task).tune(6, MeasureOption(NoBuilder(), Invented(best=2)), callbacks=[callback.progress_bar(6, "[1]", "M")])
    lines = capsys.readouterr().out.split("\r")[1:]
    assert re.match(r"\[1\] Current/Best:    8.19/   8.19 MFLOPS \| Progress: \(4/6\) \| \d+\.\d\d s$", lines[0])
    assert re.match(r"\[1\] Current/Best:    2.73/   8.19 MFLOPS \| Progress: \(6/6\) \| \d+\.\d\d s Done\.\n$", lines[1])
    with pytest.raises(ConfigError, match="a rate in 'x'"):
        callback.progress_bar(6, si_prefix="x")
