"""A process that picks programs for another one, `ansor.run.picks_together`: pickles of tasks on standard input, a line for each on standard output."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from typing import BinaryIO

from ansor.run.zero_tuning import pick


def serve(given: BinaryIO, told: BinaryIO) -> None:
    """Pick a program for each task, into the cache of picks, until the input ends. Its sender is the process that started this one, so it may be unpickled."""
    _tell(told, b"ready\n")
    with suppress(EOFError):
        while True:
            task, model, seed = pickle.load(given)
            with suppress(Exception):  # the sender finds no pick, makes its own, and meets the error
                pick(task, model, seed=seed)
            _tell(told, b"done\n")


def _tell(told: BinaryIO, line: bytes) -> None:
    told.write(line)
    told.flush()


def main() -> None:
    """Serve the process that started this one."""
    serve(sys.stdin.buffer, sys.stdout.buffer)
