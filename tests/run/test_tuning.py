"""The loop around the search: budgets, records, failures, interruption. A fake measurer stands for compiler and clock."""

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.random_model import RandomModel
from ansor.errors import MachineTrouble, MeasureError, RecordError
from ansor.measure.failure import Failure
from ansor.measure.machine_identity import compiler_identity
from ansor.measure.measurer import Candidate, Measurement
from ansor.measure.record import load
from ansor.run.budget import FEWEST_TRIALS, Budget
from ansor.run.options import COUNTED, Rounds, SearchOptions, Trials
from ansor.run.reporter import Callbacks
from ansor.run.states import Progress, best_of_recorded
from ansor.run.tuning import TuningRun
from ansor.run.zero_tuning import pick
from ansor.search.expected_gain import expected_gain
from ansor.search.tuner import Outcome, Pick, Tuner, TunerOptions
from ansor.targets.unit import INSTRUCTIONS, SECONDS
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask
from ansor.te import workloads

TASK = SearchTask(workloads.matmul, (16, 16, 16), "cpu -threads=1")
OTHER = SearchTask(workloads.matmul, (16, 32, 16), "cpu -threads=1")
TWO = SearchTask(workloads.matmul, (16, 16, 16), "cpu -threads=2")


@dataclass
class FakeMeasurer:
    """Times are lengths of the C text; every `fail_every`-th job crashes; Ctrl-C comes at trial `interrupt_at`; a trial moves the clock `now` by `pace`."""

    fail_every: int = 0
    interrupt_at: int = 0
    failures: dict[int, Failure] = field(default_factory=dict)  # of single trials
    jobs: list[Candidate] = field(default_factory=list)
    pace: Callable[[Candidate], float] = lambda job: 0.0
    now: float = 100.0

    def __post_init__(self) -> None:
        self.toolchain, self.unit, self.model, self.ahead = CToolchain(find_compiler()), SECONDS, "local", 0
        self.is_here = True
        self.devices: Sequence[str] = ("one", "two")

    def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
        for job in batch:
            self.jobs.append(job)
            self.now += self.pace(job)
            if self.interrupt_at and len(self.jobs) == self.interrupt_at:
                raise KeyboardInterrupt
            if len(self.jobs) in self.failures:
                yield Measurement(failure=self.failures[len(self.jobs)])
            elif self.fail_every and len(self.jobs) % self.fail_every == 0:
                yield Measurement(failure=Failure("crash", "SIGSEGV"))
            else:
                yield Measurement((len(job.source.text) * 1e-9,))


def run(measurer: FakeMeasurer, trials: int, records: Path | None = None, tasks: Sequence[SearchTask] = (TASK,), seed: int = 0) -> TuningRun:
    """A run that is ready to go."""
    search = SearchOptions(seed, RandomModel(seed))
    return TuningRun(tasks, measurer=measurer, budget=Budget.of(trials), search=search, trials=Trials(records))  # type: ignore[arg-type]  # a fake


def timed(
    measurer: FakeMeasurer, minutes: float | None, trials: int | None = None, tasks: Sequence[SearchTask] = (TASK,), min_gain: float | None = 0.0
) -> TuningRun:
    """A run by the measurer's clock."""
    rounds, search = Rounds(clock=lambda: measurer.now), SearchOptions(0, RandomModel(0))
    budget = Budget.of(trials, minutes, min_gain)
    return TuningRun(tasks, measurer=measurer, budget=budget, search=search, rounds=rounds)  # type: ignore[arg-type]  # a fake


def test_the_budget_is_met_exactly_and_the_best_is_kept() -> None:
    measurer = FakeMeasurer()
    states = run(measurer, 21).run()
    assert len(measurer.jobs) == states[0].trials == 21
    assert states[0].cost == min(len(job.source.text) for job in measurer.jobs) * 1e-9


def test_failures_are_counted_recorded_and_never_best(tmp_path: Path) -> None:
    seen: list[Progress] = []
    tuning = run(FakeMeasurer(fail_every=2), 10, tmp_path / "r.jsonl")
    tuning.callbacks = Callbacks(update=seen.append)
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
    assert run(third, 20, path).run()[0].cost == states[0].cost
    assert not third.jobs


