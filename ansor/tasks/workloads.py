"""Functions that declare what to compute, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

from ansor.errors import DeclarationError
from ansor.support.names import known_names
from ansor.support.text import did_you_mean
from ansor.te.tensor import Tensor
from ansor.templates.template import is_template
from ansor.zoo.catalogue import OPERATORS

WorkloadFunction = Callable[..., Sequence[Tensor]]
F = TypeVar("F", bound=WorkloadFunction)

_workloads: dict[str, WorkloadFunction] = {}


@overload
def register_workload(function: F, *, override: bool = False) -> F: ...


@overload
def register_workload(function: str | None = None, *, override: bool = False) -> Callable[[F], F]: ...


@known_names()
def register_workload(function: F | str | None = None, *, override: bool = False) -> F | Callable[[F], F]:
    """Register a function that returns tensors, so that tasks can be made from its name: a decorator, with or without a name.

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
    """Whether a function is registered under that name."""
    return name in _workloads


def forget_workload(name: str) -> WorkloadFunction:
    """Unregister a function and return it. Raises DeclarationError when there is none."""
    function = find_workload(name)
    del _workloads[name]
    return function


def workload_names() -> list[str]:
    """The names of all registered functions."""
    return list(_workloads)


def find_workload(name: str) -> WorkloadFunction:
    """The function registered under that name. Raises DeclarationError when there is none."""
    if name not in _workloads:
        known = ", ".join(sorted(_workloads)) or "none"
        raise DeclarationError(f"asked for workload {name!r}, which is not registered; registered are: {known}; decorate it with @ansor.register_workload")
    return _workloads[name]


def find_operator(name: str) -> WorkloadFunction:
    """The registered function or built-in operator of that name, as in `ansor tune NAME`. Raises DeclarationError, listing the known names."""
    if name in _workloads:
        return _workloads[name]
    if name in OPERATORS:
        return OPERATORS[name].function
    if is_template(name):
        raise DeclarationError(f"asked for workload {name!r}, which is a template: give the decorated function in place of its name, or templates=[{name!r}]")
    hint = did_you_mean(name, [*_workloads, *OPERATORS])
    registered = f"registered are {', '.join(sorted(_workloads))}; " if _workloads else ""
    raise DeclarationError(
        f"asked for workload {name!r}, which is not registered and not built in{hint}; {registered}built in are {', '.join(OPERATORS)}; "
        "decorate your own function with @ansor.register_workload"
    )


def workload_name(function: WorkloadFunction) -> str | None:
    """The name under which a function is registered; None when it is not."""
    return next((name for name, known in _workloads.items() if known is function or known.__code__ is function.__code__), None)
