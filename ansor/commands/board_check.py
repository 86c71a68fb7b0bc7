"""`ansor doctor` for a board, simulated or behind a wire: builds a program, runs it, and reports its counts."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from ansor.codegen.image.toolchain import IMAGE, PLAIN
from ansor.codegen.toolchain import FIRST_CALL_SECONDS
from ansor.commands.findings import Finding, told
from ansor.errors import DeviceError, ToolchainError
from ansor.measure.boards.smoke import PASSES
from ansor.measure.device_kinds import open_devices
from ansor.measure.devices.board import BoardDevice
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.targets.base import Target


def check_board(target: Target) -> Finding | None:
    """Check that a target's board matches its file; None for devices that are not boards."""
    (device,) = open_devices(None, target)
    with closing(device):
        if not isinstance(device, SimulatorDevice | BoardDevice):
            return None
        try:
            counted = _counted(device, target)
        except DeviceError as error:
            return told("check", str(error), fix="compare the board's file with the board: docs/boards.md explains each field")
    return Finding("check", f"a loop of {PASSES[-1]:,} passes ran on the board and counted {counted:,} {target.unit}")


def _counted(device: SimulatorDevice | BoardDevice, target: Target) -> int:
    with tempfile.TemporaryDirectory(prefix="ansor-check-") as folder:
        made = target.toolchain().build([PLAIN], IMAGE, Path(folder) / "check", timeout=FIRST_CALL_SECONDS)
        if not made.said.ok:
            raise ToolchainError(f"no program can be built for {target}: {made.said.text}")
        return device.check(made.artifacts[0])
