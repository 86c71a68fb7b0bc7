"""A task: one declaration to be tuned for one target."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ansor.algorithms.base import DIRECT, Algorithm, Alternative
from ansor.algorithms.builtin import alternatives_of, registered
from ansor.codegen.source import CSource
from ansor.errors import ArgumentError, DeclarationError, RecordError
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.measure.measure_task import MeasureTask
from ansor.measure.reference import measure_task
from ansor.rules.base import SketchRule
from ansor.rules.registry import resolve
from ansor.schedule.known_nests import KnownNests
from ansor.schedule.sketch import Sketch
from ansor.search.derive import spaces
from ansor.support.html_text import table
from ansor.support.notices import warn
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_arguments, check_names
from ansor.tasks.declared import call, tensors_of
from ansor.tasks.pins import Pin, pinned
from ansor.tasks.recorded import RecordedTrials, recorded_outcomes, say_left_out
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.workloads import find_operator
from ansor.te.tensor import Tensor

if TYPE_CHECKING:
    from ansor.manual.schedule import Schedule
    from ansor.tasks.template_programs import Template
    from ansor.templates.task import Task as TemplateTask

Workload: TypeAlias = "Callable[..., Sequence[Tensor] | Tensor | tuple[Schedule, Sequence[Tensor]]] | str | Sequence[Tensor] | Tensor"
"""What to compute: a function of `args` (a template also returns its schedule), its name, or what it would return."""


class Scope(TypedDict, total=False):
    """The keywords that decide what is searched: see `SearchTask`."""

    rules: Sequence[str | SketchRule] | None
    algorithms: Sequence[str | Algorithm] | None
    templates: Sequence[Template]
    pins: Sequence[Pin]


class TaskScope(Scope, total=False):
    """The same, and whether the declaration is searched as written."""

    as_written: bool


Found = TypeVar("Found", covariant=True)


class Tuning(Protocol[Found]):
    """How a task is tuned: `ansor.TuningOptions`."""

    def tuned(self, task: SearchTask) -> Found:
        """Tune it."""
        ...


class SearchTask:
    """What to compute, and for which machine.

    Args:
        func: a function that returns the tensors (inputs and outputs, in order), the name of a registered one or of a built-in operator (`matmul`), a list of
            tensors, or one computed tensor, whose inputs are then taken in the order in which they are read.
        args: its arguments.
        target: target text such as `cpu -threads=1`.
        tensors: the tensors themselves, instead of `func`.
        name: a display name; the function's name by default.
        rules: sketch rules, names or values, in order; the target's own by default.
        algorithms: names or functions that offer other declarations of the same computation to search as well (see `ansor.algorithms.base`); all registered
            ones by default, () for none.
        templates: templates of `ansor.autotvm` to search as well: names, functions, or template tasks if their arguments are not `args`. `func` may itself be
            a template; then there are no rules by default.
        pins: parts of sketches to fix, such as `Pin("C*.j", (..., 16))` (see `ansor.Pin`).
        as_written: search the declaration's own stages and axes, not those of its normal form (`ansor.ir.normal.form`). Always the case with templates.
        inputs: values of inputs, by tensor name, to measure with instead of generated ones: indices, sparse structures.
    """

    def __init__(
        self,
        func: Workload | None = None,
        args: Sequence[object] = (),
        target: str | Target = "cpu",
        *,
        tensors: Sequence[Tensor] | None = None,
        name: str = "",
        inputs: Mapping[str, NDArray[np.generic]] | None = None,
        **scope: Unpack[TaskScope],
    ) -> None:
        check_names("SearchTask", scope, TaskScope, "inputs", "name", "target", "tensors")
        check_arguments(args=args, **scope)
        self.target = parse_target(target)
        if (func is None) == (tensors is None):
            raise DeclarationError("a task takes exactly one of func (with args) and tensors")
        declared = Declared(tensors, name) if func is None else _declared(func, tuple(args), name)
        rules, algorithms = scope.get("rules"), scope.get("algorithms")
        rules = () if rules is None and declared.templates else rules
        self.rules = self.target.rules if rules is None else resolve(rules)
        self.templates, found = _of_templates((*declared.templates, *scope.get("templates", ())), tuple(args))
        self.tensors = tuple(found if declared.tensors is None else declared.tensors)
        self.declared = Dag(self.tensors)
        self.dag = self.declared if self.templates or scope.get("as_written") else _in_normal_form(self.declared)
        self.name = declared.name or self.dag.outputs[0].name
        self.algorithms = None if algorithms is None else tuple(algorithms)
        self.pins = tuple(scope.get("pins", ()))
        self.inputs = _checked_inputs(self.tensors, self.declared, inputs or {})

    def tune(self, options: Tuning[Found]) -> Found:
        """Measure programs according to the options (`ansor.TuningOptions`); the result is in the record file and in the returned state."""
        if not hasattr(options, "tuned"):
            raise ArgumentError(f"asked to tune with {options!r:.80}, which is a {type(options).__name__}; give ansor.TuningOptions(num_measure_trials=...)")
        return options.tuned(self)

    def apply_best(self, records: str | Path) -> tuple[Sketch, list[Tensor]]:
        """The best recorded schedule with all numbers filled in, and the tensors it belongs to. Raises RecordError when there is none."""
        found = recorded_outcomes(self, records) if Path(records).exists() else RecordedTrials([], {})
        best = found.best
        if Path(records).exists():
            say_left_out([found.left_out], records, warn if best is None else lambda line: None, warn)
        if best is None:
            raise RecordError(f"{records} has no valid record of {self.name} (workload {self.workload_key}) for target {self.target}; tune it first")
        sketch = self.spaces[best.pick.space].sketch
        return Sketch(sketch.dag, sketch.concrete_steps(best.pick.row)), list(sketch.dag.tensors)

    @property
    def workload_key(self) -> str:
        """The computation's key: the same in every run, on every machine, and for all declarations with the same normal form."""
        return self.dag.key

    @property
    def workload_keys(self) -> tuple[str, ...]:
        """The keys that its records may have: older records have the key of the declaration as written."""
        return tuple(dict.fromkeys((self.dag.key, self.declared.key)))

    @property
    def flop(self) -> int:
        """Arithmetic operations of one run."""
        return self.dag.flop

    @cached_property
    def spaces(self) -> tuple[SketchSpace, ...]:
        """What is searched: every sketch of the declaration, then of its alternatives, with locations and annotations open; then those of templates."""
        declared = (Alternative(DIRECT, self.dag), *self.alternatives) if self.rules or not self.templates else ()
        used: set[int] = set()
        found = [SketchSpace(sketch, self.target, one.name) for one in declared for sketch in spaces(one.dag, self.target, self.rules, used)]
        if declared:
            self._say_unused(used)
        if self.templates:
            from ansor.tasks.template_programs import spaces_of

            found += spaces_of(self.templates, self.dag, self.target)
        return tuple(pinned(found, self.pins))

    def _say_unused(self, used: set[int]) -> None:
        """Warn about rules that the caller gave and that never apply: that is usually a mistake."""
        given = [rule for number, rule in enumerate(self.rules) if number not in used and rule not in (*self.target.rules, *resolve(self.target.rules))]
        stages = ", ".join(stage.name for stage in self.dag.stages if not stage.is_placeholder)
        for rule in given:
            warn(f"the rule {rule} makes no sketch of {self.name} (stages {stages}): it yields nothing for them, or an exclusive rule before it applies")

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The other declarations of the same computation that are also searched."""
        return alternatives_of(self.dag, registered(self.target.algorithms) if self.algorithms is None else self.algorithms)

    def alternative_of(self, sketch: Sketch) -> Alternative | None:
        """The alternative that a sketch belongs to; None for the declaration itself."""
        if sketch.dag is self.dag:
            return None
        same = next((one for one in self.alternatives if one.dag is sketch.dag), None)
        if same is not None or sketch.dag.key == self.dag.key:
            return same
        return next((one for one in self.alternatives if one.dag.key == sketch.dag.key), None)  # a sketch of a task that was declared again

    def source(self, sketch: Sketch, row: Sequence[int], entry: str = "kernel") -> CSource:
        """C of one program of a sketch."""
        known = self._known_nests if self.target.dialect.apart else None
        source = self.target.emit(sketch.lower_row(row, entry, known), entry)
        alternative = self.alternative_of(sketch)
        return source if alternative is None else self.target.called(_as_called(source, alternative, self.dag))

    @cached_property
    def _known_nests(self) -> KnownNests:
        """Nests of its programs, where each is compiled on its own."""
        return KnownNests(most=256)

    @cached_property
    def measure_task(self) -> MeasureTask:
        """What all measurements of this task share: the reference in double precision, and inputs that stay in bounds."""
        return replace(measure_task(self.declared, self.target), files=self._input_files)

    @cached_property
    def _input_files(self) -> tuple[tuple[str, str], ...]:
        """The given inputs, saved to disk for the measuring process."""
        if not self.inputs:
            return ()
        folder = Path(tempfile.mkdtemp(prefix="ansor-inputs-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        paths = {name: str(folder / f"{name}.npy") for name in self.inputs}
        for name, path in paths.items():
            np.save(path, self.inputs[name], allow_pickle=False)
        return tuple(paths.items())

    def __getstate__(self) -> dict[str, object]:
        """Without known nests: their keys hold ids, which mean nothing in a copy."""
        return {name: value for name, value in self.__dict__.items() if name != "_known_nests"}

    def __repr__(self) -> str:
        return f"SearchTask({self.name}, {self.target})"

    def _repr_html_(self) -> str:
        rows = [(k, space.algorithm, len(space.sketch.steps), f"{float(np.prod(space.sizes, dtype=float)):.3g}") for k, space in enumerate(self.spaces)]
        return table(repr(self), ("sketch", "algorithm", "steps", "programs"), rows)


def _in_normal_form(declared: Dag) -> Dag:
    """The declaration in normal form; the declaration itself if it already is."""
    found = normal_form(declared.tensors)
    return declared if all(map(is_, found, declared.tensors)) else Dag(found)


def _checked_inputs(tensors: Sequence[Tensor], dag: Dag, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    """The inputs under the names that programs use. Raises DeclarationError or ArgumentError for values that do not fit."""
    known = {tensor.name: renamed for tensor, renamed in zip(tensors, dag.tensors, strict=True) if tensor.is_placeholder}
    for name, value in inputs.items():
        if name not in known:
            raise DeclarationError(f"asked to measure with values for {name!r}, which is not an input; the inputs are {', '.join(known)}")
        if not isinstance(value, np.ndarray):
            raise ArgumentError(f"asked to measure with a {type(value).__name__} for {name!r}; give a NumPy array")
        if value.shape != known[name].shape or value.dtype != known[name].dtype:
            wanted = f"{known[name].dtype} of shape {known[name].shape}"
            raise DeclarationError(f"asked to measure with {value.dtype} values of shape {value.shape} for {name!r}, which is declared {wanted}; convert them")
    return {known[name].name: value for name, value in inputs.items()}


def _as_called(source: CSource, alternative: Alternative, dag: Dag) -> CSource:
    """The source with the arguments as the workload declares them."""
    own = {tensor.name: tensor for tensor in dag.tensors}
    arguments = [replace(one, shape=own[one.name].shape, dtype=own[one.name].dtype, transform=alternative.transforms.get(one.name)) for one in source.arguments]
    return replace(source, arguments=tuple(arguments), tolerance=alternative.tolerance)


@dataclass(frozen=True)
class Declared:
    """What a function or tensors declare. templates: the function, if it is a template; the tensors are then those of its programs."""

    tensors: Sequence[Tensor] | None
    name: str
    templates: tuple[Template, ...] = ()


def _declared(func: Workload, args: tuple[object, ...], name: str) -> Declared:
    function = _function_or_tensors(func, args)
    if not callable(function):
        return Declared(function, name)
    name = name or f"{getattr(function, '__name__', 'task')}{_argument_text(args)}"
    if hasattr(function, "template_name"):
        return Declared(None, name, (function,))
    return Declared(tensors_of(call(function, args), f"workload {getattr(function, '__name__', function)}"), name)


def _of_templates(templates: Sequence[Template], args: tuple[object, ...]) -> tuple[tuple[TemplateTask, ...], tuple[Tensor, ...]]:
    """Each template as a separate task, and the tensors of the first."""
    if not templates:
        return (), ()
    from ansor.tasks.template_programs import tasks_of

    return tasks_of(templates, args)


def _function_or_tensors(func: object, args: Sequence[object]) -> Callable[..., object] | tuple[Tensor, ...]:
    """The function that returns the tensors, or the tensors. Raises DeclarationError for anything else."""
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
