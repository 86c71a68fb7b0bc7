"""The tuning loop: ask the search, measure, record, tell. For one task or for the tasks of a network.

    scheduler -> task -> tuner.ask -> C -> measurer -> ledger -> tuner.tell -> progress

If building disturbs the measurements, rounds run one at a time; otherwise several overlap. The search does no I/O; this module connects it to compiler,
clock and disk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from ansor.cost_model.base import PACKAGE
from ansor.errors import AnsorError
from ansor.measure.failure import LINK, Failure
from ansor.measure.flight import Steps, wait_for_any
from ansor.measure.machine_trouble import KIND as MACHINE
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.run.budget import FEWEST_TRIALS, Budget
from ansor.run.ledger import Ledger
from ansor.run.options import ROUND, SMALL_ROUND, Rounds, SearchOptions, Trials, usual_search
from ansor.run.pace import Pace
from ansor.run.refused import refusal
from ansor.run.reporter import Callbacks
from ansor.run.rounds import Program, Round, RoundsInFlight
from ansor.run.scoring_model import GIVEN, NamedModel, scoring_model
from ansor.run.states import BudgetUse, Progress, RunResults, TaskState, best_of, origins_of
from ansor.run.summary import last_lines
from ansor.search.task_scheduler import TaskInfo, TaskScheduler
from ansor.search.tuner import Outcome, Pick, Tuner
from ansor.support.garbage import uncollected
from ansor.support.text import clip, counted, format_left, format_share
from ansor.targets.base import parse_target
from ansor.tasks.origins import origin_of
from ansor.tasks.recording import together
from ansor.tasks.task import SearchTask

OnRound = Callable[[int, bool], None]


class TuningRun:
    """Tunes tasks within a budget of measured programs.

    tasks, weights: what to tune, and how often each is used (1 by default). measurer: builds and runs candidates; the generator of its `measure` is closed
    after each round. budget: covers all tasks; recorded trials count, building kernels afterwards does not. The other arguments document themselves.

    `on_round`: called with a task's number before each of its rounds (False), and after it (True).
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        weights: Sequence[float] | None = None,
        *,
        measurer: Measurer,
        budget: Budget,
        search: SearchOptions | None = None,
        rounds: Rounds | None = None,
        trials: Trials | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.measurer, self.budget = measurer, budget
        self.search, self.rounds, self.callbacks = search or SearchOptions(), rounds or Rounds(), callbacks or Callbacks()
        self.on_round: OnRound | None = None
        self.scorer = self._scorer(tasks)
        self.model = self.scorer.model
        self.failures: Counter[str] = Counter()
        given = weights if weights is not None else [1.0] * len(tasks)
        self.states = [TaskState(task, weight) for task, weight in zip(tasks, given, strict=True)]
        self.pace = Pace(budget, self.states, self.rounds.clock, self._tried_out, self.rounds.started)
        self.ledger = Ledger(trials or Trials(), self.states, measurer, int(self.search.seed), self.scorer.mark)
        infos = [TaskInfo(weight=state.weight) for state in self.states]
        self.scheduler = TaskScheduler(infos, objective=self.rounds.objective, options=self.rounds.scheduling)
        self.tuners = {id(state): self._tuner(state, number) for number, state in enumerate(self.states)}
        for state, outcomes in zip(self.states, trials.known if trials else (), strict=False):
            self._tell_known(state, outcomes)

    def _scorer(self, tasks: Sequence[SearchTask]) -> NamedModel:
        """The requested scorer, else the best one for the tasks' target, with this machine's model if all programs run here."""
        asked = self.search.model
        if not tasks:
            return scoring_model(parse_target("cpu"), "", asked or PACKAGE, seed=int(self.search.seed))
        here = self.measurer.is_here and len({str(task.target) for task in tasks}) == 1
        found = scoring_model(tasks[0].target, self.measurer.unit.name, asked, seed=int(self.search.seed), here=here)
        return replace(found, name=self.search.called) if found.name == GIVEN else found

    def _tuner(self, state: TaskState, number: int) -> Tuner:
        """The search for programs of a task; derives its sketches if that has not been done yet."""
        of = f" ({number + 1} of {len(self.states)})" if len(self.states) > 1 else ""
        self.callbacks.now(f"deriving the programs of {state.task.name}{of}")
        options = replace(self.search.tuner or usual_search(self.measurer.unit), early_stop=self.search.early_stop)
        if self.budget.trials is not None:
            options = replace(options, budget=max(1, self.budget.trials // max(1, len(self.states))))
        return Tuner(state.task.spaces, self.model, seed=self.search.seed, options=options, task=number)

    def _tried_out(self, number: int) -> bool:
        return not self.scheduler.alive(number) or self.tuners[id(self.states[number])].finished is not None

    def run(self) -> list[TaskState]:
        """Tune until the budget is used or nothing is left to try. Ctrl-C passes through; finished trials are recorded by then."""
        with closing(self.steps()) as steps:
            for flights in steps:
                wait_for_any(flights)
        return self.states

    def steps(self) -> Steps[None]:
        """The run in steps, so that several runs can take turns in one thread. Close it to end the run early."""
        done = sum(self._resume(index, state) for index, state in enumerate(self.states))
        self.ledger.say_left_out(self.callbacks)
        if not self.budget.trials_left(done):
            if done:
                self._say_used_up(done)
            return
        with self.ledger:
            if self.measurer.ahead:
                yield from self._side_by_side(done)
            else:
                for state in self._schedule(done):
                    done += self._round(state, self.pace.round_size(state, done, self.rounds.size))
        self._say_without_program()
        for line in last_lines(self.states, self.pace, self.scorer.name):
            self.callbacks.say(line)

    def _say_used_up(self, done: int) -> None:
        """Report that the records leave nothing of the budget, and how many trials would be more."""
        budget = self.budget.trials or 0
        more = "" if self.ledger.of_several else f"; trials={done + budget} (--trials {done + budget}) would measure {budget} more"
        self.callbacks.say(f"{counted(done, 'recorded trial')} used up the budget of {budget}: nothing to measure{more}")

    def _say_without_program(self) -> None:
        """Warn about tasks without a program: the target allows none (no trial, and nothing left to try), or all programs failed."""
        for state in (one for one in self.states if one.best is None):
            if not state.trials and self.tuners[id(state)].exhausted:
                state.refused = True
                self.callbacks.warn(refusal(state.task))
            elif state.trials > state.resumed and state.first_failure is not None:
                kinds = ", ".join(f"{count} {kind}" for kind, count in state.failures.most_common())
                said = clip(" ".join(state.first_failure.text.split()), 200)
                self.callbacks.warn(f"{state.task.name}: all {counted(state.trials, 'program')} that were tried have failed ({kinds}); the first: {said}")

    # what is known --------------------------------------------------------------------------------------------------------------------------------

    def _resume(self, index: int, state: TaskState) -> int:
        """Tell tuner and scheduler what the record file knows about this task; return the number of recorded trials."""
        found = self.ledger.recorded(state)
        state.left_out.update(found.left_out)
        self.tuners[id(state)].tell([outcome for outcome, _ in found.known])
        for count, (outcome, record) in enumerate(found.known, 1):
            self._note(state, outcome, record.failure)
            if count % SMALL_ROUND == 0 or count == len(found.known):
                self.scheduler.told(index, state.cost, (count - 1) % SMALL_ROUND + 1, since=state.trials - state.best_at)
        state.resumed = len(found.known)
        if found.known:
            self.callbacks.say(f"{state.task.name}: continuing after {counted(len(found.known), 'recorded trial')}")
        return len(found.known)

    def _tell_known(self, state: TaskState, outcomes: Sequence[Outcome]) -> None:
        """Tell the search what was measured elsewhere; the best of it is the program to beat."""
        self.tuners[id(state)].tell(outcomes)
        valid = [outcome for outcome in outcomes if outcome.valid]
        if valid:
            state.best = best_of(state.task, min(valid, key=lambda outcome: outcome.cost or 0.0), self.measurer.unit)

    def _note(self, state: TaskState, outcome: Outcome, failure: Failure | None) -> None:
        state.note(outcome, failure, self.measurer.unit)
        if failure is not None:
            self.failures[failure.kind] += 1

    # which task is next ---------------------------------------------------------------------------------------------------------------------------

    def _schedule(self, done: int) -> Iterator[TaskState]:
        """Tasks in the order in which they get rounds."""
        while not self._is_over(done):
            index = self._next_task()
            if index is None:
                return
            state = self.states[index]
            before, since = state.trials, self.rounds.clock()
            if self.on_round is not None:
                self.on_round(index, False)
            yield state
            count, seconds = state.trials - before, self.rounds.clock() - since
            done += count
            self._tell_scheduler(index, state, count, seconds)
            if self.on_round is not None:
                self.on_round(index, True)
            if count == 0 and len(self.states) == 1:
                return

    def _tell_scheduler(self, index: int, state: TaskState, count: int, seconds: float) -> None:
        """Report a finished round of `count` trials. Times differ from run to run: if only trials are limited, they decide nothing, so that the same seed and
        results give the same rounds."""
        if state.searched:
            state.timed, state.spent = state.timed + count, state.spent + seconds
        self.scheduler.told(
            index, state.cost, count, exhausted=self.tuners[id(state)].finished is not None,
            since=state.trials - state.best_at, seconds=seconds if state.searched and self.budget.seconds is not None else None,
        )  # fmt: skip

    def _next_task(self) -> int | None:
        if len(self.states) == 1:
            return None if self._stopped(self.states[0]) else 0
        index = self.scheduler.next_task()
        if index is None:
            self.callbacks.say("no task has anything left to try")
        return index

    def _stopped(self, state: TaskState) -> bool:
        reason = self.tuners[id(state)].finished
        if reason is not None:
            self.callbacks.say(f"{state.task.name}: {reason}")
        return reason is not None

    def _is_over(self, done: int) -> bool:
        """Whether the budget is used, or its rest is not worth using, which is reported."""
        if self.budget.is_used(done, self.pace.elapsed):
            return True
        least = self.budget.min_gain
        gain = self.pace.gain_of_rest() if least > 0 and done >= FEWEST_TRIALS * len(self.states) else None
        if gain is None or gain >= least:
            return False
        self.callbacks.say(f"stopping early: {self._rest(done)} would be expected to save {format_share(gain)}, under {format_share(least)} (min_gain)")
        return True

    def _rest(self, done: int) -> str:
        """The rest of the budget as text."""
        trials, seconds = self.budget.trials_left(done), self.pace.seconds_left
        words = [f"{format_left(seconds)} more"] if seconds < math.inf else []
        return " or ".join([*words, f"{int(trials)} more trials"] if trials < math.inf else words)

    # several rounds at a time ---------------------------------------------------------------------------------------------------------------------

    def _side_by_side(self, done: int) -> Steps[None]:
        """Keep enough rounds in flight to keep the devices busy. What is asked for depends on the order in which rounds end, but not otherwise on the
        clock; rounds of a single device end in the order of their start, so that the same seed gives the same programs."""
        with closing(RoundsInFlight(self.measurer, in_order=len(self.measurer.devices) == 1)) as rounds:
            while True:
                yield from self._start_rounds(rounds, done)
                ended = yield from rounds.next_ended(self._take, lambda: not self.pace.seconds_left)
                if ended is None:
                    break
                done += self._round_ended(ended)
            for left in rounds.under_way:  # the time is up
                self._round_ended(left)

    def _start_rounds(self, rounds: RoundsInFlight, done: int) -> Steps[None]:
        """Start rounds until enough are in flight, the budget is used, or no task is left."""
        usual = SMALL_ROUND if len(self.states) > 1 else ROUND  # with small rounds of one task, the search would take more time than devices wait
        while rounds.trials < self.measurer.ahead + usual and not rounds.ending:
            begun = done + rounds.trials
            rounds.ending = self._is_over(begun)
            index = None if rounds.ending else self._next_beside(rounds)
            if index is None:
                if not rounds.under_way and not rounds.ending:
                    self._say_nothing_left()
                return
            state = self.states[index]
            if self.on_round is not None:
                self.on_round(index, False)
            round_ = self._new_round(state, self.pace.round_size(state, begun, self.rounds.size))
            yield from rounds.start(round_, self._programs(state, round_.picks), self._take)

    def _next_beside(self, rounds: RoundsInFlight) -> int | None:
        """A task for another round: one with as few rounds in flight as possible."""
        over = {index for index, state in enumerate(self.states) if self.tuners[id(state)].finished is not None}
        for most in range(1, len(rounds.under_way) + 2):
            index = self.scheduler.next_task(over | rounds.busy(most))
            if index is not None:
                return index
        return None

    def _say_nothing_left(self) -> None:
        if len(self.states) > 1 or not self._stopped(self.states[0]):
            self.callbacks.say("no task has anything left to try")

    def _round_ended(self, round_: Round) -> int:
        """Tell search and scheduler about a finished round; return its number of trials. The time of a round is the time since the previous one ended; it says
        what its task costs only with a single device."""
        state = self.states[round_.index]
        self.tuners[id(state)].tell(round_.outcomes)
        check_trouble(round_.trouble)
        if round_.searched:
            state.timed, state.spent = state.timed + round_.count, state.spent + round_.seconds
        timed = round_.searched and self.budget.seconds is not None and len(self.measurer.devices) == 1
        self.scheduler.told(
            round_.index, state.cost, round_.count, exhausted=self.tuners[id(state)].finished is not None, since=state.trials - state.best_at,
            seconds=round_.seconds if timed else None,
        )  # fmt: skip
        if self.on_round is not None:
            self.on_round(round_.index, True)
        return round_.count

    # a round --------------------------------------------------------------------------------------------------------------------------------------

    def _round(self, state: TaskState, count: int) -> int:
        """Ask, measure, record, tell; return the number of trials."""
        round_ = self._new_round(state, count)
        state.searched = round_.searched
        try:
            with closing(self._measured(state, round_.picks)) as measured:
                for pick, measurement in measured:
                    self._take(round_, pick, measurement)
                    if not self.pace.seconds_left:
                        break
        finally:
            self.tuners[id(state)].tell(round_.outcomes)
        check_trouble(round_.trouble)
        return round_.count

    def _take(self, round_: Round, pick: Pick, measurement: Measurement) -> None:
        """Handle a finished trial of a round."""
        state = self.states[round_.index]
        if measurement.failure is not None and measurement.failure.kind == MACHINE:
            round_.trouble = measurement.failure  # the machine's fault: says nothing about the program; the other trials of the round count
            return
        outcome = self._trial(state, pick, measurement, round_.number)
        round_.count += 1
        if outcome.failure not in LINK:
            round_.outcomes.append(outcome)
        self.callbacks.update(self._progress(state, measurement))

    def _new_round(self, state: TaskState, count: int) -> Round:
        """What to measure next. The first round of a task measures only the programs picked without measuring, since they are ready sooner than a search."""
        first = not state.trials and not state.rounds
        if first:
            self.callbacks.now(f"choosing, building and measuring the first program of {state.task.name}")
        with uncollected(), together():
            suggested = self._suggest_first(state) if first else 0
            picks = self.tuners[id(state)].ask(min(count, suggested) if suggested else count, self.budget.share(self.pace.trials, self.pace.elapsed))
        state.rounds += 1
        return Round(self.states.index(state), picks, state.rounds, searched=not suggested)

    def _suggest_first(self, state: TaskState) -> int:
        """Suggest the programs picked without measuring to be measured first; return their number."""
        if self.search.first is None or not self.model.fitted:
            return 0
        spaces, suggested = state.task.spaces, 0
        for origin in origins_of(state.task):
            program = self.search.first(state.task, self.model, [space for space in spaces if origin_of(space.algorithm) == origin]).program
            for place, space in enumerate(spaces):
                if space.sketch is program.sketch:
                    suggested += self.tuners[id(state)].suggest(Pick(place, program.row))
        return suggested

    def _measured(self, state: TaskState, picks: Sequence[Pick]) -> Generator[tuple[Pick, Measurement], None, None]:
        """Measurements in the order of the picks."""
        with uncollected():
            programs = list(self._programs(state, picks))
        with closing(self.measurer.measure([one for one in programs if isinstance(one, Candidate)])) as results:
            for pick, program in zip(picks, programs, strict=True):
                yield pick, program if isinstance(program, Measurement) else next(results)

    def _programs(self, state: TaskState, picks: Sequence[Pick]) -> Iterator[Program]:
        """What to measure for each pick, or the failure of one that cannot be written as C."""
        best = state.cost  # the same for all, whatever is measured meanwhile
        for k, pick in enumerate(picks):
            try:
                with uncollected():
                    source = state.task.source(state.task.spaces[pick.space].sketch, pick.row, f"candidate{k}")
            except AnsorError as error:
                yield Measurement(failure=Failure("instantiation", str(error)), unit=self.measurer.unit)
                continue
            yield Candidate(state.task.measure_task, source, best)

    def _trial(self, state: TaskState, pick: Pick, measurement: Measurement, round_: int) -> Outcome:
        """Record and count a finished trial."""
        failure = measurement.failure
        outcome = Outcome(pick, measurement.cost if failure is None else None, failure.kind if failure is not None else None)
        self.ledger.keep(state, pick, measurement, round_)
        before = state.best
        self._note(state, outcome, failure)
        if state.best is not before:
            state.counters = dict(measurement.counters)
        return outcome

    def _progress(self, state: TaskState, measurement: Measurement) -> Progress:
        trials = self.pace.trials
        measured = trials - sum(s.resumed for s in self.states)
        left = None if self.budget.seconds is None else self.pace.seconds_left
        known = [s for s in self.states if s.best is not None]
        cost, flop = sum(s.weight * s.best.cost for s in known if s.best), sum(s.weight * s.task.flop for s in known)
        spent = BudgetUse(trials, measured, self.budget.trials, self.pace.elapsed, left, self.pace.known)
        reached = RunResults(len(self.states), len(self.states) - len(known), cost, flop, any(s.fewer_operations for s in known), self.measurer.unit)
        devices = self.measurer.queue.lines() if self.measurer.ahead else ()
        return Progress(state.task, measurement, spent, reached, dict(self.failures), self.pace.gain_of_rest(), devices)