@pytest.mark.parametrize(("trials", "words"), [(1, "1 recorded trial"), (2, "2 recorded trials")])
def test_what_it_continues_after_is_counted(tmp_path: Path, trials: int, words: str) -> None:
    lines = list[str]()
    run(FakeMeasurer(), trials, tmp_path / "r.jsonl").run()
    tuning = run(FakeMeasurer(), 3, tmp_path / "r.jsonl")
    tuning.callbacks = Callbacks(say=lines.append)
    tuning.run()
    assert any(line.endswith(f": continuing after {words}") for line in lines)


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    tuning = run(FakeMeasurer(interrupt_at=6), 30, path)
    with pytest.raises(KeyboardInterrupt):
        tuning.run()
    assert tuning.states[0].trials == len(load(path).records) == 5
    assert tuning.states[0].best is not None


def test_ctrl_c_while_a_round_is_cleared_away_is_heard() -> None:
    class Late(FakeMeasurer):
        def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
            try:
                yield from super().measure(batch)
            finally:
                raise KeyboardInterrupt

    tuning = run(Late(), 64)
    with pytest.raises(KeyboardInterrupt):
        tuning.run()
    assert tuning.states[0].trials == 16


def test_seeds_reproduce_the_candidates() -> None:
    texts = []
    for seed in (0, 0, 1):
        measurer = FakeMeasurer()
        run(measurer, 24, seed=seed).run()
        texts.append([job.source.text for job in measurer.jobs])
    assert texts[0] == texts[1] != texts[2]


def test_exact_costs_are_searched_with_their_own_options_unless_others_are_given() -> None:
    counted, timed_, given = FakeMeasurer(), FakeMeasurer(), TunerOptions(anchors=1)
    counted.unit = INSTRUCTIONS
    searches = [next(iter(run(measurer, 9).tuners.values())).options.local_share for measurer in (counted, timed_)]
    assert searches == [COUNTED.local_share, TunerOptions().local_share] and searches[0].early > searches[1].early
    own = TuningRun([TASK], measurer=counted, budget=Budget.of(9), search=SearchOptions(model=RandomModel(0), tuner=given))  # type: ignore[arg-type]  # a fake
    assert next(iter(own.tuners.values())).options == replace(given, budget=9)


def test_several_tasks_share_the_budget() -> None:
    measurer = FakeMeasurer()
    states = run(measurer, 40, tasks=(TASK, OTHER)).run()
    assert sum(state.trials for state in states) == 40
    assert all(state.trials >= 8 for state in states)


def test_records_of_something_else_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 6, path).run()
    assert best_of_recorded(OTHER, recorded_outcomes(OTHER, path)) is None
    assert best_of_recorded(TWO, recorded_outcomes(TWO, path)) is None
    found = best_of_recorded(TASK, recorded_outcomes(TASK, path))
    assert found is not None
    assert found.cost == min(record.cost for record in load(path).records)


def test_sketches_that_no_longer_exist_are_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    path.write_text(path.read_text().replace('"SP"', '"XX"'))
    lines: list[str] = []
    tuning = run(FakeMeasurer(), 6, path)
    tuning.callbacks = Callbacks(alarm=lines.append)
    assert tuning.run()[0].resumed == 0
    assert any("sketches of rules that are not here" in line for line in lines)


def test_records_of_another_machine_are_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    path.write_text(path.read_text().replace("-mcpu=native -threads=1 (", "-mcpu=native -threads=1 (another "))
    lines: list[str] = []
    tuning = run(FakeMeasurer(), 6, path)
    tuning.callbacks = Callbacks(alarm=lines.append)
    assert tuning.run()[0].resumed == 0
    assert any("4 records" in line and "made on another processor: another " in line for line in lines)


