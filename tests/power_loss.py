"""A machine that loses power at the k-th file operation, and what its disk holds afterwards.

    with PowerLoss(folder, at=k) as power:
        write_something(folder)
    power.lose(names="undone", torn=0.5)      # the folder as the next start finds it
    assert power.died                         # False once k is beyond the last operation

Inside the `with`, calls of `os` that change something under `folder` are counted (`open` that creates, `write`, `ftruncate`, `fsync`, `replace`, `rename`,
`link`, `unlink`, `mkdir`, `rmdir`). Operation number `at` is not done (half of it if it is a write), nor is any after it: clean-up code does nothing on a
machine that is off.
`lose` then removes from every file what was not synced to disk by `fsync`, and, with names="undone", undoes the names that were created or removed since
their folder was synced. Files written by other means than `os` (a compiler, `open(...).write`) count as never synced.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

COUNTED = ("open", "write", "ftruncate", "fsync", "replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")
Names = Literal["kept", "undone"]


class Died(BaseException):
    """The power is gone. A BaseException, as no code may catch it and continue."""


class PowerLoss:
    """See the module. `at` counts from 0; with None it never dies and only counts (`operations`)."""

    def __init__(self, folder: Path, at: int | None = None) -> None:
        self.folder = folder.resolve()
        self.at = at
        self.operations = 0
        self.died = False
        self._real: dict[str, Callable[..., Any]] = {}
        self._synced = {path.stat().st_ino: path.read_bytes() for path in _files(self.folder)}
        self._undo: list[tuple[Path, Callable[[], None]]] = []  # for names: their folder, and how to undo the change; oldest first

    def __enter__(self) -> Self:
        self._real = {name: getattr(os, name) for name in COUNTED}
        for name in COUNTED:
            setattr(os, name, getattr(self, f"_{name}"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        for name, real in self._real.items():
            setattr(os, name, real)
        return kind is Died

    def lose(self, *, names: Names = "kept", torn: float = 0.0) -> None:
        """Leave on disk what is certain to be there, and the share `torn` of the bytes that were written since the last `fsync`."""
        for path in _files(self.folder):
            content, synced = path.read_bytes(), self._synced.get(path.stat().st_ino, b"")
            if content != synced:
                same = len(os.path.commonprefix([content, synced]))
                path.write_bytes(content[: same + int((len(content) - same) * torn)])
        if names == "undone":
            for _, undo in reversed(self._undo):
                undo()
        self._undo.clear()

    def _step(self, concerns: bool) -> bool:
        """Count an operation; True if it is the one at which the machine dies."""
        if not concerns:
            return False
        if self.died:
            raise Died
        self.died = self.operations == self.at
        self.operations += 1
        return self.died

    def _do(self, name: str, path: object, *args: Any, **options: Any) -> Any:
        if self._step(self._within(path)):
            raise Died
        return self._real[name](path, *args, **options)

    def _within(self, path: object) -> bool:
        if isinstance(path, int):
            return self._place(path) is not None
        return isinstance(path, (str, os.PathLike)) and self.folder in (Path(path).absolute(), *Path(path).absolute().parents)

    def _place(self, descriptor: int) -> Path | None:
        """The file or folder under `folder` that a descriptor refers to."""
        try:
            place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            return None
        return place if self.folder in (place, *place.parents) else None

    def _note(self, path: object, undo: Callable[[], None]) -> None:
        self._undo.append((Path(str(path)).absolute().parent, undo))

    def _open(self, path: object, flags: int, *args: Any, **options: Any) -> int:
        creates = bool(flags & os.O_CREAT) and self._within(path) and not os.path.lexists(str(path))
        if creates and self._step(True):
            raise Died
        descriptor: int = self._real["open"](path, flags, *args, **options)
        if creates:
            self._note(path, lambda: Path(str(path)).unlink(missing_ok=True))
        return descriptor

    def _write(self, descriptor: int, content: bytes) -> int:
        if self._step(self._within(descriptor)):
            self._real["write"](descriptor, bytes(content)[: len(content) // 2])
            raise Died
        return int(self._real["write"](descriptor, content))

    def _ftruncate(self, descriptor: int, length: int) -> None:
        self._do("ftruncate", descriptor, length)

    def _fsync(self, descriptor: int) -> None:
        self._do("fsync", descriptor)
        place = self._place(descriptor)
        if place is not None and place.is_dir():
            self._undo = [(folder, undo) for folder, undo in self._undo if folder != place]
        elif place is not None:
            self._synced[os.fstat(descriptor).st_ino] = place.read_bytes()

    def _replace(self, source: object, target: object) -> None:
        there = Path(str(target))
        before = self._kept(there)
        self._move(source, target)

        def undo() -> None:
            if there.exists():
                self._real["replace"](target, source)
            if before is not None:
                there.write_bytes(before)

        self._note(target, undo)

    _rename = _replace

    def _move(self, source: object, target: object) -> None:
        if self._step(self._within(target)):
            raise Died
        self._real["replace"](source, target)

    def _link(self, source: object, target: object, **options: Any) -> None:
        if self._step(self._within(target)):
            raise Died
        self._real["link"](source, target, **options)
        self._note(target, lambda: Path(str(target)).unlink(missing_ok=True))

    def _unlink(self, path: object, **options: Any) -> None:
        there = Path(str(path))
        before = self._kept(there) if "dir_fd" not in options else None
        self._do("unlink", path, **options)
        if before is not None:
            self._note(path, lambda: None if there.exists() else _restore(there, before))

    _remove = _unlink

    def _mkdir(self, path: object, *args: Any, **options: Any) -> None:
        self._do("mkdir", path, *args, **options)
        if self._within(path):
            self._note(path, lambda: shutil.rmtree(str(path), ignore_errors=True))

    def _rmdir(self, path: object, **options: Any) -> None:
        self._do("rmdir", path, **options)

    def _kept(self, path: Path) -> bytes | None:
        """What is left of a file after a loss of power, or None if the file is missing."""
        if not self._within(path) or not path.is_file():
            return None
        return self._synced.get(path.stat().st_ino, b"")


def every_death(folder: Path, work: Callable[[], object], begin: Callable[[], object], limit: int = 200) -> Iterator[str]:
    """Every way to lose power during `work`, or right after it.

    For each, `begin` restores the folder, work dies, and the disk is left as it is after that, for the caller to check. Yields what was done, for
    messages.
    """
    for at in range(limit):
        for names, torn in product(NAMES, (0.0, 0.5, 1.0)):
            begin()
            with PowerLoss(folder, at) as power:
                work()
            power.lose(names=names, torn=torn)
            yield f"at operation {at}, names {names}, {torn:.0%} of what was not synced left"
        if not power.died:  # the last time, the power was lost right after the work
            return
    raise AssertionError(f"work takes more than {limit} operations")


NAMES: tuple[Names, ...] = ("kept", "undone")


def _restore(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
