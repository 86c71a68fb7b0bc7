"""Farms on this machine for tests and benchmarks: processes started as users start them, on free loopback ports, and ended by their process ids."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ansor.support.safe_files import make_folder
from tests.namespaces import Namespace
from tests.pretended_device import install_into

START_SECONDS = 60.0


class Cluster:
    """A scheduler, and workers. Use it in a `with` statement. certificates: their folder, or None for a farm without. pretends: as in `worker`, for the
    scheduler. within: the network that the scheduler is in, instead of this machine's loopback interface. options: of its command."""

    def __init__(
        self, folder: Path, certificates: Path | None = None, patience: float = 5.0, pretends: str = "", within: Namespace | None = None,
        options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.folder = folder
        make_folder(folder)
        self._site = install_into(folder / "site")
        self._environment = {
            **os.environ, "ANSOR_FARM": str(certificates or folder / "none"), "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(self._site), os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        self.processes: list[subprocess.Popen[str]] = []
        words = ("scheduler", "--listen", f"{'127.0.0.1' if within is None else within.address}:0", "--dashboard", "", "--patience", str(patience), *options)
        said = self._started(words, r"listens at (\S+);", pretends, within)
        self.url = said.rpartition("/")[2]
        self.scheduler = self.processes[0]

    def worker(self, key: str, device: str, pretends: str = "", within: Namespace | None = None) -> subprocess.Popen[str]:
        """Start a worker, and wait until it has joined; returns its supervising process. pretends: a line of Python that it runs first, to fake versions."""
        self._started(("worker", self.url, "--key", key, "--device", device), "(serves)", pretends, within)
        return self.processes[-1]

    def pretended(self, key: str, name: str, milliseconds: float, *words: str) -> subprocess.Popen[str]:
        """Start a worker with a simulated device."""
        return self.worker(key, ",".join([f"pretended:{name}", str(self.folder), f"{milliseconds:g}", *words]))

    def ran(self, name: str) -> list[str]:
        """The jobs that a simulated device began."""
        path = self.folder / f"{name}.ran"
        return [line for line in path.read_text().splitlines() if line != "canary"] if path.exists() else []

    def run(self, *words: str, within: Namespace | None = None, pretends: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of ansor in the farm's environment. pretends: as in `worker`."""
        command = [*_entering(within), sys.executable, "-m", "ansor", *words]
        return subprocess.run(command, env=self._pretending(pretends), capture_output=True, text=True, timeout=120, check=False)

    def start(self, *words: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """The same, and goes on: the first of a group of processes."""
        command = [sys.executable, "-m", "ansor", *words]
        self.processes.append(subprocess.Popen(command, env=self._environment, stdout=output, stderr=subprocess.DEVNULL, text=True, start_new_session=True))
        return self.processes[-1]

    def end(self, first: int) -> None:
        """End the started processes from this number on, the last one first."""
        for process in reversed(self.processes[first:]):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        del self.processes[first:]

    def _started(self, words: Sequence[str], ready: str, pretends: str = "", within: Namespace | None = None) -> str:
        command = [*_entering(within), sys.executable, "-m", "ansor", "farm", *words]
        process = subprocess.Popen(command, env=self._pretending(pretends), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.processes.append(process)
        deadline, said = time.monotonic() + START_SECONDS, ""
        assert process.stdout is not None
        while time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 0.2)[0]:
                line = process.stdout.readline()
                said += line
                if found := re.search(ready, line):
                    return found[1]
            if process.poll() is not None:
                break
        raise AssertionError(f"{' '.join(words)} did not start: {said}")

    def _pretending(self, line: str) -> dict[str, str]:
        if not line:
            return self._environment
        folder = self.folder / f"starts{len(self.processes)}"
        make_folder(folder)
        (folder / "sitecustomize.py").write_text(line)  # Python imports it before anything else
        return self._environment | {"PYTHONPATH": os.pathsep.join([str(folder), self._environment["PYTHONPATH"]])}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end(0)


def _entering(within: Namespace | None) -> Sequence[str]:
    return () if within is None else within.entering


def child_of(process: subprocess.Popen[str]) -> int:
    """The child of a supervising process, which serves the device."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
