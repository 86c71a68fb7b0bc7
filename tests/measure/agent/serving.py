"""An agent that listens on the loopback interface."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEY = b"a key that only tests know"


@contextmanager
def serving(agent: Path, folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """The process, its port, and the file of its key; all files are in `folder`."""
    key = folder / "key"
    key.write_bytes(KEY + b"\n")
    key.chmod(0o600)
    command = [str(agent), "-listen", "127.0.0.1:0", "-key", str(key), "-store", str(folder / "store"), *options]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        words = process.stdout.readline().split()
        assert words[:3] == ["listening", "on", "port"], words
        yield process, int(words[3]), key
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))
