"""`qemu-system`, `spike`, `rvsim`: boards simulated by a local program. Each trial starts the program again, with the image and its request.

Nothing persists between trials, so outputs are verified by hashes and sums against a reference that runs on this machine.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, read_image, write_elf
from ansor.codegen.image.toolchain import IMAGE
from ansor.errors import DeviceError
from ansor.measure.boards.asking import CHANGED, BoardInput, BoardRequest, counters_of, said_in, told, with_places
from ansor.measure.boards.fit import misfit
from ansor.measure.boards.qemu_memory import ASKED, SECONDS, Region, check_regions, monitor_command, regions_in
from ansor.measure.boards.smoke import believe, cost_of, seconds_for, silence, watchdog_ticks
from ansor.measure.device_kinds import DeviceKind, name_alone
from ansor.measure.devices.program_runner import ProgramResult, ProgramRunner
from ansor.measure.devices.started import StartedDevice
from ansor.measure.failure import Failure
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.runs import TrialRuns, answer_of
from ansor.measure.trial.transport import CLOSED, TOO_MUCH, Ended, Limits
from ansor.measure.turns import Say
from ansor.support.text import clip
from ansor.targets.base import Target
from ansor.targets.micro import board_of
from ansor.targets.unit import Unit

CURE = {
    "qemu-system": "apt-get update && apt-get install -y qemu-system-arm qemu-system-misc",
    "spike": "pip install spike==0.0.5.dev20, and apt-get install -y device-tree-compiler",
    "rvsim": "pip install rvsim",
}
PROGRAMS = {"qemu-system": ("qemu-system-arm", "qemu-system-riscv32"), "spike": ("spike", "dtc"), "rvsim": ("rvsim",)}
SLOWER = 20.0  # how many times slower than a processor it may be, for time limits
START_SECONDS = 10.0  # for a simulator to start on a busy machine


class SimulatorTransport:
    """Starts a simulator for each program; it ends with the program."""

    def __init__(self, board: Board, unit: Unit, folder: Path, programs: ProgramRunner) -> None:
        self._board, self._unit, self._folder, self._programs = board, unit, folder, programs

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`. Raises DeviceError for a board that does not match its file."""
        image = read_image(program.path)
        free = image.symbols["ansor_free"]
        too_large = misfit(program.source, self._board, free)
        if too_large is not None:
            return Ended("", too_large)
        self.check(program)
        asked = BoardRequest(mode, kept, recipe, True, (free, self._board.heap_end), self._board.ticks(limits.seconds))
        ran, asking = self._started(image, program, asked, limits.seconds + START_SECONDS)
        if self._programs.closing.is_set():
            return Ended("", CLOSED)
        if ran.status is None:
            return Ended("", Failure("timeout", f"still running after {limits.seconds + START_SECONDS:.3g} s"))
        if ran.cut:
            return Ended("", TOO_MUCH)
        said = said_in(ran.output, asking.nonce)
        if said is None:
            what = clip(" ".join(f"{ran.output} {ran.complaint}".split()), 400) or "nothing"
            return Ended("", Failure("exit", f"{self._board.run.command[0]} ended with status {ran.status} and without an answer; it said: {what}"))
        counters = counters_of(said, self._board, self._unit.name)
        if said.failed and (failure := answer_of(Ended(said.line)).failure) is not None:
            return Ended(said.line, with_places(failure, image), counters)
        return Ended(said.line, CHANGED if said.memory != asking.sum and not said.failed else None, counters)

    def check(self, program: Artifact) -> int:
        """Count loops of known lengths with a program's image, once per board; returns what the longest one cost.

        Raises DeviceError for a board that does not match its file."""
        return believe(self._board, "", lambda: self._check(program))

    def _check(self, program: Artifact) -> int:
        board, image = self._board, read_image(program.path)
        if board.run.device == "qemu-system":
            check_regions(board, self._regions())
        asked = BoardRequest("", "-", "", True, (image.symbols["ansor_free"], board.heap_end), watchdog_ticks(board), counts=True)
        ran, asking = self._started(image, program, asked, seconds_for(board))
        if self._programs.closing.is_set():
            raise DeviceError(CLOSED.text)
        said = said_in(ran.output, asking.nonce)
        if said is None:
            raise silence(board, ran.status, ran.output, ran.complaint)
        return cost_of(board, said, ran.status is not None)

    def _regions(self) -> list[Region]:
        """The memories of QEMU's machine."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=self._folder) as file:
            file.write(ASKED)
            file.flush()
            program, *words = monitor_command(self._board.run.command)
            return regions_in(self._programs.run([find_program(program), *words], self._folder, SECONDS, Path(file.name)).output)

    def _started(self, image: Image, program: Artifact, asked: BoardRequest, seconds: float) -> tuple[ProgramResult, BoardInput]:
        """Start the simulator with an image that contains its request."""
        with tempfile.NamedTemporaryFile(suffix=".elf", dir=self._folder) as file:
            asking = told(image, program, asked)
            write_elf(image.with_bytes(asking.parts), Path(file.name))
            words = (file.name if word == "IMAGE" else word for word in self._board.run.command[1:])
            return self._programs.run([find_program(self._board.run.command[0]), *words], self._folder, seconds), asking

    def place(self, path: Path) -> str:
        raise DeviceError(f"asked to measure with the values of {path} on {self._board.run.device}: boards take values over a wire; measure with seeds")

    def forget(self, kept: str) -> None:
        """See `Transport`; nothing is kept."""


class SimulatorDevice(StartedDevice):
    """One simulated board. Costs are what its counter counts for one call, return included."""

    def __init__(self, name: str, board: Board) -> None:
        unit = Unit.from_text(board.counter.unit)

        def opened(folder: Path, programs: ProgramRunner, proof: HostProof) -> TrialRuns:
            return TrialRuns(SimulatorTransport(board, unit, folder, programs), unit, slower=SLOWER, here=proof)

        super().__init__(name, board.name, unit, IMAGE, opened)
        self._board, self._unit = board, unit

    def check(self, program: Artifact) -> int:
        """What a loop of known length costs there. Raises DeviceError for a board that does not match its file."""
        with self._one.running(), tempfile.TemporaryDirectory() as folder:
            return SimulatorTransport(self._board, self._unit, Path(folder), self._programs).check(program)


def find_program(name: str) -> str:
    """The path of a simulator: on the PATH, or beside this Python. Raises DeviceError if it is missing."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        cure = next((CURE[kind] for kind, programs in PROGRAMS.items() if name in programs or name.startswith(kind)), "install it")
        raise DeviceError(f"there is no program {name}; {cure}")
    return found


def missing(kind: str) -> str:
    """What this machine lacks for a kind of simulator, with the cure; '' for nothing."""
    try:
        for name in PROGRAMS[kind]:
            find_program(name)
    except DeviceError as error:
        return str(error)
    return ""


def _kind(name: str, help: str) -> DeviceKind:
    def open_simulator(text: str, target: Target, say: Say) -> SimulatorDevice:
        del say
        if target.kind != "micro" or board_of(target).run.device != name:
            why = "it runs images of boards that it simulates, such as micro -board=mps2-an386"
            raise DeviceError(f"asked to measure programs for {target} on {text}: {why}; leave devices out")
        return SimulatorDevice(text, board_of(target))

    return DeviceKind(name, help, open_simulator, lambda: missing(name), check=name_alone)


KINDS = (
    _kind("qemu-system", "boards that QEMU simulates, counted"),
    _kind("spike", "RISC-V cores in Spike, counted"),
    _kind("rvsim", "RISC-V cores in rvsim, in cycles of its model"),
)
