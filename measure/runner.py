"""Runs built candidates in the worker process, and restarts the worker whenever it dies."""

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, cast

from ansor.codegen.source import CSource
from ansor.errors import CacheError, MeasureError
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import KIND, LOST, is_trouble, settled
from ansor.measure.protocol import CallData, Reply, Request, RunRequest, TaskRequest, call_data
from ansor.measure.timing import TimingOptions
from ansor.measure.turns import Say, turn
from ansor.support import settings
from ansor.support.closing import Closing
from ansor.support.notices import warn
from ansor.support.own_process import python_command
from ansor.support.shortage import PAUSES, is_trouble_of_system, sentence

REFERENCE_SECONDS = 120.0  # wall time a reference may take; it is plain C and runs once per task


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run: seconds of a call (one per repeat), or a failure."""

    seconds: tuple[float, ...]
    failure: Failure | None
    cut_short: bool
    elapsed: float  # seconds of wall time of the whole trial, loading and verification included


class WorkerLost(MeasureError):
    """The worker process died or fell silent."""


@dataclass(frozen=True)
class InputOptions:
    """The input values of a task's programs, and how far results may be off: see `MeasureTask`."""

    reduction: int = 1
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    seed: int = 0
    threads: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    rounding: str = ""


class Runner(Closing):
    """One long-lived worker process. Use it in a `with` statement, or call `close`. `say` gets a message if another run measures for long."""

    def __init__(self, harness: Path, pool: Path | None = None, options: TimingOptions | None = None, say: Say = warn) -> None:
        self._say = say
        self.options = options or TimingOptions()
        self._command = python_command("ansor.measure.worker", str(harness), *([str(pool)] if pool else []))
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._tasks: dict[str, TaskRequest] = {}
        self.restarts = 0

    def define(
        self,
        task: str,
        declared: CSource,
        *,
        reference_library: Path | None = None,
        reference: CSource | None = None,
        plain: CallData | None = None,
        how: InputOptions | None = None,
    ) -> None:
        """Set a task's arguments (those of `declared`), its reference and its plain program; nothing runs yet."""
        how = how or InputOptions()
        call = None
        if reference is not None and reference_library is not None:
            call = call_data(reference, str(reference_library))
        self._tasks[task] = {
            "command": "task", "task": task, "arguments": [argument.to_data() for argument in declared.arguments],
            "reference": call, "plain": plain, "reduction": how.reduction, "ranges": dict(how.ranges), "seed": how.seed, "threads": how.threads,
            "files": dict(how.files), "rounding": how.rounding,
            "timeout": REFERENCE_SECONDS,
        }  # fmt: skip

    def run(self, task: str, source: CSource, library: Path, *, best_seconds: float | None = None) -> Run:
        """Run, verify and time one candidate when it is our turn; whatever it does is returned as a value. Raises KeyError for an undefined task."""
        started = time.monotonic()
        for pause in (*PAUSES, None):
            try:
                with turn(self._say):
                    return self._run(task, source, library, best_seconds)
            except (OSError, CacheError) as error:
                if not is_trouble_of_system(error):
                    raise
                text = str(error)
            if pause is not None:
                time.sleep(pause)
        return Run((), Failure(KIND, sentence(text)), False, time.monotonic() - started)

    def _run(self, task: str, source: CSource, library: Path, best_seconds: float | None) -> Run:
        started = time.monotonic()
        request: RunRequest = {
            "command": "run", "task": task, "call": call_data(source, str(library)), "best_seconds": best_seconds,
            "options": asdict(self.options),
        }  # fmt: skip
        patience = self.options.timeout_seconds + self.options.cooldown_seconds + 60
        reply, failure = self._patiently(request, patience)
        return Run(tuple(reply["seconds"]), failure, reply["cut_short"], time.monotonic() - started)

    def _patiently(self, request: RunRequest, patience: float) -> tuple[Reply, Failure | None]:
        """The reply and its failure. A failure of the machine is retried in a new worker after a pause; if it persists, a child that does
        nothing shows whether the machine or the program is at fault."""
        reply, failure = self._attempt(request, patience)
        for pause in PAUSES:
            if failure is None or not is_trouble(failure.kind, failure.text):
                return reply, failure
            self.close()
            time.sleep(pause)
            reply, failure = self._attempt(request, patience)
        if failure is not None and is_trouble(failure.kind, failure.text):
            failure = settled(failure, self._plain_works())
        return reply, failure

    def _attempt(self, request: RunRequest, patience: float) -> tuple[Reply, Failure | None]:
        try:
            reply = self._ask_with_task(request, patience)
        except WorkerLost as lost:
            self.restarts += 1
            return {"seconds": [], "cut_short": False, "failure": None}, Failure("crash", f"{LOST}: {lost}")
        return reply, None if reply["failure"] is None else Failure(*reply["failure"])

    def _plain_works(self) -> bool:
        """Whether a worker, and a child of it that does nothing, can start."""
        try:
            return self._ask({"command": "check"}, 60)["failure"] is None
        except WorkerLost:
            return False

    def noise_floor(self, repeat: int = 40) -> float:
        """Relative spread (10th to 90th percentile over median) of a fixed kernel: smaller differences mean nothing.

        Raises MeasureError if the worker cannot be kept alive.
        """
        try:
            return self._twice(lambda: self._ask({"command": "noise", "repeat": repeat}, 60))["seconds"][0]
        except WorkerLost as lost:
            raise MeasureError(f"asked for the noise floor, but the measuring process was lost: {lost}") from lost

    def close(self) -> None:
        """End the worker process; a later run starts another one."""
        process, self._process, self._unread = self._process, None, b""
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # nobody reads the unsent data
                    pipe.close()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()

    def _twice(self, ask: Callable[[], Reply]) -> Reply:
        """The worker's reply; retried once in a new worker if the first one is lost."""
        try:
            return ask()
        except WorkerLost:
            self.restarts += 1
        return ask()

    def _ask_with_task(self, request: RunRequest, patience: float) -> Reply:
        reply = self._ask(request, patience)
        if reply.get("unknown_task"):  # a new worker, or one that has handled many tasks since
            defined = self._ask(self._tasks[request["task"]], REFERENCE_SECONDS + 60)
            reply = defined if defined["failure"] is not None else self._ask(request, patience)
        return reply

    def _ask(self, request: Request, patience: float) -> Reply:
        try:
            process = self._process or self._start()
            stdin = _stream(process.stdin)
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            return cast(Reply, json.loads(self._read_line(process, time.monotonic() + patience)))
        except (OSError, ValueError) as error:
            self.close()
            raise WorkerLost(str(error)) from error
        except BaseException:
            self.close()  # its late answer must not be taken for the next one
            raise

    def _start(self) -> "subprocess.Popen[bytes]":
        # One thread: NumPy's own threads would disturb timing and must not exist at a fork.
        quiet = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=settings.environment_with(quiet),
            start_new_session=True,  # Ctrl-C goes to the tuning process, which ends this one
        )  # fmt: skip
        self._unread = b""
        return self._process

    def _read_line(self, process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
        descriptor = _stream(process.stdout).fileno()
        while b"\n" not in self._unread:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                raise WorkerLost("no answer in time")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise WorkerLost(f"it ended with code {process.wait()}")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def _stream(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("the pipe to the worker is closed")
    return pipe
