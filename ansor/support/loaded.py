"""PyTorch if the process has imported it, and the error for what needs it where it is not installed. Nothing here imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import ParamSpec, TypeVar

from ansor.errors import MissingPackageError

P = ParamSpec("P")
R = TypeVar("R")
NEEDED = ("Tensor", "is_grad_enabled", "__file__")


def loaded_torch() -> ModuleType | None:
    """PyTorch if it was imported. None while another thread imports it, or if something replaces it (such as None, which forbids imports)."""
    torch = sys.modules.get("torch")
    return torch if all(hasattr(torch, name) for name in NEEDED) else None


@contextmanager
def torch_needed(by: str) -> Iterator[None]:
    """Raises MissingPackageError where PyTorch is imported and not installed. by: what needs it, a public name."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        cure = "install it: pip install torch, or install ansor without --no-deps"
        raise MissingPackageError(f"asked for {by}, which needs PyTorch, but the package torch is not installed ({error}); {cure}") from error


def needs_torch(function: Callable[P, R]) -> Callable[P, R]:
    """The function; where PyTorch is not installed, it raises MissingPackageError."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch_needed(function.__name__):
            return function(*args, **kwargs)

    return call
