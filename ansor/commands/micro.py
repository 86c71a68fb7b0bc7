"""`ansor micro`: lists boards without an operating system, and probes the board at the other end of a wire."""

from __future__ import annotations

import argparse
import time
from contextlib import closing

from rich.console import Console
from rich.table import Table

from ansor.codegen.image.board import Board, Memory
from ansor.commands.common import make_console
from ansor.errors import AnsorError, DeviceError
from ansor.measure.boards.cores import other_core
from ansor.measure.boards.extent import GRAIN, SEEN, extent_of
from ansor.measure.device_kinds import find_kind
from ansor.measure.wire.opening import open_wire, wire_kind
from ansor.measure.wire.wire import Flashing, Wire
from ansor.support.text import format_bytes
from ansor.targets.boards.catalogue import board_names, find_board
from ansor.targets.unit import Unit

PATTERN = bytes((i * 167 + 13 ^ i >> 8) & 0xFF for i in range(1 << 16))
"""The pattern for testing memory: no two neighbours are equal, and no block of 256 equals the next."""


def run_micro(given: argparse.Namespace) -> int:
    """Run the requested action: boards or probe."""
    return {"boards": _boards, "probe": _probe}[given.action](given)


def _boards(given: argparse.Namespace) -> int:
    """Print a row for each board, and what is missing here to run its programs."""
    del given
    console = make_console()
    table = Table(box=None, pad_edge=False)
    for heading in ("board", "core", "RAM", "flash", "counts", "runs on", "ready"):
        table.add_column(heading, overflow="fold")
    for name in board_names():
        board = find_board(name)
        ram, flash = (sum(one.size for one in board.memories if one.flash == kind) for kind in (False, True))
        sizes = (format_bytes(ram), format_bytes(flash) if flash else "-")
        table.add_row(name, board.core.mcpu.partition("+")[0], *sizes, str(Unit.from_text(board.counter.unit)), board.run.device, ready(board))
    console.print(table)
    console.print("a target is `micro -board=NAME`, or the path of a file that describes a board (docs/boards.md)", soft_wrap=True)
    return 0


def ready(board: Board) -> str:
    """Whether programs of a board can be run here: "yes", or what is missing."""
    if wire_kind(board.run.device):
        return "with a board attached"
    try:
        return find_kind(board.run.device).missing() or "yes"
    except DeviceError as error:
        return str(error)


def _probe(given: argparse.Namespace) -> int:
    """Open a wire, print what it can do, test memory, and print its speed and size. Returns 1 if the core or the memory is not as expected."""
    console = make_console()
    start, size = _range(given)
    with closing(open_wire(given.url)) as wire:
        can = wire.abilities
        bits = f"{can.bits}-bit addresses" if can.bits else "unknown address size"
        words = [bits, f"{can.chunk} bytes at a time", *(["stops programs"] if can.halts else []), *(["resets"] if can.resets else [])]
        console.print(f"wire       {wire.name}: {', '.join(words)}", soft_wrap=True)
        board = find_board(given.board) if given.board else None
        other = other_core(wire, board) if board else ""
        if other:
            console.print(f"core       {other}", soft_wrap=True)
        _show_flash(console, wire, board)
        right = not other and (not size or _tested(console, wire, start, size))
        if right and size >= SEEN and start % GRAIN == 0:
            places = {one.start: one for one in dict.fromkeys((board.data, board.code)) if not one.flash} if board and not given.memory else {start: None}
            right = all([_measured(console, wire, at, memory) for at, memory in places.items()])
        seen = wire.traffic
        moved = f"{seen.sent} bytes written, {seen.received} read, {seen.overhead} others"
        console.print(f"traffic    {moved}; {seen.repeated} packets repeated, {seen.damaged} damaged", soft_wrap=True)
    return 0 if right else 1


def _show_flash(console: Console, wire: Wire, board: Board | None) -> None:
    """Print the flash that the wire can write. If there is none, say so only for a board whose code belongs in flash."""
    regions = wire.flash() if isinstance(wire, Flashing) else ()
    for one in regions:
        console.print(f"flash      {one.start:#x} to {one.end:#x}, erased in blocks of {format_bytes(one.block)}", soft_wrap=True)
    if board and board.code.flash and not regions:
        console.print("flash      none that this wire can write: programs can only run with -code=ram", soft_wrap=True)


def _measured(console: Console, wire: Wire, start: int, memory: Memory | None) -> bool:
    """Print how much memory responds, and how that compares with the board's file. Returns False if there is less than the file says."""
    found = extent_of(wire, start)
    end = f"repeats after {format_bytes(found.size)}" if found.anew else f"responds up to {start + found.size:#x}, {format_bytes(found.size)}"
    words = f"{start:#x} {end}{' or more' if found.open else ''}"
    small = memory is not None and found.size < memory.size
    if memory is not None and found.size != memory.size:
        wrong = "the file is wrong, or this is a different board" if small else "programs use no more than that"
        words += f"; {memory.name!r} of the file has {format_bytes(memory.size)}: {wrong}"
    console.print(f"size       {words}", soft_wrap=True)
    return not small


def _range(given: argparse.Namespace) -> tuple[int, int]:
    """The memory to test: the requested range, or the beginning of a board's RAM. Raises DeviceError for an impossible range."""
    if given.memory:
        start, _, size = given.memory.partition(":")
        try:
            found = int(start, 0), int(size or "4096", 0)
        except ValueError:
            found = -1, 0
        if found[0] < 0 or not 0 < found[1] <= len(PATTERN):
            raise DeviceError(f"asked to test the memory {given.memory!r}; write ADDRESS:BYTES, such as 0x20000000:4096, at most {len(PATTERN)} bytes")
        return found
    if given.board:
        data = find_board(given.board).data
        return data.start, min(data.size, 4096)
    return 0, 0


def _tested(console: Console, wire: Wire, start: int, size: int) -> bool:
    """Write a pattern, read it, write its complement, read that, and restore the old contents. Returns False if the memory does not keep them."""
    before = wire.read(start, size)
    seconds, wrong = [0.0, 0.0], -1
    try:
        for pattern in (PATTERN[:size], bytes(byte ^ 0xFF for byte in PATTERN[:size])):
            begin = time.monotonic()
            wire.write(start, pattern)
            middle = time.monotonic()
            found = wire.read(start, size)
            seconds = [seconds[0] + middle - begin, seconds[1] + time.monotonic() - middle]
            wrong = next((at for at in range(size) if found[at] != pattern[at]), -1) if wrong < 0 else wrong
    finally:
        try:
            wire.write(start, before)
        except AnsorError as error:  # an earlier error matters more
            console.print(f"memory     the old contents could not be restored: {error}", soft_wrap=True)
    where = f"{start:#x} to {start + size:#x}"
    if wrong >= 0:
        console.print(f"memory     {where}: {start + wrong:#x} does not keep what is written", soft_wrap=True)
        return False
    speeds = [2 * size / max(one, 1e-9) / 1e3 for one in seconds]
    console.print(f"memory     {where}: keeps what is written; {speeds[0]:.3g} kB/s written, {speeds[1]:.3g} kB/s read", soft_wrap=True)
    return True
