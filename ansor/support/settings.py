"""The only reader of the environment.

| variable      | meaning                                                            | default                    |
|---------------|--------------------------------------------------------------------|----------------------------|
| `CC`          | C compiler command, when no option names one                       | the embedded ziglang wheel |
| `ANSOR_CACHE` | folder for compiler caches, helper libraries and work folders      | `~/.cache/ansor`           |
| `ANSOR_JOBS`  | processes at a time that compile or pick programs                  | the cores we may use       |
| `ANSOR_AGENT_KEY` | file with the key of agents that listen                         | `~/.config/ansor/agent.key`|
| `ANSOR_FARM`  | folder with the certificates of a farm                             | `~/.config/ansor/farm`     |
| `ANSOR_SSH`   | how `ssh` is called, options included, to reach boards             | `ssh`                      |
| `ANSOR_TRACEBACK` | any value: the command also shows where an error comes from    | one sentence               |
| `TVM_TRACKER_HOST`, `TVM_TRACKER_PORT` | address of a tracker for TVM's programs   | `127.0.0.1`, `9190`        |
| `TORCH_LOGS`  | any value: PyTorch's logs are shown                                | hidden                     |
"""

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ansor.errors import ArgumentError, CacheError
from ansor.support.safe_files import private_folder


def compiler_command() -> str:
    """The text of `$CC`, or '' if it is not set."""
    return os.environ.get("CC", "").strip()


def cache_directory() -> Path:
    """The cache folder, created as private if it is missing. It may be read-only.

    Raises CacheError if it cannot be created, belongs to another user, or others can write to it: its contents are run.
    """
    text = os.environ.get("ANSOR_CACHE", "").strip()
    if any(ord(one) < 32 or ord(one) == 127 or 0xD800 <= ord(one) < 0xE000 for one in text):  # the last range is bytes that are not UTF-8
        raise CacheError(f"the name of the cache folder is {ascii(text)}, with a control character or bytes that are not UTF-8; set ANSOR_CACHE to another")
    return private_folder(Path(text).expanduser().absolute() if text else Path.home() / ".cache" / "ansor")


def writable_cache() -> Path:
    """The cache folder or, if that is read-only, a folder of this user's among the temporary files. Raises CacheError like `cache_directory`."""
    folder = cache_directory()
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    try:
        return private_folder(Path(tempfile.gettempdir()) / f"ansor-{os.geteuid()}")
    except OSError as error:
        raise CacheError(f"the cache folder {folder} is read-only, and there is no folder for temporary files ({error}); set ANSOR_CACHE, or TMPDIR") from error


def cache_part(name: str) -> Path:
    """A folder to write to in `writable_cache`, created as a private one if it is missing. Raises CacheError."""
    return private_folder(writable_cache() / name)


def cache_folders(name: str) -> list[Path]:
    """The existing folders of a part of the cache: the writable one, and that of a read-only cache. Raises CacheError."""
    parts = [folder / name for folder in dict.fromkeys((writable_cache(), cache_directory()))]
    return [private_folder(part) for part in parts if part.is_dir()]


def agent_key() -> Path:
    """The file with the key of agents: `$ANSOR_AGENT_KEY`, else one in this user's home folder. It may be missing."""
    text = os.environ.get("ANSOR_AGENT_KEY", "").strip()
    return Path(text).expanduser().absolute() if text else Path.home() / ".config" / "ansor" / "agent.key"


def farm_certificates() -> Path:
    """The folder with the certificates of a farm: `$ANSOR_FARM`, else one in this user's home folder. It may be missing."""
    text = os.environ.get("ANSOR_FARM", "").strip()
    return Path(text).expanduser().absolute() if text else Path.home() / ".config" / "ansor" / "farm"


def tvm_tracker() -> tuple[str, str]:
    """Host and port of a tracker, as TVM's programs take them: `$TVM_TRACKER_HOST` and `$TVM_TRACKER_PORT`."""
    return os.environ.get("TVM_TRACKER_HOST", "127.0.0.1"), os.environ.get("TVM_TRACKER_PORT", "9190")


def ssh_command() -> tuple[str, ...]:
    """The words that start `ssh`: those of `$ANSOR_SSH`, such as `ssh -F FILE`. Raises ArgumentError for a text that is not a command."""
    text = os.environ.get("ANSOR_SSH", "").strip()
    try:
        return tuple(shlex.split(text)) or ("ssh",)
    except ValueError as error:
        raise ArgumentError(f"ANSOR_SSH is {text[:80]!r}, which cannot be read ({error}); set it to a command such as ssh -F FILE, or unset it") from error


def jobs() -> int:
    """Processes at a time that compile or pick programs: `$ANSOR_JOBS`, else the cores this process may use.

    Raises ArgumentError for anything but a whole number above 0.
    """
    text = os.environ.get("ANSOR_JOBS", "").strip()
    if not text:
        return cores()
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise ArgumentError(f"ANSOR_JOBS is {text[:40]!r}; set it to a whole number of processes, 1 or more, or unset it")
    return int(text)


def cores() -> int:
    """The number of cores that this process may use: by its CPU affinity if the system has that."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment_with(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment for a child process, with `extra` on top."""
    return {**os.environ, **extra}


def shows_tracebacks() -> bool:
    """Whether the command shows where an error comes from, in addition to the error."""
    return bool(os.environ.get("ANSOR_TRACEBACK", "").strip())


def shows_torch_logs() -> bool:
    """Whether the user wants to see PyTorch's logs: $TORCH_LOGS is set."""
    return "TORCH_LOGS" in os.environ
