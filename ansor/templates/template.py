"""Templates by name: functions that define knobs, schedule a declaration by their values, and return the schedule and its arguments.

    @autotvm.template("matmul")
    def matmul(n, m, k):
        ...
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=2)
        yo, yi = cfg["tile_y"].apply(s, C, y)
        return s, [A, B, C]

When called, a template gets the configuration that the innermost dispatch context has for its workload.
Source: AutoTVM 0.9, `autotvm.task.task`, `topi_integration`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Concatenate, NoReturn, ParamSpec, TypeAlias, TypeVar, overload

from ansor.errors import ConfigError, DeclarationError
from ansor.ir.access import producers
from ansor.manual.schedule import Schedule
from ansor.manual.scheduled_stage import as_list
from ansor.support.json_values import Json
from ansor.te.tensor import Tensor, placeholder
from ansor.templates.config import Config
from ansor.templates.dispatch import ApplyConfig, DispatchContext, Workload, current_target

Instance: TypeAlias = tuple[Schedule, Sequence[Tensor]]
"""What a template returns: a schedule, and the kernel's arguments, inputs and outputs in order."""

TemplateFunction = Callable[..., Instance]
F = TypeVar("F", bound=TemplateFunction)
P = ParamSpec("P")

_templates: dict[str, TemplateFunction] = {}
_computes: dict[str, Callable[..., Tensor]] = {}
_schedules: dict[str, Callable[..., Schedule]] = {}


@overload
def template(task_name: str, func: None = None) -> Callable[[F], F]: ...


@overload
def template(task_name: str, func: F) -> F: ...


def template(task_name: str, func: F | None = None) -> Callable[[F], F] | F:
    """Register a function as the template of that name. Use it as a decorator, or call it with both arguments.

    Raises DeclarationError (a ValueError) if the name is taken or not a string. Calling the template with keyword arguments, which logs cannot hold,
    raises it too.
    """

    if not isinstance(task_name, str):
        raise DeclarationError(f"asked for a template named {task_name!r}; write @autotvm.template(name) with a string")

    def register(function: F) -> F:
        _refuse_second(task_name, _templates, function)

        @functools.wraps(function)
        def called(*args: object, **kwargs: object) -> Instance:
            workload = _workload(task_name, args, kwargs)
            with ApplyConfig(DispatchContext.current.query(current_target(), workload)):
                return function(*args)

        called.template_name = task_name  # type: ignore[attr-defined]  # lets a task check that it got a template
        _templates[task_name] = called
        return called  # type: ignore[return-value]  # the same arguments and results

    return register if func is None else register(func)


def get_config() -> Config:
    """The configuration of the running template: the space being collected, or one point of it. Outside of templates, a fallback."""
    return DispatchContext.current.query(current_target(), None)


@overload
def register_topi_compute(task_name: str, func: None = None) -> Callable[[Callable[Concatenate[Config, P], Tensor]], Callable[P, Tensor]]: ...


@overload
def register_topi_compute(task_name: str, func: Callable[Concatenate[Config, P], Tensor]) -> Callable[P, Tensor]: ...


