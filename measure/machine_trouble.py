"""Trouble of the machine: no descriptors, no space, no memory, a compiler that was killed, a worker that does not start.

It says nothing of the program that met it. So it is tried again, and when it stays the run stops with one sentence: such a trial is not
recorded, not counted, and not told to the search.
"""

from ansor.errors import MachineTrouble
from ansor.measure.failure import Failure
from ansor.support.shortage import is_shortage, sentence

KIND = "machine"
"""The kind of a `Failure` that is the machine's; no record has it."""

ALONE = "of this program alone, a plain one is fine"
"""In the text of a failure that looked like the machine's until a plain program passed beside it."""

_SUSPECTS = ("compile", "load", "reference", KIND)
"""Kinds of failures that tools tell of; what a program says while it runs is its own."""

LOST = "the measuring process was lost"
"""How the text of a failure begins when the worker died or fell silent."""


def is_trouble(kind: str, text: str) -> bool:
    """Whether a failure of a trial is rather the machine's than the program's."""
    if ALONE in text:
        return False
    if kind in _SUSPECTS:
        return kind == KIND or is_shortage(text)
    return (kind == "crash" and text.startswith(LOST)) or (kind == "memory" and text.startswith("SIGKILL"))


def settled(failure: Failure, plain_works: bool) -> Failure:
    """What a failure that looks like the machine's is after it came again and again: the program's own, where a plain program works beside it."""
    if plain_works and failure.kind != KIND:
        return Failure(failure.kind, f"{failure.text} ({ALONE})")
    return Failure(KIND, sentence(failure.text))


def check_trouble(failure: Failure | None) -> None:
    """Raises MachineTrouble for a failure that is the machine's."""
    if failure is not None and failure.kind == KIND:
        raise MachineTrouble(failure.text)
