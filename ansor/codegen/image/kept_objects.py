"""Objects of loop nests, kept in memory: candidates of one task have most nests in common, and compilers take longer than boards."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ansor.support.forked import Locked


@dataclass(frozen=True, slots=True)
class NestObject:
    """The object of a nest. digest: of its machine code; frame: bytes of the stack frames of all its functions, more than a call can take."""

    content: bytes
    digest: str
    frame: int


class KeptObjects(Locked):
    """Those used last, up to `most_bytes` together. Threads may share it."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self.after_fork()

    def after_fork(self) -> None:
        """Forget them: another thread may have been changing them."""
        self._objects = OrderedDict[str, NestObject]()
        self._bytes = 0

    def get(self, key: str) -> NestObject | None:
        """The object of a key, if it is still there."""
        with self.lock:
            if key in self._objects:
                self._objects.move_to_end(key)
            return self._objects.get(key)

    def keep(self, key: str, one: NestObject) -> None:
        """Keep an object, and drop those that were not used for longest if there are too many bytes."""
        with self.lock:
            replaced = self._objects.pop(key, None)
            self._objects[key] = one
            self._bytes += len(one.content) - (len(replaced.content) if replaced else 0)
            while self._bytes > self._most_bytes:
                _, dropped = self._objects.popitem(last=False)
                self._bytes -= len(dropped.content)
