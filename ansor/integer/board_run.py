"""Runs the firmware of a network, in its board's simulator or on a board behind a wire, and reads the self-test's result and the cost of the run."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Segment, read_image
from ansor.errors import DeviceError
from ansor.integer.firmware import SECONDS, Firmware
from ansor.measure.boards.asking import ANSWER_HEAD, answer_at
from ansor.measure.boards.flash import FlashLoader, parts_of
from ansor.measure.boards.loader import Loader
from ansor.measure.devices.simulator import find_program
from ansor.measure.wire.opening import open_wire, wire_forms, wire_kind
from ansor.support.text import clip

_SAID = re.compile(r"selftest ([0-9a-f]+)\s+layers([0-9a-f ]+)\s+board ([0-9a-f]+) ([0-9a-f]+) stack ([0-9a-f]+)")
SAID_BYTES = 1 << 16  # the most bytes of a self-test's output that are read


@dataclass(frozen=True)
class BoardRun:
    """wrong: 0 if every byte of the self-test is right; cost: cost of one run, in `unit`; layers: cost of each layer, including reading the counter.

    stack_bytes: the most stack that was used.
    """

    wrong: int
    cost: float
    unit: str
    stack_bytes: int
    layers: tuple[float, ...]


def wire_of(board: Board, device: str = "") -> str:
    """The wire to a board: `device` if it is given, else the board's own; "" for a simulator. Raises DeviceError if `device` is not a wire."""
    if device and wire_kind(device) is None:
        raise DeviceError(f"asked to run on {device}, which is not a wire to a board; write {wire_forms()}, or leave it out to simulate {board.name}")
    return device or ("" if board.run.command else board.run.device)


def run_firmware(firmware: Firmware, wire: str = "") -> BoardRun:
    """Run firmware in the board's simulator, or on the board behind a wire. Raises DeviceError if there is neither, or the run ends without an answer."""
    text = _over_wire(firmware, wire) if wire else _simulated(firmware)
    board, found = firmware.board, _SAID.search(text)
    if found is None:
        said = clip(" ".join(text.split()), 300) or "nothing"
        raise DeviceError(f"asked to run {firmware.path} on {wire or board.name}, which ended without an answer; its output was: {said}")
    layers, scale = tuple(int(word, 16) * board.counter.scale for word in found[2].split()), board.counter.scale
    wrong, start, end, stack = (int(found[place], 16) for place in (1, 3, 4, 5))
    return BoardRun(wrong, (end - start) * scale, board.counter.unit, stack, layers)


def _simulated(firmware: Firmware) -> str:
    board = firmware.board
    if not board.run.command:
        raise DeviceError(f"asked to run {firmware.path} on {board.name}, for which there is no simulator; name the wire to it, such as gdb://localhost:3333")
    command = [find_program(board.run.command[0]), *(str(firmware.path) if word == "IMAGE" else word for word in board.run.command[1:])]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"asked to run {firmware.path}, which is still running after {SECONDS:.0f} s") from error
    return f"{ran.stdout} {ran.stderr}"


def _over_wire(firmware: Firmware, text: str) -> str:
    """Write the program to the board's memory, run it to its end, and read the output that it left there."""
    board, image = firmware.board, read_image(firmware.path)
    in_ram, in_flash = parts_of(image.segments, board)
    wire = open_wire(text)
    try:
        if wire.abilities.resets:
            wire.reset()
        if in_flash:
            flash = FlashLoader(board)
            flash.check(wire)
            flash.load(wire, in_flash)
        Loader().load(wire, (*in_ram, Segment(image.symbols["ansor_answer"], bytes(ANSWER_HEAD))))
        stopped = wire.execute(image.entry, image.symbols["ansor_stop"] & ~1, SECONDS)
        if stopped.reason != "stop":
            raise DeviceError(f"asked to run {firmware.path} over {text}, which ended in a {stopped.reason} {stopped.cause}")
        return answer_at(wire, image.symbols["ansor_answer"], SAID_BYTES) or ""
    finally:
        wire.close()
