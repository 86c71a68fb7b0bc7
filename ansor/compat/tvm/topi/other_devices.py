"""`tvm.topi.cuda` and its like: scripts name their functions in tables of devices. They can be named; who calls one is told what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ansor.compat.common.not_here import MissingNameError
from ansor.errors import TargetError


class OtherDeviceError(MissingNameError, TargetError):
    """An operator or schedule of another device was called. Cure: what the message names."""


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Every name is a function that raises OtherDeviceError."""
    if name.startswith("__"):
        raise AttributeError(name)

    def call(*args: object, **kwargs: object) -> NoReturn:
        raise OtherDeviceError(f"asked for {name} of another device; programs are made for processors: use topi.nn and topi.generic with the target 'llvm'")

    return call
