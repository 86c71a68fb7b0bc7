"""Checks a board behind a wire against its file before the first trial: its memory, and the short run of `smoke`.

A line may damage data, so no board is refused on one observation: memory is tested twice, and only answers with correct checksums are judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.image.board import Board, Memory
from ansor.codegen.image.elf import Image
from ansor.errors import DeviceError
from ansor.measure.boards.asking import BoardAnswer, BoardInput, BoardRequest, answer_at, said_in
from ansor.measure.boards.smoke import COUNTED, blamed, cost_of, refuse, seconds_for, watchdog_ticks
from ansor.measure.wire.wire import Stopped, Wire, WireError

PLACE = 16  # bytes that are written and read at each place
HALVINGS = 4  # memory smaller than stated often repeats at a half or a quarter of the stated size
STATE, BEGUN = 8, 1  # of an answer, as in bare.h: bytes of its state, and the state once main has begun
REAL_SECONDS = 0.25  # until a real-time watchdog fires: long after the loops have ended at any clock rate


@dataclass(frozen=True, slots=True)
class _Found:
    """What is wrong with a memory. key: the field at fault."""

    what: str
    key: str


def check_memories(wire: Wire, board: Board) -> None:
    """Write and read the data and code memories at their start, at their end and in between. Their contents are lost.

    Raises DeviceError for memory that does not match the board's file, WireError if the wire broke.
    """
    for memory in dict.fromkeys((board.data, board.code)):
        if not memory.flash and _wrong(wire, board, memory) is not None and (found := _wrong(wire, board, memory)) is not None:
            raise refuse(board, found.what, f"{found.key} of the memory {memory.name!r} under memories")


def places_of(memory: Memory) -> list[int]:
    """Addresses to test: the start, and the last bytes of an eighth, a quarter, a half and the whole of the size."""
    ends = {memory.start + (memory.size >> shift) // PLACE * PLACE - PLACE for shift in range(HALVINGS)}
    return sorted({memory.start, *(one for one in ends if one >= memory.start)})


def _wrong(wire: Wire, board: Board, memory: Memory) -> _Found | None:
    places = places_of(memory)
    written = {at: bytes((17 * at_number + 29 * i + 1) & 0xFF for i in range(PLACE)) for at_number, at in enumerate(places)}
    span = f"its memory {memory.name!r}, {memory.start:#x} to {memory.end:#x},"
    known = [*places, *(one.start for one in board.memories), *([board.counter.register] if board.counter.register else [])]
    for at in places:
        try:
            wire.write(at, written[at])
        except WireError as error:
            _go_on(wire, [one for one in known if one != at], error)
            return _found_at(memory, at, f"{span} cannot be written at {at:#x}, {_where(memory, at)} ({error})")
    for at in places:
        try:
            found = wire.read(at, PLACE)
        except WireError as error:
            _go_on(wire, [one for one in known if one != at], error)
            return _found_at(memory, at, f"{span} cannot be read at {at:#x}, {_where(memory, at)} ({error})")
        if found == written[at]:
            continue
        same = next((other for other in places if other != at and found == written[other]), None)
        if same is not None:
            size = abs(same - at)
            return _Found(f"{span} is smaller: data written at {same:#x} appear at {at:#x}, so it repeats after {size} bytes or fewer", "size")
        return _found_at(memory, at, f"{span} does not keep what is written at {at:#x}, {_where(memory, at)}")
    return None


def _found_at(memory: Memory, at: int, what: str) -> _Found:
    return _Found(what, "start" if at == memory.start else "size")


def _where(memory: Memory, at: int) -> str:
    return "its start" if at == memory.start else "its end" if at + 2 * PLACE > memory.end else "before its end"


def _go_on(wire: Wire, others: list[int], error: WireError) -> None:
    """Raises the error if nothing else can be read either: then the wire broke, and nothing is known about the memory."""
    for other in others:
        try:
            wire.read(other, 4)
            return
        except WireError:
            continue
    raise error


def asked_of(board: Board, heap: tuple[int, int]) -> BoardRequest:
    """The request for the short run over a wire. The speed of a real-time board is unknown, so its watchdog fires later."""
    ticks = watchdog_ticks(board) if board.run.step else board.ticks(REAL_SECONDS)
    return BoardRequest("", "-", "", False, heap, ticks, counts=True)


def cost_over(wire: Wire, board: Board, image: Image, asking: BoardInput, room: int) -> int:
    """Run the loaded program; returns what its longest loop cost. room: bytes for the answer's text.

    Raises DeviceError for a board that does not match its file, WireError if the answer is damaged or the wire broke.
    """
    stopped = wire.execute(image.entry, image.symbols["ansor_stop"] & ~1, seconds_for(board))
    place = image.symbols["ansor_answer"]
    if stopped.reason != "stop":
        raise _halted(wire, board, image, stopped)
    said = said_in(answer_at(wire, place, room) or "", asking.nonce)
    if said is None or said.memory != asking.sum and not said.failed or said.failed and _unsure(said, asking):
        raise WireError(f"{wire.name}: a short program left no answer with a correct checksum")
    return cost_of(board, said)


def _unsure(said: BoardAnswer, asking: BoardInput) -> bool:
    """Whether a trap may come from code that arrived damaged, judging by its checksum (0 if memory could not be read)."""
    return said.memory not in (0, asking.sum)


def _halted(wire: Wire, board: Board, image: Image, stopped: Stopped) -> DeviceError:
    """The error of a run that did not finish."""
    place = image.symbols["ansor_answer"]
    where = "" if stopped.pc is None else f", at pc 0x{stopped.pc:x} ({image.place(stopped.pc)})"
    cause = f" ({stopped.cause})" if stopped.cause else ""
    if stopped.reason == "trap":
        text = f"{stopped.cause or 'the processor stopped'}{where}"
        return refuse(board, f"a short program ended in a trap that it could not handle: {text}", blamed(board, "trap", text))
    head = wire.read(place, STATE + 8)
    state, size = int.from_bytes(head[:STATE], "little"), int.from_bytes(head[STATE:], "little")
    took = f"in {seconds_for(board):.3g} s{where}{cause}"
    if state != BEGUN:
        return refuse(board, f"a short program did not begin {took}", "core.architecture, core.mcpu, start of memories, run.code and run.boot")
    if COUNTED.encode() in wire.read(place + 24, min(size, 256)):
        what = f"a short program counted, and then its watchdog ({board.watchdog.kind}) did not end it {took}"
        return refuse(board, what, "watchdog.kind, watchdog.registers and watchdog.hertz")
    return refuse(board, f"a short program began, but did not finish its loops {took}", "counter.register, counter.csr and counter.setup")
