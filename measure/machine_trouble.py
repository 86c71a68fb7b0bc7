"""Trouble of the machine: no descriptors, no space, no memory, a compiler that was killed, a worker that does not start.

It says nothing of the program that met it. So it is tried again, and when it stays the run stops with one sentence: such a trial is not
recorded, not counted, and not told to the search.
"""

import errno

from ansor.errors import MeasureError
from ansor.measure.failure import Failure

KIND = "machine"
"""The kind of a `Failure` that is the machine's; no record has it."""

ALONE = "of this program alone, a plain one is fine"
"""In the text of a failure that looked like the machine's until a plain program passed beside it."""

PAUSES = (0.2, 1.0)
"""Seconds to wait before trying again."""

_ERRNOS = {
    errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO, errno.ENODEV, errno.ENOENT, errno.EACCES,
}  # fmt: skip

_CURES = {
    "file descriptors": (("too many open files", "fdquotaexceeded"), "raise `ulimit -n`, or close files"),
    "disk space": (("no space left", "nospaceleft", "disk quota exceeded", "diskquota"), "make room where ANSOR_CACHE and TMPDIR point"),
    "disks that can be written": (
        ("read-only file system", "readonlyfilesystem", "input/output error"), "let ANSOR_CACHE and TMPDIR point to a disk that can be written",
    ),
    "processes": (("resource temporarily unavailable", "unable to spawn", "cannot fork", "fork: retry"), "raise `ulimit -u`, or end other processes"),
    "memory": (
        (
            "cannot allocate memory", "out of memory", "outofmemory", "systemresources", "bad_alloc", "virtual memory exhausted", "sigkill",
            "killed signal", "terminated unexpectedly",
        ),
        "free memory, or lower ANSOR_JOBS",
    ),
}  # fmt: skip
"""What may be missing: what tools say then, in lower case, and what to do."""

_SIGNS = (*(sign for signs, _ in _CURES.values() for sign in signs), "file too short", "invalid elf header")

_SUSPECTS = ("compile", "load", "reference", KIND)
"""Kinds of failures that tools tell of; what a program says while it runs is its own."""

LOST = "the measuring process was lost"
"""How the text of a failure begins when the worker died or fell silent."""


class MachineTrouble(MeasureError):
    """The machine is short of something, or a tool of ours does not work; what was measured before counts. Cure: as the message says."""


def is_trouble(kind: str, text: str) -> bool:
    """Whether a failure of a trial is rather the machine's than the program's."""
    if ALONE in text:
        return False
    if kind in _SUSPECTS:
        return kind == KIND or _has(text, _SIGNS)
    return (kind == "crash" and text.startswith(LOST)) or (kind == "memory" and text.startswith("SIGKILL"))


def settled(failure: Failure, plain_works: bool) -> Failure:
    """What a failure that looks like the machine's is after it came again and again: the program's own, where a plain program works beside it."""
    if plain_works and failure.kind != KIND:
        return Failure(failure.kind, f"{failure.text} ({ALONE})")
    return Failure(KIND, sentence(failure.text))


def check_machine(failure: Failure | None) -> None:
    """Raises MachineTrouble for a failure that is the machine's."""
    if failure is not None and failure.kind == KIND:
        raise MachineTrouble(failure.text)


def is_trouble_of_system(error: BaseException) -> bool:
    """Whether an exception of ours, or what caused it, is the system's refusal rather than a mistake."""
    while True:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _ERRNOS):
            return True
        if error.__cause__ is None:
            return False
        error = error.__cause__


def sentence(text: str) -> str:
    """What stops a run, in one sentence: what is missing, what was said, and what to do."""
    first = " ".join(text.split())[:300]
    for what, (signs, cure) in _CURES.items():
        if _has(text, signs):
            return f"the machine has run out of {what}, which is no program's fault: {first}; {cure}, and run the same again"
    return f"measuring does not work on this machine now, which is no program's fault: {first}; `ansor doctor` checks the installation"


def _has(text: str, signs: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in signs)
