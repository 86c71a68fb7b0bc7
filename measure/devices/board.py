"""`gdb://...`, `bitbang://...`, `serial:...`, `socket://...`: a board without an operating system behind a wire.

Programs are images; the parts that one shares with the previous one are not sent again, and no tensor is transferred. Outputs are compared on the board with
those of the reference, which ran there once. If the board is too small or too slow for that, hashes and sums verify the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.toolchain import IMAGE
from ansor.errors import DeviceError
from ansor.measure.boards.flash import refuse_flash
from ansor.measure.boards.wire_transport import WireTransport
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.devices.one_job import JobLock
from ansor.measure.failure import LINK, Failure
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.recipe import MOVES
from ansor.measure.trial.runs import TrialRuns
from ansor.measure.trial.transport import CLOSED
from ansor.measure.turns import Say
from ansor.measure.wire.opening import open_wire, read_wire
from ansor.measure.wire.wire import Wire
from ansor.targets.base import Target
from ansor.targets.micro import board_of
from ansor.targets.unit import Unit

SLOWER = 20.0  # how many times slower than a processor it may be, for time limits
SOFT_DOUBLE, INTEGER = 150, 10  # instructions per step of a reference: most of these cores compute doubles in software
PATIENCE = 1e9  # the most instructions of a reference
REFERENCE_SECONDS = 10.0  # for a reference's run, besides its instructions: also the wait for a board that is gone
WIRES = {
    "gdb": "a board behind a GDB server, of OpenOCD, QEMU, pyOCD or J-Link: gdb://HOST:PORT",
    "bitbang": "a RISC-V board behind remote bitbang: bitbang://HOST:PORT",
    "serial": "a board with the monitor on a serial line: serial:/dev/NAME?baud=115200",
    "socket": "a board with the monitor behind a TCP port: socket://HOST:PORT",
}
FLASHING = ("gdb",)  # kinds that may write flash; whether there is any is known once the wire is open


class BoardDevice:
    """One board; `opened` opens its wire. Costs are what its counter counts for one call, return included."""

    form = IMAGE
    alone = False

    def __init__(self, text: str, board: Board, opened: Callable[[str], Wire] = open_wire) -> None:
        self.name = text
        self.model = board.name
        self.unit = Unit.from_text(board.counter.unit)
        self._board = board
        self._one = JobLock()
        self._transport = WireTransport(board, self.unit, lambda: opened(text), self._one.closing)
        self._kept: TrialRuns | None = None
        self._sums: TrialRuns | None = None
        self._short: set[str] = set()

    def run(self, job: Job) -> Observation | Failure:
        """See `Device`. Raises DeviceError if no board answers."""
        with self._one.running():
            try:
                return self._believed(job)
            except DeviceError:
                if self._one.closing.is_set():
                    return CLOSED
                raise

    def check(self, program: Artifact) -> int:
        """What a loop of known length costs there. Raises DeviceError if the board does not match its file or does not answer."""
        with self._one.running():
            return self._transport.check(program)

    def close(self) -> None:
        """Stop the running job and release the wire."""
        with self._one.ended(self._transport.interrupt):
            self._transport.close()
            self._kept = self._sums = None

    def _believed(self, job: Job) -> Observation | Failure:
        """A wrong answer is trusted only from freshly written memory: the previous program may have damaged it."""
        found, fresh = self._run(job), self._transport.fresh
        if isinstance(found, Failure) and found.kind not in LINK:
            self._transport.doubt()
            if found.kind == "wrong_answer" and not fresh:
                found = self._run(job)
                self._transport.doubt()
        return found

    def _run(self, job: Job) -> Observation | Failure:
        """Compare with outputs kept on the board if they fit, else by sums."""
        if self._kept is None or self._sums is None:
            proof, blocks = HostProof(closing=self._one.closing), self._board.answer_bytes // 240 - 4
            runs = partial(TrialRuns, self._transport, self.unit, slower=SLOWER, blocks=blocks, reference_seconds=self._reference_seconds)
            self._kept, self._sums = runs(proof=proof), runs(here=proof)
        if job.task.key not in self._short and self._stays(job):
            self._transport.short = False
            found = self._kept.run(job)
            if not self._transport.short:
                return found
            self._short.add(job.task.key)
        self._transport.make_room()
        return self._sums.run(job)

    def _stays(self, job: Job) -> bool:
        """Whether the reference can run on the board in reasonable time, and its outputs fit beside the memory that it and a candidate need."""
        if job.reference is None:
            return True
        results = [one for one in job.reference.source.arguments if one.role == "output"]
        if _instructions(job) > PATIENCE:
            return False
        needs = [_bytes(one.shape, one.dtype) for one in job.reference.source.arguments]
        outputs = [2 * (_bytes(one.shape, "float64") + _bytes(one.shape, "float32")) for one in results]  # values, and how far they move
        room = self._board.heap_end - self._board.data.start - (128 << 10 if self._board.data.size > 1 << 20 else 64 << 10)
        return sum(needs) + sum(outputs) + job.reference.source.workspace_bytes <= room

    def _reference_seconds(self, job: Job) -> float:
        """Many times what its instructions take, at the rate the board's file states."""
        rate = self._board.run.rate if self._board.run.step else self._board.counter.hertz
        return REFERENCE_SECONDS + SLOWER * _instructions(job) / rate


def _instructions(job: Job) -> float:
    """Roughly how many a job's reference takes."""
    if job.reference is None:
        return 0.0
    results = [one for one in job.reference.source.arguments if one.role == "output"]
    floats = any(np.dtype(one.dtype).kind == "f" for one in results)
    steps = sum(one.physical_size for one in results) * max(1, job.task.reduction)
    return float(steps * (SOFT_DOUBLE * (1 + MOVES) if floats else INTEGER))


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize + 192


def _kind(name: str, help: str) -> DeviceKind:
    def open_board(text: str, target: Target, say: Say) -> BoardDevice:
        del say
        if target.kind != "micro":
            raise DeviceError(f"asked to measure programs for {target} on {text}: it runs images of boards, such as micro -board=...; leave devices out")
        board = board_of(target)
        if board.code.flash and name not in FLASHING:
            raise refuse_flash(board, text)
        return BoardDevice(text, board)

    return DeviceKind(name, help, open_board, check=read_wire, exclusive=True)


KINDS = tuple(_kind(name, help) for name, help in WIRES.items())
