"""Checks the arguments of the entry points before anything is read or started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral
from typing import ParamSpec, TypeVar

from ansor.cost_model.base import PACKAGE
from ansor.errors import ArgumentError, ArgumentTypeError
from ansor.measure.timing import TimingOptions
from ansor.support.loaded import needs_torch
from ansor.support.names import check_known, similar
from ansor.targets.base import ALIASES, Target, find_kind, kind_names

P = ParamSpec("P")
R = TypeVar("R")


def few_by_position(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes func, args and target by position. Raises ArgumentTypeError for more: often the numbers that belong in `args`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 3:
            cure = f"the other arguments by name, such as trials={args[3]!r:.80}" if _is_list(args[1]) else f"the function's own as args={args[1:]!r:.80}"
            raise ArgumentTypeError(f"asked {function.__name__} for {len(args)} arguments by position; it takes func, args and target: give {cure}")
        return function(*args, **kwargs)

    return call


def takes_network(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes a network as its argument `model`, and needs PyTorch. Raises ArgumentTypeError for a cost model under that name."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if args and "model" in kwargs:
            raise ArgumentTypeError(f"asked {function.__name__} for model={kwargs['model']!r:.80}, which it does not take beside a network; "
                                    "it calls the cost model cost_model=")  # fmt: skip
        return function(*args, **kwargs)

    return needs_torch(call)


def check_arguments(**given: object) -> None:
    """Raise ArgumentError for the first argument with an invalid value; None passes where it is a default."""
    for name, value in given.items():
        fits, wanted = _KINDS[name]
        if name in _BEFORE_TARGET and _is_target(value):
            raise ArgumentError(f"asked for {name}={str(value)!r}, which is a target; pass it by name, as target={str(value)!r}")
        if not fits(value):
            raise ArgumentError(f"asked for {name}={value!r}; give {wanted}")


def check_names(entry: str, asked: Mapping[str, object], known: type, *others: str) -> None:
    """Raise ArgumentTypeError for a keyword that the entry point does not have; `known`: the TypedDict of its keywords; `others`: what it also takes by name.

    An option of the target `cpu` is told to belong there, if the entry point takes a target."""
    names = sorted([*known.__optional_keys__, *others])  # type: ignore[attr-defined]  # typing does not say that a class is a TypedDict
    check_known(entry, asked, names, option_or_similar)


OTHER_NAMES = {"model": "cost_model", "cost_model": "model"}
"""Keywords that have the other name where `model` is a network."""


def option_or_similar(name: str, value: object, names: Sequence[str]) -> str:
    """A hint for an unknown keyword: what the function calls it, that it is an option of the target, or a similar name."""
    if (other := OTHER_NAMES.get(name)) in names:
        return f" (it calls this {other}=)"
    option = name.replace("_", "-")
    if "target" in names and option in [one.name for one in find_kind("cpu").options]:
        return f': write target="cpu -{option}={value}"'
    return similar(name, value, names)


def is_whole(value: object, least: int) -> bool:
    """Whether the value is a whole number, of Python or NumPy, of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_cost_model(value: object) -> bool:
    if isinstance(value, str):
        return value == PACKAGE
    return not isinstance(value, type) and all(hasattr(value, part) for part in ("fitted", "update", "predict"))  # a class has them too, but is not a model


def _is_target(value: object) -> bool:
    return isinstance(value, Target) or (isinstance(value, str) and value.partition(" ")[0] in (*kind_names(), *ALIASES))


def _is_anything(value: object) -> bool:
    return True


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


_Fits = Callable[[object], bool]


def _optional(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


_BEFORE_TARGET = ("args", "example_inputs", "calibration")
"""Arguments in whose place a target is given by position."""

_KINDS: Mapping[str, tuple[_Fits, str]] = {
    "args": (_is_list, "the function's arguments as a list or tuple, such as args=(64, 64)"),
    "example_inputs": (_is_anything, "the model's inputs"),  # torch is needed to tell: reading the model does
    "calibration": (_is_anything, "representative inputs"),
    "rules": (_optional(_is_list), "a list of sketch rules, names or values, or leave it out"),
    "algorithms": (_optional(_is_list), "a list of algorithms, names or functions, or leave it out"),
    "templates": (_is_list, "a list of templates of ansor.autotvm: names, functions or tasks"),
    "as_written": (lambda value: isinstance(value, bool), "True or False"),
    "pins": (_is_list, "a list of ansor.Pin(name, value)"),
    "records": (_optional(lambda value: isinstance(value, str | os.PathLike)), "the path of a record file, or leave it out"),
    "threads": (lambda value: is_whole(value, 1), "a whole number of at least 1"),
    "embed": (lambda value: isinstance(value, bool), "True or False"),
    "seed": (lambda value: is_whole(value, 0), "a whole number of at least 0"),
    "early_stop": (_optional(lambda value: is_whole(value, 1)), "the number of trials without a better program after which to stop, or leave it out"),
    "model": (_optional(_is_cost_model), "a cost model, with fitted, update and predict, or 'package' for the package's own, or leave it out"),
    "cost_model": (_optional(_is_cost_model), "a cost model, with fitted, update and predict, or 'package' for the package's own, or leave it out"),
    "timing": (_optional(lambda value: isinstance(value, TimingOptions)), "ansor.measure.timing.TimingOptions(...), or leave it out"),
    "progress": (lambda value: value is None or isinstance(value, bool) or hasattr(value, "update"), "True, False, or None: on a terminal and in notebooks"),
    "report": (callable, "a function that takes a line of text, such as print"),
    "on_progress": (callable, "a function that takes an ansor.Progress"),
    "on_tasks": (callable, "a function that takes the tasks' states"),
}
