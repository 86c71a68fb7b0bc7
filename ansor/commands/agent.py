"""`ansor agent`: build the agent that runs programs on a board, copy it there, or run it here."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path

from ansor.errors import DeviceError
from ansor.measure.agent.address import PUSHED, SSH_OPTIONS, ssh_destination
from ansor.measure.agent.build import built_agent, system_named
from ansor.measure.agent.key import made_key, read_key
from ansor.support import settings
from ansor.support.safe_files import PRIVATE_PROGRAM, write_whole
from ansor.support.text import clip

SSH_SECONDS = 120.0


def run_agent(given: argparse.Namespace) -> int:
    """Run the requested action: build, push or serve."""
    return {"build": _build, "push": _push, "serve": _serve}[given.action](given)


def _build(given: argparse.Namespace) -> int:
    agent = built_agent(given.system)
    place = Path(given.output)
    write_whole(place, agent.read_bytes(), PRIVATE_PROGRAM | 0o055)
    print(f"{place}: {place.stat().st_size} bytes, needs only Linux; copy it to the board, or let `ansor agent push HOST` do both")
    return 0


def _push(given: argparse.Namespace) -> int:
    options, host = ssh_destination(given.host)
    ssh = [*settings.ssh_command(), *SSH_OPTIONS, *options, "--", host]
    system = system_named(given.system or _said(ssh, "uname -m", given.host))
    place = given.path or PUSHED
    folder, new = shlex.quote(str(Path(place).parent)), shlex.quote(f"{place}.new")
    steps = f"mkdir -p {folder} && cat > {new} && chmod 755 {new} && mv {new} {shlex.quote(place)} && {shlex.quote(_runnable(place))} -version"
    _said(ssh, steps, given.host, built_agent(system).read_bytes())
    there = f"/{place.lstrip('/')}" if given.path else ""
    print(f"the agent for {system} is on {host}, in {place}: measure there with --devices ssh://{given.host}{there}")
    return 0


def _runnable(place: str) -> str:
    """The path in a form that the shell does not look up in $PATH."""
    return place if "/" in place else f"./{place}"


def _said(ssh: list[str], command: str, host: str, given: bytes = b"") -> str:
    """The output of a command on the board. Raises DeviceError if it fails."""
    try:
        ended = subprocess.run([*ssh, command], input=given, capture_output=True, timeout=SSH_SECONDS, check=False)
    except OSError as error:
        raise DeviceError(f"asked to reach {host}: ssh cannot be started ({error.strerror}); install an ssh client") from error
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"asked to reach {host}: no answer in {SSH_SECONDS:g} s") from error
    if ended.returncode:
        why = " ".join(clip(ended.stderr.decode("utf-8", "replace"), 300).split()) or f"status {ended.returncode}"
        raise DeviceError(f"asked to reach {host}: {why}; `ssh {host}` must work without a password")
    return ended.stdout.decode("utf-8", "replace").strip()


def _serve(given: argparse.Namespace) -> int:
    """Become the agent."""
    agent = built_agent()
    key = Path(given.key).expanduser().absolute() if given.key else settings.agent_key()
    if made_key(key):
        print(f"created a key: {key}; copy it to the machine that measures, where $ANSOR_AGENT_KEY or ?key=FILE names it")
    read_key(key)
    host, _, port = given.listen.rpartition(":")
    name = os.uname().nodename if host == "0.0.0.0" else host or "127.0.0.1"
    print(f"measure here with --devices agent://{name}:{port if port != '0' else 'PORT'}; Ctrl-C ends the agent", flush=True)
    words = ["-listen", given.listen, "-key", str(key)]
    for name in ("store", "space", "wait"):
        value = getattr(given, name)
        words += [f"-{name}", str(value)] if value else []
    words += ["-with", given.before] if given.before else []
    os.execv(agent, [str(agent), *words])