def test_records_for_another_number_of_threads_are_said_but_no_alarm(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    lines: list[str] = []
    alarms: list[str] = []
    for _ in range(2):
        tuning = run(FakeMeasurer(), 4, path, (TWO,))
        tuning.callbacks = Callbacks(lines.append, alarms.append)
        tuning.run()
    assert sum("4 records left out: made for another target" in line for line in lines) == 2 and not alarms


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
    assert list(found.left_out) == ["sketches of rules that are not here (another version's, or your own)"]


def test_times_of_another_compiler_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(FakeMeasurer(), 4, path).run()
    here = compiler_identity(find_compiler().version)
    path.write_text(path.read_text().replace(here, "zig cc 0.9"))
    assert list(recorded_outcomes(TASK, path).left_out) == [f"made with zig cc 0.9, here {here}"]


# trouble ----------------------------------------------------------------------------------------------------------------------------------------------


def test_trouble_of_the_machine_is_no_trial(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    measurer = FakeMeasurer(failures={2: Failure("machine", "no memory; free some"), 4: Failure("machine", "no memory; free some")})
    tuning = run(measurer, 8, path)
    with pytest.raises(MachineTrouble, match="no memory; free some"):
        tuning.run()
    assert tuning.states[0].trials == 6 == len(load(path).records) and not tuning.states[0].failures, "the others of the round count"
    again = run(FakeMeasurer(), 8, path).run()[0]
    assert again.resumed == 6 and again.trials == 8 == len(load(path).records)


@pytest.mark.parametrize("kind", ["link_lost", "reset", "queue"])
def test_a_device_that_is_gone_is_no_failure_of_the_program(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r.jsonl"
    tuning = run(FakeMeasurer(failures={2: Failure(kind, "the cable"), 5: Failure(kind, "the cable")}), 8, path)
    state = tuning.run()[0]
    assert len(tuning.tuners[id(state)]._outcomes) == 6, "the search learns nothing from them"
    assert state.trials == 8 and state.failures == {kind: 2} and len(load(path).records) == 6
    again = run(FakeMeasurer(), 8, path).run()[0]
    assert again.resumed == 6 and again.trials == 8 == len(load(path).records)


def test_counters_are_those_of_the_best_program() -> None:
    class Counting(FakeMeasurer):
        def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
            for found in super().measure(batch):
                yield replace(found, counters=(("sent", found.cost),))

    state = run(Counting(), 8).run()[0]
    assert state.counters == {"sent": state.cost}


def test_first_programs_that_all_fail_alike_end_the_run(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ill = {number: Failure("compile", f"/tmp/{number}.c: unknown argument") for number in range(1, 100)}
    measurer = FakeMeasurer(failures=ill)
    with pytest.raises(MeasureError, match="the first 6 programs all fail in the same way"):
        run(measurer, 64, path).run()
    assert len(measurer.jobs) == 6 and not load(path).records
    assert run(FakeMeasurer(), 8, path).run()[0].resumed == 0
    path.unlink()
    del ill[3]
    assert run(FakeMeasurer(failures=ill), 8, path).run()[0].trials == 8 == len(load(path).records)


# minutes ----------------------------------------------------------------------------------------------------------------------------------------------


def test_minutes_alone_leave_the_number_of_trials_open() -> None:
    measurer = FakeMeasurer(pace=lambda job: 0.5)
    states = timed(measurer, 0.25).run()
    assert states[0].trials == len(measurer.jobs) == 30 and measurer.now == 100 + 15


def test_a_run_that_began_before_it_was_made_has_less_time() -> None:
    measurer = FakeMeasurer(pace=lambda job: 1.0)
    rounds, search = Rounds(clock=lambda: measurer.now, started=measurer.now - 50.0), SearchOptions(0, RandomModel(0))
    states = TuningRun((TASK,), measurer=measurer, budget=Budget(None, 60.0), search=search, rounds=rounds).run()  # type: ignore[arg-type]  # a fake
    assert states[0].trials == 10


def test_only_the_trial_in_flight_ends_late() -> None:
    measurer = FakeMeasurer(pace=lambda job: 4.0)
    timed(measurer, 0.5).run()
    assert len(measurer.jobs) == 8 and measurer.now == 100 + 32


def test_a_round_is_cut_to_what_fits_at_the_pace_of_the_task() -> None:
    measurer = FakeMeasurer(pace=lambda job: 1.0)
    tuning = timed(measurer, 20.5 / 60)
    asked: list[int] = []
    tuner = tuning.tuners[id(tuning.states[0])]
    ask = tuner.ask

    def noted(count: int, share: float | None = None) -> list[Pick]:
        asked.append(count)
        return ask(count, share)

    tuner.ask = noted  # type: ignore[method-assign]
    tuning.run()
    assert asked == [16, 4, 1]


def test_of_two_budgets_the_nearer_ends_the_run() -> None:
    for minutes, trials, expected in ((0.25, 100, 30), (10.0, 21, 21)):
        measurer = FakeMeasurer(pace=lambda job: 0.5)
        timed(measurer, minutes, trials).run()
        assert len(measurer.jobs) == expected


def test_time_that_is_over_at_once_measures_nothing() -> None:
    measurer = FakeMeasurer()
    tuning = timed(measurer, 1e-3)
    measurer.now += 1.0
    assert tuning.run()[0].best is None and not measurer.jobs


def test_the_search_is_told_the_share_of_the_time_and_of_trials_only_without_it() -> None:
    shares: dict[float | None, list[float | None]] = {0.4: [], None: []}
    for minutes, seen in shares.items():
        measurer = FakeMeasurer(pace=lambda job: 0.5)
        tuning = timed(measurer, minutes, None if minutes else 48)
        tuner = tuning.tuners[id(tuning.states[0])]
        ask = tuner.ask

        def noted(count: int, share: float | None = None, ask: Callable[..., list[Pick]] = ask, seen: list[float | None] = seen) -> list[Pick]:
            seen.append(share)
            return ask(count, share)

        tuner.ask = noted  # type: ignore[method-assign]
        tuning.run()
    assert shares[0.4] == pytest.approx([0, 1 / 3, 2 / 3]) and shares[None] == [None, None, None]


def test_with_minutes_alone_a_run_ends_when_little_is_expected_of_the_rest() -> None:
    lines: list[str] = []
    measurer = FakeMeasurer(pace=lambda job: 0.5)
    tuning = timed(measurer, 3.0, min_gain=None)
    tuning.callbacks = Callbacks(lines.append)
    tuning.run()
    assert FEWEST_TRIALS <= len(measurer.jobs) < 360
    (why,) = [line for line in lines if "min_gain" in line]
    assert why.startswith("stopping early: ") and "under 1.0 %" in why


def test_it_does_not_end_early_before_a_fair_number_of_trials_or_where_trials_were_asked_for() -> None:
    measurer = FakeMeasurer(pace=lambda job: 0.5)
    timed(measurer, 0.5, min_gain=0.9).run()
    assert len(measurer.jobs) == 60 < FEWEST_TRIALS
    both = FakeMeasurer(pace=lambda job: 0.1)
    timed(both, 60.0, trials=100, min_gain=None).run()
    assert len(both.jobs) == 100
    asked = FakeMeasurer()
    timed(asked, None, 100, min_gain=0.9).run()
    assert len(asked.jobs) == FEWEST_TRIALS


def test_progress_and_the_last_line_tell_what_to_expect() -> None:
    lines: list[str] = []
    seen: list[Progress] = []
    measurer = FakeMeasurer(pace=lambda job: 1.0)
    tuning = timed(measurer, 1.0)
    best_at: list[int] = []

    def note(progress: Progress) -> None:
        seen.append(progress)
        best_at.append(tuning.states[0].best_at)

    tuning.callbacks = Callbacks(lines.append, update=note)
    tuning.run()
    assert [one.left for one in seen] == [60.0 - k for k in range(1, 61)]
    gains = [one.gain or 0.0 for one in seen]
    assert gains[40] > gains[-1] == 0 and seen[0].budget is None
    assert gains[19] == pytest.approx(expected_gain(20, 20 - best_at[19], 40)), "the pace is that of whole rounds"
    assert re.match(r"matmul\(16, 16, 16\): [\d.]+ us, 60 trials in 1 min 00 s, chosen by the given model; 60 trials more .* save [\d.]+ %$", lines[-1])


def test_tasks_share_the_time_by_gain_for_its_cost() -> None:
    costly = {TASK.workload_key: 2.0, OTHER.workload_key: 0.5}
    measurer = FakeMeasurer(pace=lambda job: costly[job.task.key])
    states = timed(measurer, 4.0, tasks=(TASK, OTHER)).run()
    assert measurer.now - 100 <= 240 + 2.0
    assert states[1].trials > states[0].trials >= 8


def test_the_clock_decides_nothing_where_only_trials_are_limited() -> None:
    orders = []
    for pace in (0.1, 5.0):
        measurer = FakeMeasurer(pace=lambda job, pace=pace: pace * (1 + len(job.source.text) % 7))  # type: ignore[misc]
        timed(measurer, None, 60, (TASK, OTHER), min_gain=None).run()
        orders.append([job.source.text for job in measurer.jobs])
    assert orders[0] == orders[1]


def test_a_network_whose_one_task_never_works_goes_on_with_the_other() -> None:
    class HalfBroken(FakeMeasurer):
        def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
            for job, measurement in zip(batch, super().measure(batch), strict=True):
                yield Measurement(failure=Failure("crash", "SIGSEGV")) if job.task.key == TASK.workload_key else measurement

    measurer = HalfBroken(pace=lambda job: 0.5)
    states = timed(measurer, 2.0, tasks=(TASK, OTHER)).run()
    spent = Counter(job.task.key for job in measurer.jobs)
    assert states[0].best is None and states[1].best is not None
    assert spent[TASK.workload_key] < spent[OTHER.workload_key] / 2


class Batches(FakeMeasurer):
    """Notes how many jobs each round had, and how many searches were over by then."""

    def __init__(self, searches: list[int], pace: Callable[[Candidate], float] = lambda job: 0.0) -> None:
        super().__init__(pace=pace)
        self.searches, self.rounds = searches, list[tuple[int, int]]()

    def measure(self, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
        self.rounds.append((len(batch), len(self.searches)))
        return super().measure(batch)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many programs each search was for, as they are done."""
    found: list[int] = []
    guided = Tuner._guided

    def noted(self: Tuner, count: int, share: float | None, known: Any, rng: Any) -> list[Pick]:
        found.append(count)
        return guided(self, count, share, known, rng)

    monkeypatch.setattr(Tuner, "_guided", noted)
    return found


def picking(measurer: FakeMeasurer, budget: Budget, known: Sequence[Sequence[Outcome]] = ()) -> TuningRun:
    """A run that begins with what the model picks."""
    search, rounds = SearchOptions(model=pretrained(), first=pick), Rounds(clock=lambda: measurer.now)
    return TuningRun([TASK], measurer=measurer, budget=budget, search=search, rounds=rounds, trials=Trials(known=known))  # type: ignore[arg-type]  # a fake


def test_a_pick_is_measured_alone_before_anything_is_searched_for(searches: list[int]) -> None:
    measurer = Batches(searches)
    (state,) = picking(measurer, Budget(20)).run()
    assert measurer.rounds == [(1, 0), (16, 1), (3, 2)] and state.trials == 20
    chosen = pick(TASK, pretrained()).program
    assert measurer.jobs[0].source.text == TASK.source(chosen.sketch, chosen.row, "candidate0").text


def test_a_pick_that_was_measured_elsewhere_takes_no_round(searches: list[int]) -> None:
    chosen = pick(TASK, pretrained()).program
    place = next(k for k, space in enumerate(TASK.spaces) if space.sketch is chosen.sketch)
    measurer = Batches(searches)
    picking(measurer, Budget(20), known=[[Outcome(Pick(place, chosen.row), 1e-3)]]).run()
    assert measurer.rounds == [(16, 1), (4, 2)]


def test_the_slow_start_of_a_pick_does_not_make_later_rounds_small(searches: list[int]) -> None:
    measurer = Batches(searches, lambda job: 0.0)
    measurer.pace = lambda job: 3.0 if len(measurer.jobs) == 1 else 0.1
    picking(measurer, Budget(seconds=12.0)).run()
    assert [size for size, _ in measurer.rounds[:3]] == [1, 16, 16]
