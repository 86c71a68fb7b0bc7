"""Failures of the machine: no descriptors, no space, no memory, a killed compiler, a worker that does not start.

They say nothing about the program. So the trial is retried, and if the failure persists the run stops with one sentence: such a trial is not
recorded, not counted, and not reported to the search.
"""

from ansor.errors import MachineTrouble
from ansor.measure.failure import Failure
from ansor.support.shortage import is_shortage, sentence

KIND = "machine"
"""The kind of `Failure` caused by the machine; never recorded."""

ALONE = "of this program alone, a plain one is fine"
"""Marks a failure that looked like the machine's until a plain program passed."""

_SUSPECTS = ("compile", "load", "reference", KIND)
"""Kinds of failures that tools report, perhaps because of the machine. A failure that a running program reports is its own."""

LOST = "the measuring process was lost"
"""Begins the text of a failure if the worker died or fell silent."""


def is_trouble(kind: str, text: str) -> bool:
    """Whether a trial's failure is probably the machine's, not the program's."""
    if ALONE in text:
        return False
    if kind in _SUSPECTS:
        return kind == KIND or is_shortage(text)
    return (kind == "crash" and text.startswith(LOST)) or (kind == "memory" and text.startswith("SIGKILL"))


def settled(failure: Failure, plain_works: bool) -> Failure:
    """The verdict on a persistent failure that looks like the machine's: the program's own if a plain program works, else the machine's."""
    if plain_works and failure.kind != KIND:
        return Failure(failure.kind, f"{failure.text} ({ALONE})")
    return Failure(KIND, sentence(failure.text))


def check_trouble(failure: Failure | None) -> None:
    """Raises MachineTrouble for a failure of the machine."""
    if failure is not None and failure.kind == KIND:
        raise MachineTrouble(failure.text)
