"""Two networks of their own on this machine, joined by a wire: what one says to the other goes beyond loopback. Needs the right to make them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Namespace:
    """A network by its name, and its address on the wire."""

    name: str
    address: str

    @property
    def entering(self) -> Sequence[str]:
        """In front of a command that is to run in it."""
        return ("ip", "netns", "exec", self.name)

    def run(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """A command in it, to its end."""
        return subprocess.run([*self.entering, *command], capture_output=True, text=True, timeout=timeout, check=False)


@contextmanager
def two_networks() -> Iterator[tuple[Namespace, Namespace]]:
    """Made, and removed. Skips the test where that is not allowed."""
    here, there = (Namespace(f"ansor-{os.getpid()}-{number}", f"10.213.77.{number}") for number in (1, 2))
    wires = {here: f"an{os.getpid()}a", there: f"an{os.getpid()}b"}
    try:
        for one in (here, there):
            _ip("netns", "add", one.name)
        _ip("link", "add", wires[here], "netns", here.name, "type", "veth", "peer", "name", wires[there], "netns", there.name)
        for one, wire in wires.items():
            _ip("-n", one.name, "addr", "add", f"{one.address}/24", "dev", wire)
            _ip("-n", one.name, "link", "set", wire, "up")
            _ip("-n", one.name, "link", "set", "lo", "up")
    except (OSError, subprocess.CalledProcessError) as error:
        _remove(here, there)
        pytest.skip(f"networks of their own are not permitted here: {error}")
    try:
        yield here, there
    finally:
        _remove(here, there)


def _remove(*networks: Namespace) -> None:
    for one in networks:
        subprocess.run(["ip", "netns", "del", one.name], capture_output=True, timeout=20, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, timeout=20, check=True)
