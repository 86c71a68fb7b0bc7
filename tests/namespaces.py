"""Two network namespaces on this machine, connected by a virtual link, so that traffic goes beyond loopback. Root may create them, and users who may create
user namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

HOLD = (sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()")
"""A process that keeps a network alive until its input ends."""


@dataclass(frozen=True)
class Namespace:
    """A network by the process that keeps it, and its address on the link."""

    process: int
    address: str

    @property
    def entering(self) -> Sequence[str]:
        """The prefix of a command that runs in it."""
        return ("nsenter", "--target", str(self.process), *_AS_ROOT, "--net")

    def run(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command in it to its end."""
        return subprocess.run([*self.entering, *command], capture_output=True, text=True, timeout=timeout, check=False)


_AS_ROOT = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")


@contextmanager
def two_networks() -> Iterator[tuple[Namespace, Namespace]]:
    """Create them, and remove them afterwards. Skips the test if that is not permitted; fails it in CI."""
    with ExitStack() as stack:
        try:
            here, there = _joined(stack)
        except (OSError, subprocess.SubprocessError) as error:
            text = f"networks of their own are not permitted here: {error}"
            pytest.fail(text) if os.environ.get("CI") == "true" else pytest.skip(text)
        yield here, there


def _joined(stack: ExitStack) -> tuple[Namespace, Namespace]:
    here = Namespace(stack.enter_context(_held("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--net")), "10.213.77.1")
    outside = here.entering if os.geteuid() else ()
    there = Namespace(stack.enter_context(_held(*outside, "unshare", "--net")), "10.213.77.2")
    _ip(here, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(there.process))
    for one in (here, there):
        _ip(one, "addr", "add", f"{one.address}/24", "dev", "wire")
        _ip(one, "link", "set", "wire", "up")
        _ip(one, "link", "set", "lo", "up")
    return here, there


@contextmanager
def _held(*entering: str) -> Iterator[int]:
    """A process in a network of its own, by its id."""
    with subprocess.Popen([*entering, *HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        if not process.stdout.readline():
            raise OSError(process.stderr.read().strip())
        yield process.pid


def _ip(network: Namespace, *words: str) -> None:
    subprocess.run([*network.entering, "ip", *words], capture_output=True, timeout=20, check=True)
