"""Tasks: a template and its arguments. `create` collects the knobs, `instantiate` gives the program of one configuration.

Source: AutoTVM 0.9, `autotvm.task`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansor.errors import AnsorError, ConfigError, DeclarationError, InstantiationError
from ansor.manual.schedule import Schedule
from ansor.support.json_values import Json
from ansor.templates.config import Config
from ansor.templates.dispatch import ApplyConfig, Workload, current_target, on_target
from ansor.templates.space import ConfigSpace
from ansor.templates.template import Instance, TemplateFunction, check_arguments, find_template, serialize_args
from ansor.templates.template import MissingTask as MissingTask
from ansor.templates.template import args_to_workload as args_to_workload
from ansor.templates.template import deserialize_args as deserialize_args


@dataclass(frozen=True)
class Task:
    """The name of a template and its arguments, tensors as `("TENSOR", shape, dtype)`; as `create` makes it also with its space, flop and target.

    flop: operations of one run; target: its text. Tasks are equal when their name and arguments are.
    """

    name: str
    args: Workload = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict, hash=False)
    target: str = field(default="", compare=False, repr=False)
    target_host: str | None = field(default=None, compare=False, repr=False)
    flop: float = field(default=0.0, compare=False, repr=False)
    space: ConfigSpace | None = field(default=None, compare=False, repr=False)

    @property
    def workload(self) -> Workload:
        """Name and arguments in one tuple."""
        return (self.name, *self.args)

    @property
    def func(self) -> TemplateFunction:
        """The template; one that raises ConfigError when it is not registered here."""
        return find_template(self.name)

    @property
    def config_space(self) -> ConfigSpace:
        """All configurations. Raises ConfigError for a task that was read from a log, which does not tell them."""
        if self.space is None:
            raise ConfigError(f"asked for the space of task {self.name!r}, which only a log names; make it with autotvm.task.create(name, args, target)")
        return self.space

    def instantiate(self, config: Config) -> Instance:
        """The schedule of one configuration, and what a kernel takes.

        Raises InstantiationError when the template finds the configuration impossible (`cfg.raise_error`) or its steps do not fit one another, and ConfigError
        when the template is not registered here.
        """
        config.errors.clear()
        config.flop = 0.0
        try:
            schedule, tensors = self._run(config)
            config.check()
            schedule.sketch(tensors)  # steps that do not fit one another show here
        except (ConfigError, InstantiationError):
            raise
        except AnsorError as error:
            raise InstantiationError(f"configuration {config} of {self.name!r} does not work: {error}") from error
        return schedule, tensors

    def _run(self, config: Config) -> Instance:
        if self.kwargs:
            raise ConfigError(f"asked for a program of task {self.name!r} with the keyword arguments {', '.join(self.kwargs)}; templates take none")
        check_arguments(self.name, self.args)
        with on_target(self.target or current_target()), ApplyConfig(config):
            found: object = self.func(*deserialize_args(self.args))
        if not isinstance(found, tuple | list) or len(found) != 2 or not isinstance(found[0], Schedule):
            raise DeclarationError(f"template {self.name!r} gives {found!r:.80}; return its schedule and what a kernel takes: s, [A, B, C]")
        return found[0], found[1]


def create(task_name: str, args: Sequence[object], target: object = "llvm", target_host: object = None) -> Task:
    """A task with its space, for which the template is run once, as `collect` does.

    target: text, or something whose `str` is one. flop is what the template added by `cfg.add_flop`, or else counted from what it declares.
    Raises ConfigError when the template is not registered or no operation can be counted, and DeclarationError for arguments that no log can hold or the
    template does not take, and for a template that does not give a schedule and arguments.
    """
    task, (schedule, _) = collect(task_name, args, target)
    host = None if target_host is None else str(target_host)
    return replace(task, target_host=host, flop=task.config_space.flop or compute_flop(schedule))


def collect(task_name: str, args: Sequence[object], target: object = "llvm") -> tuple[Task, Instance]:
    """A task with its space, and what the template gives while every knob shows its first value. Raises ConfigError when it is not registered here."""
    space = ConfigSpace()
    task = Task(task_name, serialize_args(args), target=str(target), space=space)
    instance = task._run(space)
    space.errors.clear()  # they are of the first values
    return task, instance


def compute_flop(sch: Schedule) -> int:
    """Operations of one run of what is scheduled: a multiply-add is 2, comparisons count, reads and indices do not.

    Raises ConfigError when there are none, as when something is only moved.
    """
    if not sch.dag.flop:
        names = ", ".join(tensor.name for tensor in sch.dag.outputs)
        raise ConfigError(f"asked for the operations of {names}, which has none; call cfg.add_flop with what to count")
    return sch.dag.flop
