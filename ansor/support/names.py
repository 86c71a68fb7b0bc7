"""Errors for keywords that a function does not have: they say which ones it has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from ansor.errors import ArgumentTypeError
from ansor.support.text import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
Hint = Callable[[str, object, Sequence[str]], str]
"""What to try instead of a keyword and its value, given the known names; '' for nothing."""


def similar(name: str, value: object, names: Sequence[str]) -> str:
    """The most similar name."""
    return did_you_mean(name, names)


def check_known(entry: str, asked: Mapping[str, object], names: Iterable[str], hint: Hint = similar) -> None:
    """Raise ArgumentTypeError for a keyword that the function `entry` does not have; names: those it has."""
    known = list(names)
    for name, value in asked.items():
        if name not in known:
            tip = hint(name, value, known)
            raise ArgumentTypeError(f"asked {entry} for {name}={value!r:.80}, which it does not take{tip}; by name it takes {', '.join(known)}")


def explained(entry: str, function: Callable[P, R], hint: Hint = similar) -> Callable[P, R]:
    """The function, which tells a keyword that it does not have like `known_names`, but only looks for one after Python's own TypeError: calls cost nothing."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            parameters = inspect.signature(function).parameters.values()
            if all(one.kind != one.VAR_KEYWORD for one in parameters):
                check_known(entry, kwargs, [one.name for one in parameters if one.kind != one.VAR_POSITIONAL], hint)
            raise

    return call


def known_names(entry: str = "", hint: Hint = similar) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function raise ArgumentTypeError for a keyword that it does not have. entry: its public name, if that is another one."""

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            check_known(entry or function.__name__, kwargs, names, hint)
            return function(*args, **kwargs)

        return call

    return checked
