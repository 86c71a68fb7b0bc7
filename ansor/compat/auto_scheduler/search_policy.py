"""Search policies under TVM's names: `SketchPolicy` runs our search, `EmptyPolicy` measures the declaration unscheduled. Source: TVM 0.9, `search_policy`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.compat.auto_scheduler.callbacks import own_file
from ansor.compat.auto_scheduler.cost_models import Model, PythonBasedModel, RandomModel
from ansor.compat.auto_scheduler.custom_rule import CustomRule, PreloadCustomSketchRule
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.export import state_of
from ansor.compat.auto_scheduler.history import OTHER_TASK, pairs_of, recorded, rows_of
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.measuring import LocalBuilder, LocalRunner, ProgramMeasurer
from ansor.compat.auto_scheduler.state_model import StateModel
from ansor.compat.auto_scheduler.tune import Search, TuningOptions, run, state_of_row
from ansor.cost_model.base import CostModel
from ansor.errors import ScheduleError
from ansor.rules.base import SketchRule
from ansor.rules.registry import resolve
from ansor.run.states import TaskState
from ansor.schedule.matching import found_among
from ansor.schedule.sketch import Sketch
from ansor.search.derive import derive_sketches
from ansor.search.evolution import EvolutionOptions, SearchGoal, evolve
from ansor.search.population import Population, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.tuner import Outcome, Tuner, TunerOptions
from ansor.tasks import task as tasks

_logger = logging.getLogger("auto_scheduler")

Param = int | float | str

DEFAULTS: Mapping[str, Param] = {
    "eps_greedy": 0.05, "retry_search_one_round_on_empty": 1, "sample_init_min_population": 50, "sample_init_use_measured_ratio": 0.2,
    "evolutionary_search_population": 2048, "evolutionary_search_num_iters": 4, "evolutionary_search_mutation_prob": 0.85,
    "cpu_multi_level_tiling_structure": "SSRSRS", "gpu_multi_level_tiling_structure": "SSSRRSRS", "max_innermost_split_factor": 64,
    "max_vectorize_size": 16, "disable_change_compute_location": 0,
}  # fmt: skip
"""The default values of TVM's search parameters."""

MEANT = ("eps_greedy", "sample_init_min_population", "evolutionary_search_population", "evolutionary_search_num_iters", "evolutionary_search_mutation_prob",
         "cpu_multi_level_tiling_structure")  # fmt: skip
"""The parameters that have an effect here. Changing any other parameter logs a warning."""


class PreloadMeasuredStates:
    """Start from a log, and from the ansor record file next to it: their programs train the model and are not measured again.

    Costs are used as logged, so the log must come from this machine.
    """

    def __init__(self, filename: str | Path) -> None:
        self.filename = filename

    def outcomes(self, task: DeclaredTask, local: tasks.SearchTask) -> list[Outcome]:
        """The log's programs of a task as outcomes for the search. Warns about skipped ones."""
        found = rows_of(task, pairs_of(self.filename) if Path(self.filename).exists() else (), local)
        for reason, count in found.left_out.items():
            if reason != OTHER_TASK:
                _logger.warning("%d programs in %s are left out: %s", count, self.filename, reason)
        return [*found.outcomes, *(outcome for outcome, _ in recorded(local, own_file(self.filename)).known)]


Callback = PreloadMeasuredStates | PreloadCustomSketchRule


class SearchPolicy:
    """Base class of the search policies."""


