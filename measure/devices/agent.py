"""Boards that run the agent: `agent://HOST:PORT`, `agent-stdio:COMMAND`, `ssh://HOST`. Programs time themselves by the board's clock."""

from __future__ import annotations

import hashlib
import secrets
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.errors import DeviceError
from ansor.measure.agent.address import Address, read_address
from ansor.measure.agent.channel import Channel
from ansor.measure.agent.client import AgentClient, Refused, RunEnd
from ansor.measure.agent.client import Limits as AgentLimits
from ansor.measure.agent.wire import LinkLost
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.devices.one_job import JobLock
from ansor.measure.failure import Failure
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.runs import TrialRuns, answer_of
from ansor.measure.trial.transport import ARGUMENT_BYTES, CLOSED, TOO_MUCH, Ended, Limits, failed_by_signal
from ansor.measure.turns import Say
from ansor.support.text import clip
from ansor.targets.base import Target
from ansor.targets.unit import SECONDS, Unit

EMULATED = 10.0  # how many times slower programs may be under an emulator
RETURN_SECONDS = 60.0  # a board that restarts is back by then
PAUSE_SECONDS = 0.5
REFUSALS = {"busy": "queue", "start": "load", "large": "does_not_fit"}
"""Kinds of failures by the agent's errors; any other error is `machine`."""


@dataclass(frozen=True, slots=True)
class _ReferenceRecipe:
    """How the outputs of a reference were made, to recompute them if they are gone."""

    content: bytes
    recipe: str
    limits: Limits


