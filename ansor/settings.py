"""The only reader of the environment.

| variable      | meaning                                                            | default                    |
|---------------|--------------------------------------------------------------------|----------------------------|
| `CC`          | C compiler command, when no option names one                       | the embedded ziglang wheel |
| `ANSOR_CACHE` | folder for compiler caches, helper libraries and work folders      | `~/.cache/ansor`           |
| `ANSOR_JOBS`  | compiler processes at a time                                       | the cores we may use       |
"""

import os
from collections.abc import Mapping
from pathlib import Path


def compiler_command() -> str:
    """The text of `$CC`, or '' when it is not set."""
    return os.environ.get("CC", "").strip()


def cache_directory() -> Path:
    """The cache folder, made when missing. Raises OSError when it cannot be made: set `ANSOR_CACHE` to another folder."""
    text = os.environ.get("ANSOR_CACHE", "").strip()
    folder = Path(text).expanduser().absolute() if text else Path.home() / ".cache" / "ansor"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"the cache folder cannot be made ({error.strerror}); set ANSOR_CACHE to another", str(folder)) from error
    return folder


def jobs() -> int:
    """Compiler processes at a time: `$ANSOR_JOBS`, else the cores this process may use."""
    text = os.environ.get("ANSOR_JOBS", "").strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    return cores()


def cores() -> int:
    """Cores this process may use (affinity counts where the system has it)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment_with(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment for a child process, with `extra` on top."""
    return {**os.environ, **extra}
