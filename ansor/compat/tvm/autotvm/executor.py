"""`tvm.autotvm.measure.executor`: runs calls elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Executor(ABC):
    """Base class for the `executor` of a LocalRunner. Programs always run in their own processes."""

    @abstractmethod
    def submit(self, func: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Start a call, and return a handle to its result."""
