"""The key shared by an agent and its peers: a file that nobody else can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ansor.errors import DeviceError
from ansor.support.safe_files import PRIVATE_FILE, PRIVATE_FOLDER

LEAST, MOST = 16, 4095  # bytes
MADE = 32  # random bytes in a new key


def read_key(path: Path) -> bytes:
    """The key in a file, without trailing white space. Raises DeviceError for a file that is missing, too short, too long or accessible to others."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"asked for the key of an agent in {path}: {error.strerror}; copy the agent's, or name another with ?key=FILE") from error
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DeviceError(f"asked for the key of an agent in {path}, which is not a regular file")
        if found.st_uid not in (os.geteuid(), 0):
            raise DeviceError(f"the key {path} belongs to another user ({found.st_uid}), who can change it: copy it to your own file")
        if found.st_mode & 0o077:
            raise DeviceError(f"others can read or write the key {path} (mode {found.st_mode & 0o777:o}): run chmod 600 {path}")
        key = file.read(MOST + 1).rstrip(b" \t\r\n")
    if not LEAST <= len(key) <= MOST:
        raise DeviceError(f"the key {path} has {len(key)} bytes; it needs {LEAST} to {MOST}")
    return key


def made_key(path: Path) -> bool:
    """Write a new random key if the file does not exist; returns whether it did so. Raises OSError."""
    path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    except FileExistsError:
        return False
    with open(descriptor, "w") as file:
        file.write(f"{secrets.token_hex(MADE)}\n")
    return True
