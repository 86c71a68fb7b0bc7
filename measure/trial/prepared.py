"""Arguments as files that this machine writes, for devices whose programs read its files: an emulator takes a hundred times as long to fill one.

Logical contents are written once for each task. What happens to an argument ahead of time happens here for each candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansor.codegen.source import Argument
from ansor.measure.trial.proof import Arrays
from ansor.measure.trial.recipe import Stored


class Prepared:
    """Files in a folder. What stays of a task goes by a name of its own; files of the present candidate are those of the one before it, written anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, tuple[str, ...]] = {}

    def keep(self, task: str, inputs: Arrays, outputs: bytes) -> None:
        """Write the logical inputs and constants of a task, and the file of its outputs, which has the task's name."""
        self._names[task] = tuple(inputs)
        (self._folder / task).write_bytes(outputs)
        for place, array in enumerate(inputs.values()):
            np.save(self._logical(task, place), np.ascontiguousarray(array), allow_pickle=False)

    def sources(self, task: str, arguments: Sequence[Argument]) -> Mapping[str, Stored]:
        """The inputs and constants of a candidate for a task that is kept, as they lie in its buffers."""
        return {one.name: self._stored(task, place, one) for place, one in enumerate(arguments) if one.role != "output"}

    def forget(self, task: str) -> None:
        """Remove what stays of a task."""
        for place in range(len(self._names.pop(task, ()))):
            self._logical(task, place).unlink(missing_ok=True)

    def _stored(self, task: str, place: int, argument: Argument) -> Stored:
        logical = self._logical(task, self._names[task].index(argument.name))
        array = np.load(logical, mmap_mode="r", allow_pickle=False)
        if argument.as_given:
            return Stored(str(logical.absolute()), array.nbytes)
        found, path = argument.physical(array), self._folder / f"argument-{place}"
        path.write_bytes(found.data)
        return Stored(str(path.absolute()), found.nbytes)

    def _logical(self, task: str, place: int) -> Path:
        return self._folder / f"{task}-{place}.npy"
