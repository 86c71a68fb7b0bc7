"""A task: one declaration to be tuned for one target."""

from __future__ import annotations

import difflib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ansor.algorithms.base import DIRECT, Algorithm, Alternative
from ansor.algorithms.builtin import alternatives_of
from ansor.codegen.source import CSource
from ansor.errors import ArgumentError, DeclarationError
from ansor.ir.dag import Dag
from ansor.measure.measure_task import MeasureTask
from ansor.measure.reference import measure_task
from ansor.rules.base import SketchRule
from ansor.rules.registry import resolve
from ansor.schedule.sketch import Sketch
from ansor.search.derive import spaces
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_arguments
from ansor.tasks.declared import call, tensors_of
from ansor.tasks.pins import Pin, pinned
from ansor.tasks.sketch_space import SketchSpace
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import OPERATORS

if TYPE_CHECKING:
    from ansor.api import TuningOptions
    from ansor.manual.schedule import Schedule
    from ansor.run.states import TaskState
    from ansor.tasks.beside_rules import Template
    from ansor.templates.task import Task as TemplateTask

WorkloadFunction = Callable[..., Sequence[Tensor]]
Workload: TypeAlias = "Callable[..., Sequence[Tensor] | Tensor | tuple[Schedule, Sequence[Tensor]]] | str | Sequence[Tensor] | Tensor"
"""What to compute: a function of `args` (a template gives its schedule, too), its name, or what it would return."""
F = TypeVar("F", bound=WorkloadFunction)

_workloads: dict[str, WorkloadFunction] = {}


@overload
def register_workload(function: F, *, override: bool = False) -> F: ...


@overload
def register_workload(function: str | None = None, *, override: bool = False) -> Callable[[F], F]: ...


def register_workload(function: F | str | None = None, *, override: bool = False) -> F | Callable[[F], F]:
    """Give a function that returns tensors a name, so that tasks can be made from the name: a decorator, with or without a name.

    Raises DeclarationError when another function has the name, unless `override`.
    """
    if callable(function):
        return _register(function, function.__qualname__, override)
    return lambda f: _register(f, function or f.__qualname__, override)


def _register(function: F, name: str, override: bool) -> F:
    known = _workloads.get(name)
    if known is not None and known is not function and not override and known.__code__ is not function.__code__:
        raise DeclarationError(f"asked to register workload {name!r}, which exists already; choose another name or pass override=True")
    _workloads[name] = function
    return function


def is_registered(name: str) -> bool:
    """Whether a function has that name."""
    return name in _workloads


def forget_workload(name: str) -> WorkloadFunction:
    """Take a function's name away, and give the function. Raises DeclarationError when there is none."""
    function = find_workload(name)
    del _workloads[name]
    return function


def workload_names() -> list[str]:
    """The names of all registered functions."""
    return list(_workloads)


def find_workload(name: str) -> WorkloadFunction:
    """The registered function of that name."""
    if name not in _workloads:
        known = ", ".join(sorted(_workloads)) or "none"
        raise DeclarationError(f"asked for workload {name!r}, which is not registered; registered are: {known}; decorate it with @ansor.register_workload")
    return _workloads[name]


