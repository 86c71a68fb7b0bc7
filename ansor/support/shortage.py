"""What a machine can run out of: how the system and tools report it, and what to tell the user to do."""

import errno

PAUSES = (0.2, 1.0)
"""Seconds to wait before each retry of work that failed because of the machine."""

COMPILER_PAUSES = (0.2, 0.5, 1.0, 1.0, 1.0)
"""The same for compiler calls: while memory is short, half of them may be killed."""

_ERRNOS = {
    errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EAGAIN, errno.EROFS, errno.EIO, errno.ENODEV, errno.ENOENT,
    errno.EACCES,
}  # fmt: skip

_CURES = (
    ("file descriptors", ("too many open files", "fdquotaexceeded"), "raise `ulimit -n`, or close files"),
    ("space under the file size limit", ("file too large", "filetoobig", "sigxfsz"), "raise `ulimit -f`"),
    ("disk space", ("no space left", "nospaceleft", "disk quota exceeded", "diskquota"), "free space where ANSOR_CACHE and TMPDIR point"),
    ("writable disks", ("read-only file system", "readonlyfilesystem", "input/output error"), "let ANSOR_CACHE and TMPDIR point to a writable disk"),
    ("processes", ("resource temporarily unavailable", "unable to spawn", "cannot fork", "fork: retry"), "raise `ulimit -u`, or end other processes"),
    ("memory", ("unable to allocate",), "free memory, or use smaller sizes"),  # NumPy's words for an array
    (
        "memory",
        (
            "cannot allocate memory", "memoryerror", "out of memory", "outofmemory", "systemresources", "bad_alloc", "virtual memory exhausted", "sigkill",
            "killed signal", "terminated unexpectedly",
        ),
        "free memory, or lower ANSOR_JOBS",
    ),
)  # fmt: skip
"""What may run out, what tools report then, in lower case, and what to do. The first whose words occur counts."""

_SIGNS = (*(sign for _, signs, _ in _CURES for sign in signs), "file too short", "invalid elf header")


def is_trouble_of_system(error: BaseException) -> bool:
    """Whether an exception, or one of its causes, means that the system refused something, rather than a mistake in the program."""
    while True:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _ERRNOS):
            return True
        if error.__cause__ is None:
            return False
        error = error.__cause__


def is_shortage(text: str) -> bool:
    """Whether a tool's output says that the machine ran out of something, or that a file was truncated."""
    return _has(text, _SIGNS)


def sentence(text: str) -> str:
    """The error that stops a run, in one sentence: what is missing, the tool's text, and what to do."""
    for what, signs, cure in _CURES:
        if _has(text, signs):
            said = next((line for line in text.splitlines() if _has(line, signs)), text)  # tools print warnings first
            return f"the machine has run out of {what}, which is not the program's fault: {_brief(said)}; {cure}, and run the same again"
    return f"measuring does not work on this machine now, which is not the program's fault: {_brief(text)}; `ansor doctor` checks the installation"


def sentence_of(error: BaseException) -> str | None:
    """The sentence for a Python error because the machine ran out of something, with the file's name if it is known. None for any other error."""
    if isinstance(error, MemoryError):
        return sentence(f"MemoryError: {error}" if str(error) else "MemoryError")
    if isinstance(error, OSError) and is_trouble_of_system(error) and is_shortage(str(error)):
        return sentence(str(error))
    return None


def _brief(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(" ;,:.")


def _has(text: str, signs: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in signs)
