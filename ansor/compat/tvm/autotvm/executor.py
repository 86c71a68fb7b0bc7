"""`tvm.autotvm.measure.executor`: what runs calls elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Executor(ABC):
    """A base for executors of one's own, which a LocalRunner's `executor` may be. Programs run in processes of their own in any case."""

    @abstractmethod
    def submit(self, func: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Start a call, and give what its result comes from."""
