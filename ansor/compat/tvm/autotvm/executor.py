"""`tvm.autotvm.measure.executor`: what runs calls elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Executor(ABC):
    """A base for executors of one's own. Builders and runners of ours measure in processes of their own, and ask none."""

    @abstractmethod
    def submit(self, func: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Start a call, and give what its result comes from."""
