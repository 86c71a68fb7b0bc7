"""`tvm.topi.cuda` and its like: scripts name their functions in tables of devices. They can be named; who calls one is told what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ansor.errors import TargetError


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Every name is a function that raises TargetError."""
    if name.startswith("__"):
        raise AttributeError(name)

    def call(*args: object, **kwargs: object) -> NoReturn:
        raise TargetError(f"asked for {name} of another device; programs are made for processors: use topi.nn and topi.generic with the target 'llvm'")

    return call
