"""Tunes the tasks of a network together. Source: TVM 0.9, `auto_scheduler.task_scheduler`.

The strategy "gradient" is our own: it picks the task expected to lower the objective most per unit of cost (`ansor.search.task_scheduler`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ansor.compat.auto_scheduler.cost_models import Model, RandomModel, XGBModel
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.search_policy import Param, PreloadMeasuredStates, SketchPolicy
from ansor.compat.auto_scheduler.tune import TuningOptions, run
from ansor.errors import BudgetError, ScheduleError
from ansor.run.options import Rounds
from ansor.run.tuning import OnRound, TuningRun
from ansor.search.task_scheduler import SchedulerOptions

NOTHING = 1e10
"""The seconds of a task without a valid program, as in TVM."""

STRATEGIES = {"gradient": "expected-gain", "round-robin": "round-robin"}


class TaskSchedulerCallback:
    """Base class for callbacks around rounds."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called before a round of a task."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called after a round of a task."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks before each round."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Print the table."""
        rule = "-" * 118
        print(f"{rule}\n|  ID  | {'Task Description':^61} | Latency (ms) | Speed (GFLOPS) | Trials |\n{rule}")
        for number, (task, cost, trials) in enumerate(zip(task_scheduler.tasks, task_scheduler.best_costs, task_scheduler.task_trials, strict=True)):
            known = cost < NOTHING / 10
            latency = f"{1e3 * cost:.3f}" if known else "-"
            speed = f"{task.compute_dag.flop_ct / cost / 1e9:.2f}" if known else "-"
            print(f"| {number:4d} | {(task.desc or task.workload_key)[:61]:>61} | {latency:>12} | {speed:>14} | {trials:6d} |")
        total = f"{1e3 * task_scheduler.cur_score:.3f}" if task_scheduler.all_known else "-"
        used = time.time() - task_scheduler.tic
        print(f"{rule}\nEstimated total latency: {total} ms\tTrials: {task_scheduler.ct}\tUsed time : {used:.0f} s\tNext ID: {task_id}\t")


class LogEstimatedLatency(TaskSchedulerCallback):
    """Appends the estimated total latency to a table after each round. Creating one removes an existing file."""

    def __init__(self, log_file: str | Path = "total_latency.tsv") -> None:
        self.log_file = Path(log_file)
        self.log_file.unlink(missing_ok=True)

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Append a line."""
        total = f"{1e3 * task_scheduler.cur_score:.3f}" if task_scheduler.all_known else "N/A"
        used = time.time() - task_scheduler.tic
        with self.log_file.open("a") as file:
            file.write(f"ElapsedTime(s)\t{used:.0f}\tEstimatedLatency(ms)\t{total}\tTrials\t{task_scheduler.ct}\n")


class TaskScheduler:
    """Tunes several tasks, and allocates rounds to them.

    Args:
        tasks, task_weights: what to tune, and the number of uses of each.
        objective_func: maps the best seconds of all tasks to the value to minimise; by default their weighted sum.
        strategy: "gradient" or "round-robin".
        load_model_file: a saved XGBModel. load_log_file: a log to start from.
        alpha, beta, gamma, backward_window_size: parameters of TVM's gradient strategy; ignored here.
        callbacks: by default a table on standard output and one in total_latency.tsv.

    `best_costs`: seconds, 1e10 if no program is valid; `task_cts`: rounds per task, `task_trials`: programs per task; `ct`: programs in total.
    """

    def __init__(
        self,
        tasks: Sequence[DeclaredTask],
        task_weights: Sequence[float] | None = None,
        objective_func: Callable[[Sequence[float]], float] | None = None,
        strategy: str = "gradient",
        load_model_file: str | Path | None = None,
        load_log_file: str | Path | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ScheduleError(f"asked to schedule tasks by {strategy!r}; strategies are {', '.join(STRATEGIES)}")
        if not tasks:
            raise ScheduleError("asked to schedule no tasks; give at least one")
        self.tasks, self.task_weights, self.strategy = list(tasks), list(task_weights or [1.0] * len(tasks)), strategy
        self.objective_func = objective_func or self._weighted
        self._given_objective = objective_func
        self.load_model_file, self.load_log_file = load_model_file, load_log_file
        self.callbacks = [PrintTableInfo(), LogEstimatedLatency()] if callbacks is None else list(callbacks)
        self.best_costs = [NOTHING] * len(tasks)
        self.task_cts, self.task_trials = [0] * len(tasks), [0] * len(tasks)
        self.ct, self.tic = 0, time.time()

    @property
    def cur_score(self) -> float:
        """The current value of the objective."""
        return float(self.objective_func(self.best_costs))

    @property
    def all_known(self) -> bool:
        """Whether every task has a valid program."""
        return all(cost < NOTHING / 10 for cost in self.best_costs)

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str | Sequence[SketchPolicy] = "default",
        search_policy_params: dict[str, Param] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Tune within the options' trials. `per_task_early_stopping` ends a task after that many trials without improvement.

        search_policy: "default", "sketch.xgb", "sketch.random", or a policy per task; these share the first one's model.
        Raises BudgetError for fewer trials than tasks.
        """
        each = min(tune_option.num_measures_per_round, tune_option.num_measure_trials // len(self.tasks))
        if each < 1:
            raise BudgetError(f"asked to tune {len(self.tasks)} tasks within {tune_option.num_measure_trials} trials; give at least one per task")
        policies = self._policies(search_policy, search_policy_params)
        options = SchedulerOptions(strategy=STRATEGIES[self.strategy], early_stop=tune_option.early_stopping, task_early_stop=per_task_early_stopping)
        self.ct, self.tic = 0, time.time()
        rounds = Rounds(each, self._given_objective, options)
        run([policy.search_of for policy in policies], tune_option, policies[0].model, weights=self.task_weights, rounds=rounds, watch=self._watch,
            tuner=policies[0].options, seed=policies[0].seed)  # fmt: skip

    def _policies(self, given: str | Sequence[SketchPolicy], params: dict[str, Param] | None) -> list[SketchPolicy]:
        if not isinstance(given, str):
            if len(given) != len(self.tasks):
                raise ScheduleError(f"asked to tune {len(self.tasks)} tasks with {len(given)} policies; give one for each")
            return list(given)
        models: dict[str, Callable[[], Model]] = {
            "default": lambda: XGBModel(model_file=self.load_model_file), "sketch.xgb": lambda: XGBModel(model_file=self.load_model_file),
            "sketch.random": RandomModel,
        }  # fmt: skip
        if given not in models:
            raise ScheduleError(f"asked to tune with the policy {given!r}; policies are {', '.join(models)}")
        model = models[given]()
        before = [] if self.load_log_file is None else [PreloadMeasuredStates(self.load_log_file)]
        return [SketchPolicy(task, model, dict(params or {}), init_search_callbacks=before) for task in self.tasks]

    def _watch(self, tuning: TuningRun) -> OnRound:
        """Return the function called around rounds, which runs the callbacks."""

        def on_round(number: int, ended: bool) -> None:
            self.task_cts[number] += ended
            self.task_trials = [state.trials for state in tuning.states]
            self.ct = sum(self.task_trials)
            self.best_costs = [NOTHING if state.cost is None else state.cost for state in tuning.states]
            for callback in self.callbacks:
                if ended:
                    callback.post_tune(self, number)
                else:
                    callback.pre_tune(self, number)

        return on_round

    def _weighted(self, costs: Sequence[float]) -> float:
        return sum(weight * cost for weight, cost in zip(self.task_weights, costs, strict=True))
