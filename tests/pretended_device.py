"""A simulated device that runs nothing: it waits, and returns the cost that is in the program's file. Other processes find it like devices of packages."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from ansor.codegen.artifact import LIBRARY, Artifact
from ansor.codegen.source import CSource
from ansor.errors import DeviceError
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind, open_device
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.targets.base import Target
from ansor.targets.unit import INSTRUCTIONS, SECONDS, Unit

METADATA = "Metadata-Version: 2.1\nName: pretended-device\nVersion: 1\n"
POINTS = "[ansor.devices]\npretended = pretended_device:KIND\nlate = pretended_device:LATE\ncounted-agent = counted_agent:KIND\n"


class PretendedDevice:
    """`pretended:NAME,FOLDER,MILLISECONDS[,clock][,hot=N][,hangs][,other][,absent]`: writes each job that it begins into FOLDER/NAME.ran. With `clock` it
    counts seconds, and is twice as slow while there is FOLDER/NAME.throttled, or after N jobs; with `hangs` it never answers; with `other` it is of another
    model; with `absent` it cannot be opened. A job whose file says `lost`, `wrong` or `die` ends so."""

    alone = False
    form = LIBRARY

    def __init__(self, text: str) -> None:
        self.name = text
        name, folder, milliseconds, *words = text.partition(":")[2].split(",")
        self._log, self._throttled, self._seconds = Path(folder) / f"{name}.ran", Path(folder) / f"{name}.throttled", float(milliseconds) / 1e3
        self.unit: Unit = SECONDS if "clock" in words else INSTRUCTIONS
        self._hangs = "hangs" in words
        self._cool = next((int(word[4:]) for word in words if word.startswith("hot=")), 1 << 30)
        self.model = "another machine" if "other" in words else "pretended machine"

    def run(self, job: Job) -> Observation | Failure:
        content = job.artifact.path.read_bytes()
        said = content[:40].decode("latin-1")
        with self._log.open("a") as log:
            program = "canary" if self.unit == SECONDS else f"program {hashlib.sha256(content).hexdigest()[:16]} {job.artifact.symbol}"
            log.write(f"{said if said.startswith('job') else program}\n")
        hot = self._cool <= 0 or self._throttled.exists()
        self._cool -= said.startswith("job")
        time.sleep(1e6 if self._hangs else self._seconds)
        if said == "job lost":
            return Failure("link_lost", "as it was told")
        if said == "job wrong":
            return Failure("wrong_answer", "as it was told")
        if said == "job die":
            os._exit(9)
        slower = 2.0 if hot else 1.0
        cost = float(said.split()[1]) if said.startswith("job") else 1e-3
        return Observation((cost * slower if self.unit == SECONDS else cost,), self.unit, check="nothing")

    def close(self) -> None:
        pass


def _open(text: str, target: Target, say: Callable[[str], None]) -> PretendedDevice:
    del target, say
    if text.endswith(",absent"):
        raise DeviceError(f"asked for {text}, which is absent")
    return PretendedDevice(text)


KIND = DeviceKind("pretended", "nothing", _open)


class LateDevice:
    """`late:SECONDS,TEXT`: the device of that text, with its answers delayed, like those of slow boards."""

    def __init__(self, text: str, target: Target, say: Callable[[str], None]) -> None:
        seconds, _, of = text.partition(":")[2].partition(",")
        self._device, self._seconds, self.name = open_device(of, target, say), float(seconds), text
        self.model, self.unit, self.form, self.alone = self._device.model, self._device.unit, self._device.form, False

    def run(self, job: Job) -> Observation | Failure:
        time.sleep(self._seconds)
        return self._device.run(job)

    def close(self) -> None:
        self._device.close()


LATE = DeviceKind("late", "a device that answers late", LateDevice)


def install_into(folder: Path) -> Path:
    """A folder for PYTHONPATH in which other processes find it, and the agents that count."""
    (folder / "pretended_device-1.dist-info").mkdir(parents=True)
    (folder / "pretended_device-1.dist-info" / "METADATA").write_text(METADATA)
    (folder / "pretended_device-1.dist-info" / "entry_points.txt").write_text(POINTS)
    for name in ("pretended_device.py", "counted_agent.py"):
        (folder / name).write_bytes(Path(__file__).with_name(name).read_bytes())
    return folder


def job(folder: Path, what: str) -> Job:
    """A job with a file that contains a cost, or a fault."""
    path = folder / what.replace(" ", "-")
    path.write_bytes(f"job {what}".encode())
    return Job(MeasureTask(f"pretended {what}"), Artifact(CSource("", "nothing", ()), path, "nothing"))
