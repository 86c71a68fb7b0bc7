"""`qemu-aarch64`, `qemu-arm`, `qemu-riscv64`: Linux programs for another processor under QEMU's user mode, with exact instruction counts.

Clocks mean nothing there. Each program runs once; the count is deterministic.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import cached_library, find_compiler
from ansor.errors import DeviceError, ToolchainError
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.devices.program_runner import ProgramResult, ProgramRunner
from ansor.measure.devices.started import StartedDevice
from ansor.measure.failure import Failure
from ansor.measure.trial.prepared import Prepared
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.runs import TrialRuns
from ansor.measure.trial.transport import ARGUMENT_BYTES, CLOSED, INSTRUCTIONS, TOO_MUCH, Ended, Limits, failed_by_signal
from ansor.measure.turns import Say
from ansor.support.text import clip
from ansor.targets.base import Target
from ansor.targets.unit import INSTRUCTIONS as UNIT

PLUGIN = Path(__file__).with_name("qemu_count.c")
INSTALL = "apt-get update && apt-get install -y qemu-user"
SLOWER = 10.0  # how many times slower than a processor, for time limits: from 3 (scalar code) to 50 (vectors of floats)
PAGE = 1 << 16  # bytes, of any of these processors
MARK_NOTHING, MARK_CALL = 1, 2  # of trial.c
# The processors each emulator knows, by its names. An unknown processor runs as the emulator's best one, with all features.
_SAME = {
    "aarch64": ("cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76", "neoverse-n1", "a64fx", "max"),
    "arm": ("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15", "max"),
    "riscv64": ("rv64", "sifive-u54"),
}
_OTHER = {
    "aarch64": {"cortex-a55": "cortex-a76", "neoverse-v1": "max,sve-max-vq=2"},
    "arm": {"cortex-a5": "cortex-a7", "cortex-a53": "max"},
    "riscv64": {},
}
_BEST = {"aarch64": "max", "arm": "max", "riscv64": "rv64"}
_SIGNAL = re.compile(r"^qemu: uncaught target signal \d+.*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class QemuTransport:
    """Runs programs by `qemu-KIND -cpu CPU`, with our plugin counting. `folder`: for kept and passed files."""

    emulator: str
    cpu: str
    plugin: Path
    folder: Path
    programs: ProgramRunner = field(default_factory=ProgramRunner)

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as name:
            place = Path(name)
            counts, given = place / "counts", place / "recipe"
            given.write_text(recipe)
            file = kept if kept == "-" else str(self.folder / kept)
            memory = () if self.emulator.endswith("-arm") else ("-R", str(_whole_pages(limits.memory_bytes + ARGUMENT_BYTES)))  # 32 bits already limit it
            command = [self.emulator, "-cpu", self.cpu, *memory, "-plugin", f"{self.plugin},out={counts}", str(program.path.absolute()), mode, file]
            said = self.programs.run(command, place, limits.seconds, given)
            if self.programs.closing.is_set():
                return Ended("", CLOSED)
            if said.status is None:
                return Ended("", Failure("timeout", f"still running after {limits.seconds:.3g} s"))
            counters = counted(counts.read_text() if counts.exists() else "")
        return Ended(said.output, _failure(said, said.status), counters)

    def place(self, path: Path) -> str:
        """See `Transport`; the emulator sees this machine's files."""
        return str(path.absolute())

    def forget(self, kept: str) -> None:
        """See `Transport`."""
        (self.folder / kept).unlink(missing_ok=True)


class QemuDevice(StartedDevice):
    """One kind of emulated processor. Costs are instructions of a call, return included."""

    def __init__(self, name: str, kind: str, cpu: str) -> None:
        def opened(folder: Path, programs: ProgramRunner, proof: HostProof) -> TrialRuns:
            transport = QemuTransport(_emulator(kind), cpu, plugin(), folder, programs)
            return TrialRuns(transport, UNIT, slower=SLOWER, here=proof, prepared=Prepared(folder))

        super().__init__(name, f"qemu-{kind}", UNIT, PROGRAM, opened)


