"""Writes arguments to files, for devices whose programs read this machine's files: filling one in an emulator takes a hundred times as long.

Logical contents are written once per task. Arguments are packed here, for each candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansor.codegen.source import Argument
from ansor.measure.trial.proof import Arrays
from ansor.measure.trial.recipe import Stored


class Prepared:
    """Files in a folder. A task's files have names of their own; a candidate's files overwrite those of the previous one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, tuple[str, ...]] = {}

    def keep(self, task: str, inputs: Arrays, outputs: bytes) -> None:
        """Write a task's logical inputs and constants, and the file of its outputs, named after the task."""
        self._names[task] = tuple(inputs)
        (self._folder / task).write_bytes(outputs)
        for place, array in enumerate(inputs.values()):
            np.save(self._logical(task, place), np.ascontiguousarray(array), allow_pickle=False)

    def sources(self, task: str, arguments: Sequence[Argument]) -> Mapping[str, Stored]:
        """The inputs and constants of a candidate of a kept task, in the layout of its buffers."""
        return {one.name: self._stored(task, place, one) for place, one in enumerate(arguments) if one.role != "output"}

    def forget(self, task: str) -> None:
        """Remove a task's files."""
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