class AgentTransport:
    """Runs programs through an agent. A broken connection is reopened for the next program; a run request is never repeated."""

    def __init__(self, address: Address, closing: threading.Event) -> None:
        self.address = address
        self._closing = closing
        self._client: AgentClient | None = None
        self._channel: Channel | None = None  # set before its first answer
        self._about: Mapping[str, str] = {}
        self._name = secrets.token_hex(4)  # marks the outputs kept there as ours
        self._stored: set[str] = set()
        self._places: dict[str, Path] = {}
        self._kept: dict[str, _ReferenceRecipe] = {}
        self._tensor_bytes = 0

    def about(self) -> Mapping[str, str]:
        """The agent's description of its machine. Raises DeviceError if nothing answers."""
        return self._about or self._opened().about

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`. Raises DeviceError if the agent does not come back."""
        if self._closing.is_set():
            return Ended("", CLOSED)
        content = program.path.read_bytes()
        self._tensor_bytes = 0
        try:
            ended, moved = self._run(content, mode, kept, recipe, limits)
        except LinkLost as lost:
            return Ended("", self._lost(lost))
        except Refused as refused:
            return Ended("", Failure(REFUSALS.get(refused.kind, "machine"), f"agent: {refused.text}"))
        if mode == "reference":
            self._kept[kept] = _ReferenceRecipe(content, recipe, limits)
        return Ended(_text(ended), _failure(ended, limits), moved | {"tensor_bytes_sent": float(self._tensor_bytes)})

    def place(self, path: Path) -> str:
        """See `Transport`; the path is relative to the folder that a job runs in."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self._places[digest] = path
        return f"../file-{digest}"

    def forget(self, kept: str) -> None:
        """See `Transport`."""
        self._kept.pop(kept, None)
        if self._client is not None:
            with suppress(LinkLost, Refused):
                self._client.drop_kept(self._there(kept))

    def interrupt(self) -> None:
        """Interrupt the threads that wait for an answer; may be called from any thread, with `closing` set."""
        channel = self._channel
        if channel is not None:
            channel.interrupt()

    def close(self) -> None:
        """Remove the outputs we kept there, and end the connection."""
        if self._client is not None and not self._client.channel.interrupted:
            for kept in self._kept:
                with suppress(LinkLost, Refused):
                    self._client.drop_kept(self._there(kept))
        self._disconnect()

    def _run(self, content: bytes, mode: str, kept: str, recipe: str, limits: Limits) -> tuple[RunEnd, dict[str, float]]:
        client, sent, received = self._ready(content, recipe)
        digest = hashlib.sha256(content).hexdigest()
        ended = self._told(client, digest, mode, kept, recipe, limits)
        if ended is None:  # the agent lacks the program, or the outputs to compare with
            if mode == "trial" and kept in self._kept and not client.has_kept(self._there(kept)):
                self._make_again(client, kept)
            client.put(content)
            ended = self._told(client, digest, mode, kept, recipe, limits)
        if ended is None:
            raise Refused("missing", "the files on the board are gone: its space is too small (agent -space)")
        traffic = {"bytes_sent": client.channel.sent - sent, "bytes_received": client.channel.received - received}
        return ended, {**traffic, "wall_seconds": ended.wall_seconds, "cpu_seconds": ended.cpu_seconds, "peak_bytes": 1024.0 * ended.peak_kb}

    def _make_again(self, client: AgentClient, kept: str) -> None:
        """Recompute a reference's outputs. Raises Refused if that fails this time."""
        made = self._kept[kept]
        ended = self._told(client, client.put(made.content), "reference", kept, made.recipe, made.limits)
        if ended is None:
            return
        failure = answer_of(Ended(_text(ended), _failure(ended, made.limits))).failure
        if failure is not None:
            raise Refused("reference", f"the reference outputs were gone from the board, and computing them again failed: {failure}")

    def _told(self, client: AgentClient, digest: str, mode: str, kept: str, recipe: str, limits: Limits) -> RunEnd | None:
        """How the program ended; None if the agent lacks a file."""
        memory = min(limits.memory_bytes + ARGUMENT_BYTES, _number(client.about, "memory"))
        allowed = AgentLimits(limits.seconds, memory, _number(client.about, "largest"))
        try:
            return client.run(digest, mode, "-" if kept == "-" else self._there(kept), recipe.encode(), allowed)
        except Refused as refused:
            if refused.kind == "missing":
                return None
            raise

    def _ready(self, content: bytes, recipe: str) -> tuple[AgentClient, int, int]:
        """A connection that just answered and whose agent has the program, and its earlier traffic. Nothing has run yet, so a broken one is replaced."""
        digest = hashlib.sha256(content).hexdigest()
        for attempt in range(2):
            client = self._opened()
            sent, received = client.channel.sent, client.channel.received
            try:
                if digest not in self._stored or not client.has_file(digest):
                    client.put(content)
                    self._stored.add(digest)
                self._bring(client, recipe)
                return client, sent, received
            except LinkLost:
                self._disconnect()
                if attempt or self._closing.is_set():
                    raise
        raise AssertionError("not reached")

    def _bring(self, client: AgentClient, recipe: str) -> None:
        """Send the value files that a recipe names."""
        for digest, path in self._places.items():
            if digest in recipe and not client.has_file(digest):
                content = path.read_bytes()
                client.put(content)
                self._tensor_bytes += len(content)

    def _opened(self) -> AgentClient:
        """The connection. The first one opens at once or not at all; a broken one is retried until the board has had time to start."""
        deadline = time.monotonic() + (RETURN_SECONDS if self._about else 0.0)
        while self._client is None:
            try:
                self._connect()
            except (LinkLost, OSError) as error:
                if time.monotonic() >= deadline or self._closing.wait(PAUSE_SECONDS):
                    raise DeviceError(f"asked to measure on {self.address.text}: no agent answers there ({error})") from error
        self._about = self._client.about
        return self._client

    def _connect(self) -> None:
        """Raises OSError and LinkLost if nobody answers or the device is being closed."""
        try:
            self._client = self.address.connect(self._note)
        except BaseException:
            self._channel = None
            raise

    def _note(self, channel: Channel) -> None:
        """Called with a new channel before anything waits on it."""
        self._channel = channel
        if self._closing.is_set():
            channel.interrupt()

    def _lost(self, lost: LinkLost) -> Failure:
        """What a broken connection means for the program that ran, whose fate is unknown."""
        before = self._about
        self._disconnect()
        if self._closing.is_set():
            return CLOSED
        with suppress(LinkLost, OSError, DeviceError):
            self._connect()
            assert self._client is not None
            self._about = self._client.about
        names = ("boot",) if self.address.command else ("boot", "start")
        if self._client is not None and any(self._about.get(name) != before.get(name) for name in names):
            return Failure("reset", f"the board, or the agent on it, restarted while the program ran ({lost})")
        return Failure("link_lost", f"the connection to {self.address.text} broke while the program ran: {lost}")

    def _disconnect(self) -> None:
        client, self._client, self._channel = self._client, None, None
        self._stored.clear()
        if client is not None:
            client.close()

    def _there(self, kept: str) -> str:
        return f"{self._name}-{kept}"


class AgentDevice:
    """A board with an agent on it. Costs are seconds of the board's clock; outputs are compared there."""

    unit: Unit = SECONDS
    form = PROGRAM

    def __init__(self, address: Address) -> None:
        self.name = address.text
        self._one = JobLock()
        self._transport = AgentTransport(address, self._one.closing)
        self._runs: TrialRuns | None = None

    @property
    def model(self) -> str:
        """The processor and the board, as the agent reports them."""
        return model_of(self._told())

    @property
    def alone(self) -> bool:
        """Whether the agent is on this machine."""
        return bool(_boot()) and self._told().get("boot") == _boot()

    def run(self, job: Job) -> Observation | Failure:
        """See `Device`. Raises DeviceError if no agent answers or the keys differ."""
        with self._one.running():
            try:
                if self._runs is None:
                    slower = EMULATED if "with" in self._transport.about() else 1.0
                    self._runs = TrialRuns(self._transport, SECONDS, slower=slower, proof=HostProof(closing=self._one.closing))
                return self._runs.run(job)
            except DeviceError:
                if self._one.closing.is_set():
                    return CLOSED
                raise

    def close(self) -> None:
        """Stop the running job and end the connection."""
        with self._one.ended(self._transport.interrupt):
            self._transport.close()
            self._runs = None

    def _told(self) -> Mapping[str, str]:
        return self._transport.about()


def model_of(about: Mapping[str, str]) -> str:
    """What costs depend on, from the agent's description of its machine."""
    processor = about.get("model") or "/".join(about[name] for name in ("implementer", "part") if name in about)
    words = [about.get("machine", "unknown"), about.get("board", ""), processor, f"with {about['with']}" if "with" in about else ""]
    return clip(" ".join(word for word in words if word), 200)


def _text(ended: RunEnd) -> str:
    return ended.output.decode("utf-8", "replace")


def _failure(ended: RunEnd, limits: Limits) -> Failure | None:
    """Why a program has no answer, if the way it ended shows that."""
    said = clip(" ".join(ended.complaint.decode("utf-8", "replace").split()), 300)
    if ended.way == "timeout":
        return Failure("timeout", f"still running after {limits.seconds:.3g} s")
    if ended.way == "signal":
        known = {one.value: one.name for one in signal.Signals}
        name = known.get(ended.code, str(ended.code))
        if name == "SIGXFSZ":
            return Failure("does_not_fit", "SIGXFSZ: it wrote a larger file than the agent allows; start the agent with a larger -space")
        return failed_by_signal(name, ended.code, said)
    if ended.code:
        return Failure("exit", f"ended with status {ended.code}{f'; it said: {said}' if said else ''}")
    return TOO_MUCH if ended.cut else None


def _number(about: Mapping[str, str], name: str) -> int:
    """A number the agent reported. Raises DeviceError if it is not one."""
    text = about.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise DeviceError(f"an agent says that its {name} is {text[:40]!r}; update the agent with `ansor agent push`")
    return int(text)


def _boot() -> str:
    """The boot id of this machine, as agents report it; '' if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _open(text: str, target: Target, say: Say) -> AgentDevice:
    del target, say
    return AgentDevice(read_address(text))


KINDS = (
    DeviceKind("agent", "agent://HOST:PORT: a board with a listening agent; ?key=FILE for its key", _open, check=read_address),
    DeviceKind("agent-stdio", "agent-stdio:COMMAND: an agent started here, on its standard input and output", _open, check=read_address),
    DeviceKind("ssh", "ssh://HOST: an agent started through ssh, installed by `ansor agent push`", _open, check=read_address),
)
