"""Tasks: a template and its arguments. `create` collects the knobs, `instantiate` builds the program of one configuration.

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
    """The name of a template and its arguments, with tensors as `("TENSOR", shape, dtype)`; from `create` also its space, flop and target.

    flop: operations of one run; target: the text of the target. Tasks are equal if their names and arguments are.
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
        """The template, or a function that raises ConfigError if it is not registered here."""
        return find_template(self.name)

    @property
    def config_space(self) -> ConfigSpace:
        """All configurations. Raises ConfigError for a task read from a log, which does not contain them."""
        if self.space is None:
            raise ConfigError(f"asked for the space of task {self.name!r}, which comes from a log; create it with autotvm.task.create(name, args, target)")
        return self.space

    def instantiate(self, config: Config) -> Instance:
        """The schedule of one configuration, and the arguments of its kernel.

        Raises InstantiationError if the template calls `cfg.raise_error`, or its steps do not fit each other, and ConfigError if it is not
        registered here.
        """
        config.errors.clear()
        config.flop = 0.0
        try:
            schedule, tensors = self._run(config)
            config.check()
            schedule.sketch(tensors)  # raises if steps do not fit each other
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
            raise DeclarationError(f"template {self.name!r} returns {found!r:.80}; return the schedule and the kernel's arguments: s, [A, B, C]")
        return found[0], found[1]


def create(task_name: str, args: Sequence[object], target: object = "llvm", target_host: object = None) -> Task:
    """A task with its space. Runs the template once, as `collect` does.

    target: a text, or an object with a text as its `str`. flop is what the template adds by `cfg.add_flop`, otherwise it is counted from the declaration.
    Raises ConfigError if the template is not registered or has no countable operations, and DeclarationError for arguments that a log cannot hold or the
    template does not take, and for a template that does not return a schedule and arguments.
    """
    task, (schedule, _) = collect(task_name, args, target)
    host = None if target_host is None else str(target_host)
    return replace(task, target_host=host, flop=task.config_space.flop or compute_flop(schedule))


def collect(task_name: str, args: Sequence[object], target: object = "llvm") -> tuple[Task, Instance]:
    """A task with its space, and the template's result with every knob at its first value. Raises ConfigError if the template is not registered here."""
    space = ConfigSpace()
    task = Task(task_name, serialize_args(args), target=str(target), space=space)
    instance = task._run(space)
    space.errors.clear()  # they concern the first values only
    return task, instance


def compute_flop(sch: Schedule) -> int:
    """Operations of one run of the scheduled computation: a multiply-add is 2, comparisons count, reads and indices do not.

    Raises ConfigError if there are none, for example if it only moves data.
    """
    if not sch.dag.flop:
        names = ", ".join(tensor.name for tensor in sch.dag.outputs)
        raise ConfigError(f"asked for the operations of {names}, which has none; call cfg.add_flop with the number to use")
    return sch.dag.flop