def register_topi_compute(
    task_name: str, func: Callable[Concatenate[Config, P], Tensor] | None = None
) -> Callable[[Callable[Concatenate[Config, P], Tensor]], Callable[P, Tensor]] | Callable[P, Tensor]:
    """Register a function that declares a tensor as the first half of the template of that name. Use it as a decorator, or call it with both arguments.

    The function takes the configuration as its first argument; callers omit it. The tensor stores its workload for the schedule.
    Raises DeclarationError like `template`.
    """

    def register(function: Callable[Concatenate[Config, P], Tensor]) -> Callable[P, Tensor]:
        _refuse_second(task_name, _computes, function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            workload = _workload(task_name, args, kwargs)
            tensor = function(DispatchContext.current.query(current_target(), workload), *args, **kwargs)
            return replace(tensor, attrs={**tensor.attrs, "workload": _Label(workload)})

        _computes[task_name] = called
        return called

    return register if func is None else register(func)


@overload
def register_topi_schedule(task_name: str, func: None = None) -> Callable[[Callable[Concatenate[Config, P], Schedule]], Callable[P, Schedule]]: ...


@overload
def register_topi_schedule(task_name: str, func: Callable[Concatenate[Config, P], Schedule]) -> Callable[P, Schedule]: ...


def register_topi_schedule(
    task_name: str, func: Callable[Concatenate[Config, P], Schedule] | None = None
) -> Callable[[Callable[Concatenate[Config, P], Schedule]], Callable[P, Schedule]] | Callable[P, Schedule]:
    """Register a function that schedules the tensors of `register_topi_compute`, as the second half of the template.

    Use it as a decorator, or call it with both arguments.
    The function takes the configuration and the tensors; callers omit the configuration. Raises DeclarationError like `template`, and if neither the tensors
    nor anything they read comes from the first half of this name.
    """

    def register(function: Callable[Concatenate[Config, P], Schedule]) -> Callable[P, Schedule]:
        _refuse_second(task_name, _schedules, function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> Schedule:
            workload = get_workload(as_list(args[0] if args else None), task_name)
            if workload is None:
                raise DeclarationError(
                    f"asked to schedule {args[:1]} by {task_name!r}, but its @register_topi_compute function declared none of them; "
                    "pass a tensor from that function"
                )
            return function(DispatchContext.current.query(current_target(), workload), *args, **kwargs)

        _schedules[task_name] = called
        return called

    return register if func is None else register(func)


def get_workload(outs: Sequence[object], task_name: str | None = None) -> Workload | None:
    """The workload of the first tensor, among these and everything they read, that a registered function declared (the one of `task_name`, if given).

    None if there is no such tensor.
    """
    waiting, seen = list(outs), set[int]()
    while waiting:
        tensor = waiting.pop(0)
        if not isinstance(tensor, Tensor) or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        label = tensor.attrs.get("workload")
        if isinstance(label, _Label) and task_name in (None, label.workload[0]):
            return label.workload
        waiting += producers(tensor)
    return None


class MissingTask:
    """Stands for a template that is not registered here, so that logs with its name can be read. Raises ConfigError when called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: object) -> NoReturn:
        known = ", ".join(map(repr, sorted({*_templates, *_computes}))) or "none"
        raise ConfigError(f"asked for a program of task {self.name!r}, which is not registered (registered: {known}); import the module that defines it")


def find_template(name: str) -> TemplateFunction:
    """The template of that name, or a function that raises when called."""
    if name in _templates:
        return _templates[name]
    if name in _computes and name in _schedules:
        return functools.partial(_both_halves, name)
    return MissingTask(name)


def is_template(name: str) -> bool:
    """Whether a template of that name exists."""
    return name in _templates or name in _computes


def check_arguments(name: str, args: Sequence[object]) -> None:
    """Raise DeclarationError if the template of that name does not take these arguments. Do nothing if there is no such template."""
    function: Callable[..., object] = _templates.get(name) or _computes.get(name) or MissingTask(name)
    parameters = list(inspect.signature(function).parameters.values())
    signature = inspect.Signature(parameters if name in _templates or name not in _computes else parameters[1:])  # callers omit the configuration
    try:
        signature.bind(*args)
    except TypeError as error:
        raise DeclarationError(f"asked for template {name!r} with the arguments {tuple(args)!r:.200}: {error}; it takes {signature}") from None


def _both_halves(name: str, *args: object) -> Instance:
    """Run both halves of a template. Its arguments are the declared tensor, which comes first as in AutoTVM, and the inputs in order of first read."""
    out = _computes[name](*args)
    schedule = _schedules[name]([out])
    return schedule, [out, *(tensor for tensor in schedule.dag.declared if tensor.is_placeholder)]


@dataclass(frozen=True)
class _Label:
    """A workload as a tensor attribute. Keys of computations cover only plain values, so they do not depend on it."""

    workload: Workload


# arguments --------------------------------------------------------------------------------------------------------------------------------------------


def args_to_workload(args: Sequence[object], task_name: str | None = None) -> Workload:
    """Arguments as a log holds them, preceded by the task's name if given. Raises DeclarationError for an argument that a log cannot hold."""
    serialized = serialize_args(args)
    return serialized if task_name is None else (task_name, *serialized)


def serialize_args(args: Sequence[object]) -> Workload:
    """Arguments as a log holds them: tensors as `("TENSOR", shape, dtype)`, lists as tuples. Raises DeclarationError for one that a log cannot hold."""
    return tuple(map(_serialized, args))


def deserialize_args(args: Workload) -> list[object]:
    """The inverse of `serialize_args`, with placeholders for tensors."""
    return [placeholder(arg[1], arg[2]) if _is_tensor(arg) else arg for arg in args]  # type: ignore[index,arg-type]  # checked there


def _serialized(value: object) -> Json:
    if isinstance(value, Tensor):
        return ("TENSOR", value.shape, value.dtype)
    if isinstance(value, list | tuple):
        return tuple(map(_serialized, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # NumPy integers
    except TypeError:
        raise DeclarationError(f"asked for a workload with the argument {value!r}; logs hold numbers, texts, None, tensors, and lists of them") from None


def _is_tensor(value: Json) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and value[0] == "TENSOR" and isinstance(value[1], tuple) and isinstance(value[2], str)


def _workload(task_name: str, args: Sequence[object], kwargs: object) -> Workload:
    if kwargs:
        raise DeclarationError(f"asked for template {task_name!r} with the keyword arguments {kwargs}; pass them by position, since logs do not hold names")
    return args_to_workload(args, task_name)


def _refuse_second(name: str, known: object, function: object) -> None:
    if name in known:  # type: ignore[operator]  # one of the tables
        raise DeclarationError(f"asked to register {getattr(function, '__qualname__', function)} as {name!r}, which exists already; choose another name")
