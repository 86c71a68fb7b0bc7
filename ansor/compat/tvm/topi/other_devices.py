"""`tvm.topi.cuda` and the like. Scripts list their functions in tables of devices; naming one works, calling it raises an error that says what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ansor.compat.common.not_here import MissingNameError
from ansor.errors import TargetError


class OtherDeviceError(MissingNameError, TargetError):
    """An operator or schedule of another device was called. Cure: use what the message names."""


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """A function that raises OtherDeviceError, for every name."""
    if name.startswith("__"):
        raise AttributeError(name)

    def call(*args: object, **kwargs: object) -> NoReturn:
        raise OtherDeviceError(f"asked for {name} of another device; only CPUs are supported: use topi.nn and topi.generic with the target 'llvm'")

    return call