class EmptyPolicy(SearchPolicy):
    """Searches nothing: every tensor gets its own loop nest."""

    def __init__(self, task: DeclaredTask, init_search_callbacks: Sequence[Callback] | None = None) -> None:
        self.task = self.search_task = task

    def search(self, options: TuningOptions) -> TaskState:
        """Measure the unscheduled declaration once, unless `options` allow no trials."""
        state = TaskState(self.task.local)
        if options.num_measure_trials:
            builder = options.builder if isinstance(options.builder, LocalBuilder) else LocalBuilder()
            runner = options.runner if isinstance(options.runner, LocalRunner) else LocalRunner()
            self.continue_search_one_round(1, ProgramMeasurer(builder, runner, options.measure_callbacks, options.verbose))
            state.trials = 1
        return state

    def continue_search_one_round(self, num_measure: int, measurer: ProgramMeasurer) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Measure the unscheduled declaration."""
        inputs = [MeasureInput(self.task, self.task.compute_dag.get_init_state())]
        return inputs, measurer.measure(self.task, self, inputs)


class SketchPolicy(SearchPolicy):
    """Our search: rules derive sketches, evolution and a model pick programs.

    Args:
        task: the task to search.
        program_cost_model: a RandomModel (the default), an XGBModel, or your own PythonBasedModel.
        params: TVM's parameters; missing ones are filled in. Changing one that has no effect here logs a warning.
        seed: the seed of the search. None means 0, so that the same call gives the same programs.
        init_search_callbacks: PreloadMeasuredStates, PreloadCustomSketchRule.
    """

    DEFAULT_PARAMS = dict(DEFAULTS)

    def __init__(
        self,
        task: DeclaredTask,
        program_cost_model: Model | None = None,
        params: MutableMapping[str, Param] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.task, self.model, self.seed, self.verbose = task, program_cost_model or RandomModel(seed or 0), seed or 0, verbose
        self.params = _completed(params)
        self.callbacks = list(init_search_callbacks or ())

    @property
    def search_task(self) -> DeclaredTask:
        """The task, under the name that custom rules use."""
        return self.task

    def set_verbose(self, verbose: int) -> None:
        """Set the amount of output."""
        self.verbose = verbose

    @cached_property
    def rules(self) -> tuple[str | SketchRule, ...]:
        """The rules of the callbacks, then those of the target, with the tiling structure from the parameters."""
        custom = [CustomRule(one, self.task.compute_dag, self) for one in self.callbacks if isinstance(one, PreloadCustomSketchRule)]
        structure = str(self.params["cpu_multi_level_tiling_structure"])
        own: Sequence[str | SketchRule] = self.task.local_target.rules
        if structure != DEFAULTS["cpu_multi_level_tiling_structure"]:
            own = [replace(rule, structure=structure) if hasattr(rule, "structure") else rule for rule in resolve(own)]  # type: ignore[type-var]  # frozen
        return (*custom, *own)

    @cached_property
    def local(self) -> tasks.SearchTask:
        """The task as our search takes it."""
        local = self.task.local
        if self.rules == tuple(local.rules):
            return local
        return tasks.SearchTask(tensors=local.tensors, target=local.target, name=local.name, rules=self.rules, as_written=True, inputs=self._inputs)

    @property
    def _inputs(self) -> dict[str, NDArray[np.generic]]:
        named = {renamed.name: tensor.name for tensor, renamed in zip(self.task.local.tensors, self.task.local.dag.tensors, strict=True)}
        return {named[name]: value for name, value in self.task.local.inputs.items()}

    @cached_property
    def search_of(self) -> Search:
        """The search of the task, with the measured programs from callbacks."""
        known = [outcome for one in self.callbacks if isinstance(one, PreloadMeasuredStates) for outcome in one.outcomes(self.task, self.local)]
        return Search(self.task, self.local, known, self)

    @property
    def options(self) -> TunerOptions:
        """The parameters as options of our tuner."""
        return TunerOptions(evolution=self.evolution, epsilon=float(self.params["eps_greedy"]))

    @property
    def evolution(self) -> EvolutionOptions:
        """The parameters as options of our evolution."""
        return EvolutionOptions(
            population=int(self.params["evolutionary_search_population"]), generations=int(self.params["evolutionary_search_num_iters"]),
            mutation=float(self.params["evolutionary_search_mutation_prob"]),
        )  # fmt: skip

    def search(self, options: TuningOptions) -> TaskState:
        """Tune the task."""
        (state,) = run([self.search_of], options, self.model, tuner=self.options, seed=self.seed)
        return state

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """The derived sketches, with open lengths. Leaves out those that TVM's steps cannot express (packing), and logs how many."""
        found, without = [], 0
        for sketch in derive_sketches(self.local.dag, self.rules, self.task.local_target):
            try:
                found.append(state_of(self.task.compute_dag, Sketch(self.task.compute_dag.dag, sketch.steps, sketch.choices)))
            except ScheduleError:
                without += 1
        if without:
            _logger.warning("%d of %d sketches cannot be expressed in TVM's steps; ansor.SketchPolicy shows them", without, without + len(found))
        for number, state in enumerate(found if print_for_debug else []):
            print(f"sketch {number}\n{state}\n")
        return found

    def sample_initial_population(self) -> list[State]:
        """Random programs that fit the machine: at least `sample_init_min_population`, if the space has that many."""
        rng, spaces = np.random.default_rng([self.seed, 1]), [SampledSpace(space) for space in self._scored.local.spaces]
        nothing, wanted = [np.zeros(0, np.uint64)] * len(spaces), 2 * int(self.params["sample_init_min_population"])
        members = sample_population(spaces, wanted, np.ones(len(spaces)), rng, nothing)
        states = (self._state(*members.member(index)) for index in rng.permutation(len(members)))
        return [state for state in states if state is not None]

    def evolutionary_search(self, init_populations: Sequence[State], out_size: int) -> list[State]:
        """Evolve these states, and return those with the best scores, best first."""
        local = self._scored.local
        spaces = [SampledSpace(space) for space in local.spaces]
        start = self._population(spaces, init_populations)
        rng = np.random.default_rng([self.seed, 2])
        hall = evolve(spaces, self._scored.model.predict, start, SearchGoal.anywhere(spaces, out_size), rng, self.evolution)
        best = [hall.members.member(int(index)) for index in np.argsort(-hall.scores, kind="stable")]
        states = (self._state(number, row) for number, row in best)
        return list(islice((state for state in states if state is not None), out_size))

    def continue_search_one_round(self, num_measure: int, measurer: ProgramMeasurer) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Measure what the search proposes next, and report the results to it. Skips programs that states cannot express."""
        inputs, picks = [], []
        for pick in self._tuner.ask(num_measure):
            state = self._state(pick.space, pick.row)
            if state is not None:
                inputs.append(MeasureInput(self.task, state))
                picks.append(pick)
        results = measurer.measure(self.task, self, inputs)
        costs = [result.mean_cost for result in results]
        self._tuner.tell([Outcome(pick, cost if np.isfinite(cost) else None) for pick, cost in zip(picks, costs, strict=True)])
        return inputs, results

    @cached_property
    def _scored(self) -> _ScoredTask:
        """The spaces that states can express, and a model of them."""
        if isinstance(self.model, PythonBasedModel):
            model = StateModel(self.model, [self.task], [self.local])
            return _ScoredTask(model.locals[0], model)
        return _ScoredTask(self.local, self.model.model)

    @cached_property
    def _tuner(self) -> Tuner:
        tuner = Tuner(self._scored.local.spaces, self._scored.model, seed=self.seed, options=self.options)
        tuner.tell(self.search_of.known)
        return tuner

    def _population(self, spaces: Sequence[SampledSpace], states: Sequence[State]) -> Population:
        """The states as rows. Leaves out those outside our search space."""
        sketches = [space.sketch for space in self._scored.local.spaces]
        found = [found_among(self.task.compute_dag.replay(state).sketch, sketches) for state in states]
        rows: list[list[tuple[int, ...]]] = [[] for _ in spaces]
        for place in found:
            if place is not None:
                rows[place[0]].append(place[1])
        blocks = (np.array(block, np.int64).reshape(len(block), one.tables.columns) for one, block in zip(spaces, rows, strict=True))
        return Population(tuple(blocks)).distinct(spaces)

    def _state(self, number: int, row: tuple[int, ...]) -> State | None:
        try:
            return state_of_row(self.task, self._scored.local.spaces[number], row)
        except ScheduleError:
            return None


@dataclass(frozen=True, eq=False)
class _ScoredTask:
    """A task as our search takes it, and a model that scores its programs."""

    local: tasks.SearchTask
    model: CostModel


def _completed(params: MutableMapping[str, Param] | None) -> dict[str, Param]:
    """All parameters, missing ones filled in, also in the given mapping. Raises ScheduleError for a name that TVM does not have."""
    given = {} if params is None else params
    unknown = [name for name in given if name not in DEFAULTS]
    if unknown:
        raise ScheduleError(f"asked to search with the parameter {unknown[0]!r}; parameters are {', '.join(DEFAULTS)}")
    for name, value in DEFAULTS.items():
        if given.setdefault(name, value) != value and name not in MEANT:
            _logger.warning("the parameter %s=%s has no effect on this search", name, given[name])
    return dict(given)
