"""Parses addresses of agents: `agent://HOST:PORT`, `agent-stdio:COMMAND`, `ssh://HOST`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ansor.errors import DeviceError
from ansor.measure.agent.channel import Channel, ProcessChannel, SocketChannel
from ansor.measure.agent.client import AgentClient
from ansor.measure.agent.key import read_key
from ansor.support import settings

CONNECT_SECONDS = 10.0
PUSHED = ".ansor/agent"
"""Where `ansor agent push` puts the agent, in the remote home folder."""

# ssh never asks for a password, and gives up when the board does not answer.
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")


@dataclass(frozen=True, slots=True)
class Address:
    """Either a command that runs an agent on its standard input and output, or a host, a port and the key file."""

    text: str
    command: tuple[str, ...] = ()
    host: str = ""
    port: int = 0
    key: Path | None = None

    def connect(self, opened: Callable[[Channel], None] = lambda channel: None) -> AgentClient:
        """A new connection. opened: called with its channel, which can be interrupted, before anything waits on it.

        Raises DeviceError for a key that is unreadable or wrong, OSError and LinkLost if nobody answers.
        """
        key = None if self.key is None else read_key(self.key)

        def open_channel() -> Channel:
            channel = ProcessChannel(self.command) if self.command else SocketChannel(self.host, self.port, CONNECT_SECONDS)
            opened(channel)
            return channel

        return AgentClient(open_channel, key)


def read_address(text: str) -> Address:
    """Parses the text of a device. Raises DeviceError for any other text."""
    kind, _, rest = text.partition(":")
    if kind == "agent-stdio":
        return Address(text, _command(text, rest))
    if kind == "ssh":
        return _ssh(text)
    return _tcp(text)


def ssh_destination(text: str) -> tuple[tuple[str, ...], str]:
    """Options and destination for `ssh` from `[user@]host[:port]`. Raises DeviceError if the host is missing or `ssh` would take it for an option."""
    found = re.fullmatch(r"((?:[\w.][\w.-]*@)?[\w.][\w.-]*)(?::(\d{1,5}))?", text)
    if found is None:
        raise DeviceError(f"asked for an agent through ssh on {text!r}; write a host: board, pi@board or pi@board:22")
    return ("-p", found[2]) if found[2] else (), found[1]


def _command(text: str, rest: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(rest))
    except ValueError as error:
        raise DeviceError(f"asked for device {text!r}: its command cannot be read ({error})") from error
    if not words:
        raise DeviceError(f"asked for device {text!r}: write the agent's command after the colon, such as agent-stdio:./agent")
    return words


def _ssh(text: str) -> Address:
    """`ssh://[user@]host[:port][/path]`."""
    found = re.fullmatch(r"ssh://([^/]+)(/.*)?", text)
    if found is None:
        raise DeviceError(f"asked for device {text!r}; write ssh://HOST, ssh://USER@HOST:PORT, or ssh://HOST/PATH/TO/agent")
    options, host = ssh_destination(found[1])
    return Address(text, (*settings.ssh_command(), *SSH_OPTIONS, *options, "--", host, f"exec {shlex.quote(found[2] or PUSHED)}"))


def _tcp(text: str) -> Address:
    """`agent://host:port[?key=FILE]`."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    query = re.fullmatch(r"(?:key=([^&]+))?", parts.query)
    if not host or not port or parts.scheme != "agent" or parts.path or parts.username or parts.fragment or query is None:
        raise DeviceError(f"asked for device {text!r}; write agent://HOST:PORT, or agent://HOST:PORT?key=FILE")
    key = Path(unquote(query[1])).expanduser() if query[1] else settings.agent_key()
    return Address(text, host=host, port=port, key=key)
