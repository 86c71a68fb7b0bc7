"""Checks a board against its file by one short run without a candidate, before the first trial.

Loops of known lengths run between marks of the counter; then the watchdog, if there is one, must end an endless loop. Errors say what was found and which
fields of the file may be the cause.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from itertools import pairwise

from ansor.codegen.image.board import Board
from ansor.errors import DeviceError
from ansor.measure.boards.asking import BoardAnswer
from ansor.measure.trial.runs import answer_of
from ansor.measure.trial.transport import Ended
from ansor.support.text import clip

PASSES = (5000, 10000, 20000)  # as in bare.c
PER_PASS = 2  # instructions per pass
INSTRUCTIONS = 150_000  # after which the watchdog fires
ALL_INSTRUCTIONS = 1_000_000  # of the whole run, about, with painting and checksums
SLOWER, SECONDS = 8.0, 10.0  # how many times slower than stated a simulator may be on a busy machine; seconds to start it
CYCLES = (0.25, 100.0)  # least and most per pass: from superscalar processors to code in flash without a cache
CONSOLE = "console.data, console.status, console.mask, console.ready, console.width and console.setup"
NEAR = 0x40  # a trap this many bytes from a field's address is blamed on it
COUNTED = '{"counted": true}'
_WHERE = re.compile(r"address 0x([0-9a-f]+)")

_lock = threading.Lock()
_believed: dict[tuple[Board, str], int] = {}


def believe(board: Board, device: str, checked: Callable[[], int]) -> int:
    """The result of `checked`, which raises DeviceError if the board does not match its file. After its first success for a board and a device, it is not
    called again for these."""
    with _lock:
        if (board, device) not in _believed:
            _believed[board, device] = checked()
        return _believed[board, device]


def seconds_for(board: Board) -> float:
    """How long the run may take."""
    return SECONDS + SLOWER * ALL_INSTRUCTIONS / board.run.rate


def watchdog_ticks(board: Board) -> int:
    """Ticks after which the watchdog fires."""
    return board.ticks(INSTRUCTIONS / board.run.rate)


def refuse(board: Board, what: str, fields: str) -> DeviceError:
    """The error of a board that does not match its file."""
    return DeviceError(f"the board {board.name} does not match its file: {what}; check {fields} (docs/boards.md)")


def silence(board: Board, status: int | None, output: str, complaint: str) -> DeviceError:
    """The error of a run without an answer. status: of the simulator, None if it timed out."""
    program, said = board.run.command[0], clip(" ".join(output.split()), 200)
    ended = f"{program} did not end in {seconds_for(board):.3g} s" if status is None else f"{program} ended with status {status}"
    if complaint.strip():
        lines = complaint.strip().splitlines()
        ended = f"{ended} and complained: {clip(next((line for line in lines if 'fatal' in line), lines[0]), 300)}"  # a dump of the registers follows
    if COUNTED in output and status is None and not board.watchdog.kind:
        what = f"a short program ran to its end, and {program} was still running after {seconds_for(board):.3g} s"
        return refuse(board, what, "console.end and run.command")
    if COUNTED in output and status is None:
        what = f"a short program counted, and then its watchdog ({board.watchdog.kind}) did not end it: {ended}"
        return refuse(board, what, "watchdog.kind, watchdog.registers, watchdog.hertz, run.rate, run.step and console.end")
    if said:
        what = f"a short program printed an incomplete answer, {said!r}: {ended}"
        return refuse(board, what, f"{CONSOLE}, console.end, and run.command")
    if status is not None and status > 0 and program in complaint:
        return refuse(board, f"a short program was not started: {ended}", "run.command")
    printing = "console.htif" if board.console.htif else CONSOLE
    watchdog = "watchdog.registers, " if board.watchdog.kind else ""  # the watchdog is started before anything is printed
    core = "core.mcpu" if board.core.architecture == "thumb" else "core.mcpu, run.hart"
    fields = [printing, f"start and size of memories, {watchdog}run.boot, run.code, {core}"]
    if status is not None and status < 0:  # the simulator gave up on missing code or a missing stack
        fields.reverse()
    return refuse(board, f"a short program printed nothing: {ended}", f"{', '.join(fields)} and run.command")


def cost_of(board: Board, said: BoardAnswer, ended: bool = True) -> int:
    """What the longest loop cost, in units of the board. ended: whether the simulator ended. Raises DeviceError if the run shows that the file is wrong."""
    if said.failed:
        failure = answer_of(Ended(said.line)).failure
        assert failure is not None
        if failure.kind != "timeout":
            raise refuse(board, f"a short program ended in a trap: {failure}", blamed(board, failure.kind, failure.text))
        if len(said.marks) <= len(PASSES):
            fields = "watchdog.hertz, watchdog.registers" if len(said.marks) > 1 else "watchdog.registers, watchdog.hertz"  # it fired at once: it was never set
            raise refuse(board, f"the watchdog fired while a short program counted: {failure}", f"{fields}, run.step{_clock(board)}")
    if not ended:
        what = f"a short program ran to its end, and {board.run.command[0]} was still running after {seconds_for(board):.3g} s"
        raise refuse(board, what, "console.end and run.command")
    counts = [after - before for before, after in pairwise(said.marks)]
    if wrong := _miscounted(board, counts):
        numbers = f"loops of {', '.join(f'{one:,}' for one in PASSES)} passes counted {', '.join(f'{one:,}' for one in counts)} ticks"
        raise refuse(board, f"its counter {_counter(board)} {wrong[0]}: {numbers}", wrong[1])
    return round(counts[-1] * board.counter.scale)


def _counter(board: Board) -> str:
    return board.counter.csr or f"at {board.counter.register:#x}"


def _miscounted(board: Board, counts: list[int]) -> tuple[str, str] | None:
    """What is wrong with a counter, and the fields that may be the cause. counts: ticks of each loop, modulo 2 ** 64."""
    counter, where = board.counter, "counter.csr" if board.counter.csr else "counter.register and counter.setup"
    if not any(counts):
        return "does not count", f"{where}{_clock(board)}"
    half = 1 << (63 if counter.csr and not counter.csr.startswith("0x") or counter.bits == 64 else counter.bits - 1)
    if any(one >= half for one in counts):
        return "runs backwards, or does not run", f"counter.down, counter.bits, {where}"
    if not all(1.5 * before - 3 <= after <= 2.5 * before + 3 for before, after in pairwise(counts)):
        return "does not grow with the work", f"counter.bits, {where}{_clock(board)}"
    each = (counts[2] - counts[0]) / (PASSES[2] - PASSES[0])
    return _off(board, each)


def _off(board: Board, each: float) -> tuple[str, str] | None:
    """As `_miscounted`, for a counter that grows with the work. each: ticks per pass."""
    counter, units = board.counter, each * board.counter.scale
    where = "counter.csr" if counter.csr else "counter.register, counter.setup"
    if counter.unit == "instructions" and abs(units - PER_PASS) > 0.01 * PER_PASS:
        scale = PER_PASS / each if each > 0 else 0.0
        what = f"counts {units:.4g} instructions per pass, which has {PER_PASS}"
        return what, f"counter.scale ({scale:.6g} would be right, if that is exact), {where}{_clock(board)}"
    if counter.unit.startswith("cycles") and not CYCLES[0] <= units <= CYCLES[1]:
        return f"counts {units:.4g} cycles per pass of {PER_PASS} instructions", f"counter.scale, counter.unit, {where}"
    clock = PER_PASS * counter.hertz * board.run.step
    if counter.unit == "instructions" and not counter.csr and board.run.command and not clock:
        return f"ticks {each:.4g} times per pass", f"run.step, which is missing: {each / PER_PASS / counter.hertz:.6g} would be right with this counter.hertz"
    if counter.unit == "instructions" and not counter.csr and board.run.command and abs(each - clock) > 0.05 * each:
        what = f"ticks {each:.4g} times per pass, but hertz and step imply {clock:.4g}"
        return what, f"counter.hertz ({counter.hertz * each / max(clock, 1e-300):.6g} would be right with this step), run.step, counter.setup{_clock(board)}"
    return None


def _clock(board: Board) -> str:
    """Where else a simulator's clock is set."""
    if not any("qemu" in word for word in board.run.command[:1]):
        return ""
    set_here = [after for word, after in pairwise(board.run.command) if word == "-icount"]
    return f", and -icount of run.command, which is {set_here[0]}" if set_here else ", and run.command, which lacks -icount"


def blamed(board: Board, kind: str, text: str) -> str:
    """Fields that may have caused a trap: those near the address it names, if any."""
    found, console, counter = _WHERE.search(text), board.console, board.counter
    places = [
        ("counter.register", counter.register), ("console.data", console.data), ("console.status", console.status),
        *((f"console.setup (the write to {at:#x})", at) for at, _ in console.setup),
        *((f"counter.setup (the write to {at:#x})", at) for at, _ in counter.setup),
        *((f"console.end (the write to {at:#x})", at) for at in ([console.end[0]] if isinstance(console.end, tuple) else [])),
        *(("watchdog.registers", at) for at in board.watchdog.registers[: 2 if board.watchdog.kind == "clint" else 1]),
    ]  # fmt: skip
    far = {name: abs(int(found[1], 16) - at) for name, at in places if found and at}
    if far and min(far.values()) < NEAR:
        return " and ".join(name for name, bytes_away in far.items() if bytes_away == min(far.values()))
    if kind == "instruction":
        return "core.mcpu, core.flags, core.floats, core.guard, counter.csr and run.command"
    return "start and size of memories, core.guard, core.mcpu, addresses of counter, console and watchdog, and run.command"
