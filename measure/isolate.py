"""Runs code that may crash, hang, exit or exhaust memory in a forked child, and reports how it ended."""

import gc
import json
import os
import resource
import select
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from ansor.measure.failure import Failure
from ansor.measure.harness import Harness
from ansor.measure.protocol import Message
from ansor.support.text import clip

Report = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A child's messages, and why it failed if it did not finish."""

    messages: tuple[Message, ...]
    failure: Failure | None


def isolated(
    harness: Harness, body: Callable[[Report], None], *, timeout: float, close: tuple[int, ...] = (), cancelled: threading.Event | None = None
) -> Outcome:
    """Run `body` in a child for at most `timeout` seconds; it reports results through the function it is given.

    `close`: descriptors the child must not hold. Setting `cancelled` ends it.
    The child's standard output and error are kept for the failure's text.
    """
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            try:
                os.close(read_end)
                _in_child(harness, body, write_end, output, close)
            finally:
                os._exit(70)  # never return into the worker's loop
        os.close(write_end)
        try:
            lines, in_time = _collect(child, read_end, time.monotonic() + timeout, cancelled)
        finally:
            os.close(read_end)
            _kill_group(child)
        status = os.waitpid(child, 0)[1]
        output.seek(0)
        said = clip(output.read(1 << 20).decode(errors="replace"), 1000)
    messages = tuple(_parsed(lines))
    return Outcome(messages, _failure(messages, status, in_time, timeout, said))


def limit_memory(growth: int) -> None:
    """Limit this process to `growth` more bytes of address space than it has now."""
    try:
        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:  # no /proc: we cannot choose a sensible limit
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = now + growth if hard == resource.RLIM_INFINITY else min(hard, now + growth)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _in_child(
    harness: Harness, body: Callable[[Report], None], write_end: int, output: BinaryIO, close: tuple[int, ...]
) -> None:
    harness.die_with_parent()
    os.setsid()  # so that processes the candidate starts can be killed with it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for descriptor in close:
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    gc.disable()
    harness.note_faults(write_end)

    def report(message: Message) -> None:
        os.write(write_end, json.dumps(message).encode() + b"\n")

    try:
        body(report)
        report({"done": True})
    except MemoryError as error:
        report({"failure": ("memory", str(error) or "out of memory"), "done": True})
    except Exception:  # our bug rather than the candidate's: it must not cost more than one trial
        report({"failure": ("crash", f"while measuring: {clip(traceback.format_exc())}"), "done": True})
    os._exit(0)


def _collect(child: int, read_end: int, deadline: float, cancelled: threading.Event | None) -> tuple[bytes, bool]:
    """Everything the child wrote, and whether it ended before the deadline."""
    chunks: list[bytes] = []
    while (remaining := deadline - time.monotonic()) > 0 and not (cancelled is not None and cancelled.is_set()):
        ready, _, _ = select.select([read_end], [], [], min(remaining, 0.2))
        if ready:
            chunk = os.read(read_end, 1 << 16)
            if not chunk:
                return b"".join(chunks), _ended(child, deadline)
            chunks.append(chunk)
        elif _ended(child, 0.0):  # a process it started may still hold the pipe
            return b"".join([*chunks, *_left_in(read_end)]), True
    return b"".join(chunks), False


def _left_in(read_end: int) -> Iterator[bytes]:
    """What the child wrote between the last read and its end."""
    while select.select([read_end], [], [], 0)[0] and (chunk := os.read(read_end, 1 << 16)):
        yield chunk


def _ended(child: int, deadline: float) -> bool:
    """Whether the child has ended or ends before `deadline`; it is not reaped."""
    while True:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)


def _kill_group(child: int) -> None:
    for kill in (os.killpg, os.kill):  # there is no group if the child was killed before setsid
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _parsed(lines: bytes) -> list[Message]:
    messages: list[Message] = []
    for line in lines.splitlines():
        try:
            messages.append(cast(Message, json.loads(line)))
        except ValueError:  # a candidate wrote into our pipe, or died in the middle of a line
            continue
    return [message for message in messages if isinstance(message, dict)]


def _failure(messages: tuple[Message, ...], status: int, in_time: bool, timeout: float, said: str) -> Failure | None:
    said = f"; it said: {said}" if said else ""
    if not in_time:
        return Failure("timeout", f"still running after {timeout:.3g} s{said}")
    told = next((message["failure"] for message in messages if "failure" in message), None)
    if told is not None:
        return Failure(*told)
    if os.WIFSIGNALED(status):
        return _death(messages, os.WTERMSIG(status), said)
    if not any("done" in message for message in messages):
        return Failure("exit", f"ended the process with code {os.waitstatus_to_exitcode(status)}{said}")
    return None


def _death(messages: tuple[Message, ...], number: int, said: str) -> Failure:
    name = f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    fault = next((message["fault"] for message in messages if "fault" in message), None)
    if fault is None:
        kind = "memory" if number == signal.SIGKILL else "crash"  # only the system's out-of-memory killer sends it
        return Failure(kind, f"{name}{said}")
    if fault["stack_overflow"]:
        return Failure("crash", f"{name}: the stack overflowed{said}")
    if fault["no_memory"]:
        return Failure("memory", f"{name} after an allocation was refused{said}")
    address = fault["address"]
    for message in messages:
        for buffer in message.get("buffers", ()):
            if buffer["low"] <= address < buffer["high"]:
                return Failure("out_of_bounds", f"{name}: touched memory far outside {buffer['name']!r}{said}")
    where = f" at address {address:#x}" if number in (signal.SIGSEGV, signal.SIGBUS) else ""
    return Failure("crash", f"{name}{where}{said}")
