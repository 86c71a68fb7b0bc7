"""`tvm.contrib.utils`: temporary folders."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType


class TempDirectory(AbstractContextManager["TempDirectory"]):
    """A folder that is deleted together with this object, or at the end of a `with`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ansor-", ignore_cleanup_errors=True)
        self.temp_dir = self._folder.name
        self.path = Path(self.temp_dir)

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """The names of its files."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Delete the folder now."""
        self._folder.cleanup()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    """A new folder."""
    return TempDirectory()