def find_operator(name: str) -> WorkloadFunction:
    """The registered function of that name, or the built-in operator: what `ansor tune NAME` means, too. Raises DeclarationError with the names there are."""
    if name in _workloads:
        return _workloads[name]
    if name in OPERATORS:
        return OPERATORS[name].function
    close = difflib.get_close_matches(name, [*_workloads, *OPERATORS], 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    registered = f"registered are {', '.join(sorted(_workloads))}; " if _workloads else ""
    raise DeclarationError(
        f"asked for workload {name!r}, which is not registered and not built in{hint}; {registered}built in are {', '.join(OPERATORS)}; "
        "decorate your own function with @ansor.register_workload"
    )


def workload_name(function: WorkloadFunction) -> str | None:
    """The name under which a function is registered; None when it is not."""
    return next((name for name, known in _workloads.items() if known is function or known.__code__ is function.__code__), None)


class SearchTask:
    """What to compute, and for which machine.

    Args:
        func: a function that returns the tensors (inputs and outputs, in order), the name of a registered one or of a built-in operator (`matmul`), a list of
            tensors, or one computed tensor, whose inputs are then taken in the order in which they are read.
        args: its arguments.
        target: target text such as `cpu -threads=1`.
        tensors: the tensors themselves, instead of `func`.
        name: for people; the function's name by default.
        rules: sketch rules, names or values, in order; the target's own by default.
        algorithms: what offers other declarations of the same computation to be searched along, names or functions (see `ansor.algorithms.base`); all that are
            registered by default, () for none.
        templates: of `ansor.autotvm`, searched along: names, the functions themselves, or tasks of theirs where their arguments are not `args`. `func` may be
            one itself: then there are no rules by default.
        pins: what is fixed of sketches, such as `Pin("C*.j", (..., 16))` (see `ansor.Pin`).
        inputs: values of inputs, by the names that their tensors have, to measure with instead of made-up ones: indices, sparse structures.
    """

    def __init__(
        self,
        func: Workload | None = None,
        args: Sequence[object] = (),
        target: str | Target = "cpu",
        *,
        tensors: Sequence[Tensor] | None = None,
        name: str = "",
        rules: Sequence[str | SketchRule] | None = None,
        algorithms: Sequence[str | Algorithm] | None = None,
        templates: Sequence[Template] = (),
        pins: Sequence[Pin] = (),
        inputs: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> None:
        check_arguments(args=args, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
        args = tuple(args)
        self.target = parse_target(target)
        if (func is None) == (tensors is None):
            raise DeclarationError("a task takes either func (with args) or tensors, not both and not neither")
        if func is not None:
            function = _function_or_tensors(func, args)
            if not callable(function):
                tensors = function
            elif hasattr(function, "template_name"):
                templates, rules = (function, *templates), () if rules is None else rules
            else:
                tensors = tensors_of(call(function, args), f"workload {getattr(function, '__name__', function)}")
            if callable(function):
                name = name or f"{getattr(function, '__name__', 'task')}{_argument_text(args)}"
        self.rules = self.target.rules if rules is None else resolve(rules)
        self.templates: tuple[TemplateTask, ...] = ()
        if templates:
            from ansor.tasks.beside_rules import tasks_of

            self.templates, arguments = tasks_of(templates, args)
            tensors = arguments if tensors is None else tensors
        assert tensors is not None
        self.tensors = tuple(tensors)
        self.dag = Dag(self.tensors)
        self.name = name or self.dag.outputs[0].name
        self.algorithms = None if algorithms is None else tuple(algorithms)
        self.pins = tuple(pins)
        self.inputs = _checked_inputs(self.tensors, self.dag, inputs or {})

    def tune(self, options: TuningOptions) -> TaskState:
        """Measure programs as the options say; the result is in the record file, and in the state returned."""
        from ansor.api import tune

        return tune(self, options)

    def apply_best(self, records: str | Path) -> tuple[Sketch, list[Tensor]]:
        """The best recorded schedule, numbers filled in, and the tensors it belongs to. Raises RecordError when there is none."""
        from ansor.api import apply_best

        return apply_best(self, records)

    @property
    def workload_key(self) -> str:
        """The computation's key: the same in every run, on every machine."""
        return self.dag.key

    @property
    def flop(self) -> int:
        """Arithmetic operations of one run."""
        return self.dag.flop

    @cached_property
    def spaces(self) -> tuple[SketchSpace, ...]:
        """What is searched: every sketch of the declaration, then those of its alternatives, with their places and annotations open; then templates'."""
        declared = (Alternative(DIRECT, self.dag), *self.alternatives) if self.rules or not self.templates else ()
        found = [SketchSpace(sketch, self.target, one.name) for one in declared for sketch in spaces(one.dag, self.target, self.rules)]
        if self.templates:
            from ansor.tasks.beside_rules import spaces_of

            found += spaces_of(self.templates, self.dag, self.target)
        return tuple(pinned(found, self.pins))

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """Other declarations of the same computation that are searched along."""
        return alternatives_of(self.dag, self.algorithms)

    def alternative_of(self, sketch: Sketch) -> Alternative | None:
        """The alternative a sketch belongs to; None for the declaration itself."""
        return next((one for one in self.alternatives if one.dag is sketch.dag), None) if sketch.dag is not self.dag else None

    def source(self, sketch: Sketch, row: Sequence[int], entry: str = "kernel") -> CSource:
        """C of one program of a sketch."""
        source = self.target.emit(sketch.lower_row(row, entry), entry)
        alternative = self.alternative_of(sketch)
        return source if alternative is None else _as_called(source, alternative, self.dag)

    @cached_property
    def measure_task(self) -> MeasureTask:
        """What all measurements of this task share: the reference in double precision, and inputs that stay in bounds."""
        return replace(measure_task(self.dag, self.target), files=self._input_files)

    @cached_property
    def _input_files(self) -> tuple[tuple[str, str], ...]:
        """The inputs that were given, on disk, where the measuring process finds them."""
        if not self.inputs:
            return ()
        folder = Path(tempfile.mkdtemp(prefix="ansor-inputs-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        paths = {name: str(folder / f"{name}.npy") for name in self.inputs}
        for name, path in paths.items():
            np.save(path, self.inputs[name], allow_pickle=False)
        return tuple(paths.items())

    def __repr__(self) -> str:
        return f"SearchTask({self.name}, {self.target})"


def _checked_inputs(tensors: Sequence[Tensor], dag: Dag, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    """By the names that programs have for them."""
    known = {tensor.name: renamed for tensor, renamed in zip(tensors, dag.tensors, strict=True) if tensor.is_placeholder}
    for name, value in inputs.items():
        if name not in known:
            raise DeclarationError(f"asked to measure with values for {name!r}, which is no input; the inputs are {', '.join(known)}")
        if not isinstance(value, np.ndarray):
            raise ArgumentError(f"asked to measure with a {type(value).__name__} for {name!r}; give a NumPy array")
        if value.shape != known[name].shape or value.dtype != known[name].dtype:
            wanted = f"{known[name].dtype} of shape {known[name].shape}"
            raise DeclarationError(f"asked to measure with {value.dtype} values of shape {value.shape} for {name!r}, which is declared {wanted}; convert them")
    return {known[name].name: value for name, value in inputs.items()}


def _as_called(source: CSource, alternative: Alternative, dag: Dag) -> CSource:
    """The arguments as the workload declares them."""
    shapes = {tensor.name: tensor.shape for tensor in dag.tensors}
    arguments = [replace(one, shape=shapes[one.name], transform=alternative.transforms.get(one.name)) for one in source.arguments]
    return replace(source, arguments=tuple(arguments), tolerance=alternative.tolerance)


def _function_or_tensors(func: object, args: Sequence[object]) -> Callable[..., object] | tuple[Tensor, ...]:
    """What to call for the tensors, or the tensors. Raises DeclarationError for anything else."""
    if isinstance(func, str):
        return find_operator(func)
    if isinstance(func, Tensor) or isinstance(func, Sequence) and any(isinstance(one, Tensor) for one in func):
        if args:
            raise DeclarationError(f"asked for tensors with args={tuple(args)}; tensors take no arguments: leave args out")
        return tensors_of(func)
    if not callable(func):
        raise DeclarationError(
            f"asked to compute {func!r:.80}, which is a {type(func).__name__}; "
            "give a function that returns tensors, its name, a list of tensors, or a SearchTask"
        )
    return func


def _argument_text(args: Sequence[object]) -> str:
    return f"({', '.join(map(str, args))})" if args else ""