def cpu_of(kind: str, mcpu: str) -> str:
    """The emulator's name of a processor; its best one for an unknown name."""
    name = mcpu.replace("_", "-").partition("+")[0]
    if kind == "riscv64" and re.search(r"\+v\b", mcpu):
        return "rv64,v=true,vlen=128"
    return name if name in _SAME[kind] else _OTHER[kind].get(name, _BEST[kind])


def missing(kind: str) -> str:
    """What this machine lacks to emulate this kind of processor, with the cure; '' for nothing."""
    return "" if shutil.which(f"qemu-{kind}") else f"there is no program qemu-{kind}; install it with `{INSTALL}` (qemu-user-static lacks plugins)"


@lru_cache
def plugin() -> Path:
    """The plugin's library for the installed emulator. Raises DeviceError if it does not build."""
    flags = ("-DANSOR_PLUGIN_VERSION=2", "-DANSOR_BY_CALL") if _major_version() >= 9 else ()
    try:
        return cached_library(find_compiler(), "qemu-count", PLUGIN.read_text(), flags=flags)
    except ToolchainError as error:
        raise DeviceError(f"asked to count instructions, but the plugin for QEMU does not build: {error}") from error


def _major_version() -> int:
    found = next((shutil.which(f"qemu-{kind}") for kind in _BEST if shutil.which(f"qemu-{kind}")), None)
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout if found else ""
    version = re.search(r"version (\d+)\.", said)
    return int(version[1]) if version else 0


def _emulator(kind: str) -> str:
    found = shutil.which(f"qemu-{kind}")
    if found is None:
        raise DeviceError(f"asked to measure on qemu-{kind}: {missing(kind)}")
    return found


def _whole_pages(size: int) -> int:
    """A program's address space in whole pages, as the emulator requires. It ignores the system's limits, and would hang without memory."""
    return -(-size // PAGE) * PAGE


def counted(lines: str) -> Mapping[str, float]:
    """Instructions of the call, from its first to its return; nothing if a mark is missing. The overhead of marks (that of an empty function) is subtracted."""
    marks: dict[str, list[int]] = {}
    for _, number, count in (line.split() for line in lines.splitlines() if line.count(" ") == 2):
        marks.setdefault(number, []).append(int(count))
    nothing, call = marks.get(str(MARK_NOTHING), []), marks.get(str(MARK_CALL), [])
    if len(nothing) != 2 or len(call) != 2:
        return {}
    return {INSTRUCTIONS: float((call[1] - call[0]) - (nothing[1] - nothing[0]) + 1)}


def _failure(said: ProgramResult, status: int) -> Failure | None:
    """Why a program gave no answer: it was killed by a signal, exited with an error status, or wrote too much."""
    complaint = clip(_SIGNAL.sub("", said.complaint).strip(), 500)
    if status < 0:
        return failed_by_signal(signal.Signals(-status).name, -status, complaint)
    if status:
        return Failure("exit", f"ended with status {status}{f'; it said: {complaint}' if complaint else ''}")
    return TOO_MUCH if said.cut else None


def _check_architecture(text: str, kind: str, target: Target) -> None:
    """Raises DeviceError if the target's programs are for other processors."""
    toolchain = target.toolchain()
    if isinstance(toolchain, CToolchain) and toolchain.architecture != kind:
        raise DeviceError(
            f"asked to measure programs for {target} on {text}, which runs {kind} programs; they are built for {toolchain.architecture}: leave devices out, or "
            "choose another one (`ansor devices` lists the kinds)"
        )


def _kind(kind: str) -> DeviceKind:
    def open_qemu(text: str, target: Target, say: Say) -> QemuDevice:
        del say
        _check_architecture(text, kind, target)
        cpu = text.partition(":")[2]
        return QemuDevice(text, kind, cpu or cpu_of(kind, target.mcpu))

    name = f"qemu-{kind}"
    return DeviceKind(name, f"{kind} programs under {name}, counted; {name}:CPU for a processor by QEMU's name", open_qemu, lambda: missing(kind))


KINDS = tuple(_kind(kind) for kind in _BEST)
