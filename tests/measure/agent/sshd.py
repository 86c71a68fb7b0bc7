"""A real `sshd` on the loopback interface for this user, with temporary keys, and the configuration with which `ssh` reaches it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.debian import install
from tests.measure.agent.board import descendants, until

SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
AuthenticationMethods publickey
PermitRootLogin yes
StrictModes no
UsePAM no
SetEnv TMPDIR={folder}
"""
CLIENT = """
Host board
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
"""


@dataclass(frozen=True)
class Sshd:
    """`config`: for `ssh -F`, where this server is the host `board`."""

    process: subprocess.Popen[bytes]
    port: int
    config: Path

    def connections(self) -> list[int]:
        """Its processes for connections, without their children."""
        return [one for one in descendants(self.process.pid) if _name(one).startswith("sshd")]


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


@cache
def programs() -> tuple[str, ...]:
    """The paths of sshd, ssh and ssh-keygen, installed if they are missing; () if they cannot be."""
    def found() -> list[str]:
        places = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
        return [place for name in ("sshd", "ssh", "ssh-keygen") if (place := shutil.which(name, path=places))]

    if len(found()) < 3:
        install("openssh-server", "openssh-client")
    return tuple(found()) if len(found()) == 3 else ()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    """Run a server; all its files are in the folder. Skips the test if there is none; fails it in CI."""
    if not programs():
        text = "there is no sshd, and it cannot be installed"
        pytest.fail(text) if os.environ.get("CI") == "true" else pytest.skip(text)
    server, _, keygen = programs()
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=60)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)  # sshd needs an empty folder to chroot into
    running = _started(server, folder)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(20)


def _started(server: str, folder: Path) -> Sshd:
    for _ in range(5):  # another process may take the port before sshd does
        port, log = _free_port(), folder / "log"
        words = {"folder": folder, "port": port, "user": getpass.getuser()}
        (folder / "server").write_text(SERVER.format(**words))
        (folder / "client").write_text(CLIENT.format(**words))
        (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
        log.write_bytes(b"")
        process = subprocess.Popen([server, "-D", "-f", folder / "server", "-E", log], stdin=subprocess.DEVNULL)
        until(lambda: b"Server listening on" in log.read_bytes() or process.poll() is not None, "sshd listens")  # noqa: B023, used at once
        if process.poll() is None:
            return Sshd(process, port, folder / "client")
    pytest.fail(f"sshd does not start: {log.read_text()}")
