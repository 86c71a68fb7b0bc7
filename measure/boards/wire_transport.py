"""Runs trial programs over a wire: writes the changed parts of an image to the board's memory, runs it to its stop, and reads its answer from memory.

Outputs of references stay at the end of the board's memory. After anything but a good run, the memory is not trusted: the next program writes all of it
again and recomputes the outputs to compare with. Every run reports checksums of the memory at its end. If they differ from those of the written data, or
are missing and the memory read back differs, the program runs once more on freshly written memory.

Code may be in flash, if the wire can write that (`flash`). Running a reference again would erase it twice, so its outputs are then copied here, and written
back where they differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, Segment, read_image
from ansor.errors import DeviceError
from ansor.measure.boards.asking import ANSWER_HEAD, CHANGED, BoardAnswer, BoardInput, BoardRequest, answer_at, counters_of, said_in, told, with_places
from ansor.measure.boards.checksums import memory_sum, standing
from ansor.measure.boards.cores import check_core
from ansor.measure.boards.fit import misfit
from ansor.measure.boards.flash import FlashLoader, parts_of
from ansor.measure.boards.loader import BLOCK, Loader
from ansor.measure.boards.places import NoRoom, Places
from ansor.measure.boards.wire_smoke import asked_of, check_memories, cost_over
from ansor.measure.failure import Failure
from ansor.measure.trial.kept import ENTRY_WORDS, HEADER_WORDS
from ansor.measure.trial.runs import answer_of
from ansor.measure.trial.transport import CLOSED, TOO_MUCH, Ended, Limits
from ansor.measure.wire.link import BoardReset
from ansor.measure.wire.wire import Stopped, Traffic, Wire, WireError
from ansor.support.text import clip
from ansor.targets.unit import Unit

RETURN_SECONDS = 30.0  # a board, or the connection to it, is back by then
PAUSE_SECONDS = 0.2
GRACE_SECONDS = 10.0  # beyond a program's time limit, for a board that ends it itself
CHECKS = 3  # attempts before the first trial, if the wire breaks
NO_ROOM = Failure("memory", "the outputs of the reference do not fit in the board's memory")


@dataclass(frozen=True, slots=True)
class _Kept:
    """How and where a reference's outputs were made. there: whether they are believed to be there; sum: the checksum of that memory."""

    program: Artifact
    image: Image
    recipe: str
    limits: Limits
    start: int
    size: int
    there: bool
    sum: int = 0

    @property
    def text(self) -> str:
        return f"{self.start:x} {self.size:x}"


class WireTransport:
    """See `Transport`. `opener` opens the wire, and reopens it after it broke.

    short: whether memory was too small for what must stay, since this was last cleared. fresh: whether the last program began with untrusted memory.
    """

    def __init__(self, board: Board, unit: Unit, opener: Callable[[], Wire], closing: threading.Event) -> None:
        self._board, self._unit, self._opener, self._closing = board, unit, opener, closing
        self._wire: Wire | None = None
        self._loader, self._flash = Loader(), FlashLoader(board)
        self._places = Places(board.data.start, board.heap_end)
        self._kept: dict[str, _Kept] = {}
        self._copies: dict[str, bytes] = {}  # of those outputs, if code is in flash
        self._files: dict[Path, Segment] = {}
        self._opened = False
        self._counted: int | None = None  # by the board's check, once it has passed
        self._resets = 0
        self._tensor_bytes = self._flash_bytes = 0  # since the last trial ended; the reference of a trial is included
        self.short = self.fresh = False
        self._spoiled = False  # memory was damaged in the last run

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`. Raises DeviceError if the board does not come back."""
        image = self._image(program)
        if mode == "trial" and (too_large := misfit(program.source, self._board, image.symbols["ansor_free"])) is not None:
            return Ended("", too_large)
        if (lost := self._believe(program)) is not None:
            return Ended("", lost)
        anew = False
        for attempt in range(3):
            if self._closing.is_set():
                return Ended("", CLOSED)
            wire = self._ready()
            before, self.fresh = wire.traffic, self._loader.fresh
            try:
                failure = self._prepare(wire, program, image, mode, kept, recipe, limits)
                if failure is not None:
                    return Ended("", failure)
                place = "-" if kept == "-" else self._kept[kept].text
                asking = self._load(wire, image, program, BoardRequest(mode, place, recipe, False, self._heap(image), self._board.ticks(limits.seconds)))
            except WireError as error:  # nothing has run yet, so it is safe to repeat
                if (lost := self._lost(error)) is CLOSED or attempt == 2:
                    return Ended("", lost)
                continue
            ended = self._ran(wire, image, mode, kept, limits, before, asking)
            if self._spoiled and not anew and attempt < 2:  # perhaps by an earlier program
                anew, self.short = True, False
                self.doubt()
                continue
            if mode == "trial":
                self._tensor_bytes = self._flash_bytes = 0
            return replace(ended, counters={**ended.counters, "runs_repeated": float(anew)})
        raise AssertionError("not reached")

    def check(self, program: Artifact) -> int:
        """What a loop of known length costs, measured once with a program's image.

        Raises DeviceError for a board that does not match its file, WireError if the wire keeps breaking.
        """
        if (lost := self._believe(program)) is not None or self._counted is None:
            raise WireError(str(lost))
        return self._counted

    def _believe(self, program: Artifact) -> Failure | None:
        """Check the board once. Returns the wire's failure if it keeps breaking."""
        lost: Failure | None = None
        for _ in range(CHECKS):
            if self._counted is not None or self._closing.is_set():
                return CLOSED if self._closing.is_set() else None
            wire = self._ready()
            try:
                self._counted, lost = self._check(wire, program), None
            except WireError as error:
                lost = self._lost(error)
        return lost

    def _check(self, wire: Wire, program: Artifact) -> int:
        image = self._image(program)
        try:
            check_core(wire, self._board)
            check_memories(wire, self._board)
            if self._board.code.flash:
                self._flash.check(wire)
            self.doubt()
            asking = self._load(wire, image, program, asked_of(self._board, self._heap(image)))
            return cost_over(wire, self._board, image, asking, self._answer_room(image))
        except WireError:
            raise
        except DeviceError:
            self.doubt()
            self._start_anew(wire)
            raise

    def place(self, path: Path) -> str:
        """See `Transport`. Raises DeviceError if it does not fit in memory."""
        if path not in self._files:
            content = np.load(path, allow_pickle=False).tobytes()
            try:
                self._files[path] = Segment(self._places.take(len(content)), content)
            except NoRoom:
                what = f"asked to measure with the values of {path} on the board {self._board.name}"
                raise DeviceError(f"{what}: {len(content)} bytes do not fit in its {self._board.data.size} bytes of memory") from None
        return f"{self._files[path].address:x} {len(self._files[path].content):x}"

    def forget(self, kept: str) -> None:
        """See `Transport`."""
        self._copies.pop(kept, None)
        if (gone := self._kept.pop(kept, None)) is not None:
            self._places.give_back(gone.start)

    def make_room(self) -> None:
        """Free memory: outputs of references are recomputed, or written again, when needed."""
        for one in self._kept.values():
            self._places.give_back(one.start)
        self._kept = {name: replace(one, there=False, start=0) for name, one in self._kept.items()}

    def doubt(self) -> None:
        """Stop trusting the memory."""
        self._flash.forget()
        self._doubt_ram()

    def _doubt_ram(self) -> None:
        self._loader.forget()
        self._kept = {name: replace(one, there=False) for name, one in self._kept.items()}

    def interrupt(self) -> None:
        """Interrupt the threads that wait for the board; may be called from any thread, with `closing` set."""
        if (wire := self._wire) is not None:
            wire.close()

    def close(self) -> None:
        """Release the board."""
        self._disconnect()
        self._kept.clear()
        self._copies.clear()
        self._files.clear()
        self._places = Places(self._board.data.start, self._board.heap_end)

    def _prepare(self, wire: Wire, program: Artifact, image: Image, mode: str, kept: str, recipe: str, limits: Limits) -> Failure | None:
        """Allocate the place of a reference's outputs, or recompute those a trial has lost."""
        if kept == "-":
            return None
        try:
            if mode == "reference":
                self.forget(kept)
                size = kept_bytes(program)
                self._kept[kept] = _Kept(program, image, recipe, limits, self._places.take(size), size, False)
                return None
            one = self._kept[kept]
            if not one.start:
                one = self._kept[kept] = replace(one, start=self._places.take(one.size))
        except NoRoom:
            self.short = True
            return NO_ROOM
        return None if one.there or kept in self._copies else self._make_again(wire, kept, one)

    def _make_again(self, wire: Wire, kept: str, one: _Kept) -> Failure | None:
        asked = BoardRequest("reference", one.text, one.recipe, False, self._heap(one.image), self._board.ticks(one.limits.seconds))
        asking = self._load(wire, one.image, one.program, asked)
        ended = self._ran(wire, one.image, "reference", kept, one.limits, wire.traffic, asking)
        failure = answer_of(ended).failure
        if failure is None or failure.kind in ("link_lost", "reset", "machine"):
            return failure
        return Failure("machine", f"the reference outputs were gone from the board, and computing them again failed: {failure}")

    def _copy(self, wire: Wire, kept: str) -> None:
        """Copy a reference's outputs here, in whole blocks, if they arrive as the board has them."""
        one = self._kept[kept]
        size = -(-one.size // BLOCK) * BLOCK
        self._loader.changed(one.start, one.start + size)
        with suppress(WireError):
            content = wire.read(one.start, size)
            if memory_sum([Segment(one.start, content[: one.size])], 0) == one.sum:
                self._copies[kept] = content

    def _image(self, program: Artifact) -> Image:
        """The image of a program, with only the parts that are written to the board."""
        image = read_image(program.path)
        ram, flash = parts_of(image.segments, self._board)
        return replace(image, segments=(*ram, *flash))

    def _heap(self, image: Image) -> tuple[int, int]:
        return image.symbols["ansor_free"], self._places.low if self._kept or self._files else self._board.heap_end

    def _load(self, wire: Wire, image: Image, program: Artifact, asked: BoardRequest) -> BoardInput:
        """Load everything the run needs. What programs overwrite is written each time."""
        values = [one for one in self._files.values() if f" {one.address:x} {len(one.content):x}\n" in asked.recipe]
        asking = told(image, program, asked, values)
        ram, flash = parts_of(image.segments, self._board)
        if rewritten := self._flash.load(wire, flash):
            self._flash_bytes += sum(len(one.content) for one in rewritten)
            self._doubt_ram()
        self._loader.load(wire, ram)
        copies = [Segment(self._kept[name].start, copy) for name, copy in self._copies.items() if self._kept[name].text == asked.kept]
        for one in (*values, *copies):
            written = self._loader.restore(wire, one) if self._board.code.flash else self._loader.load(wire, [one])
            self._tensor_bytes += sum(max(0, min(part.end, one.end) - part.address) for part in written)
        for part in (*asking.parts, Segment(image.symbols["ansor_answer"], bytes(ANSWER_HEAD))):
            wire.write(part.address, part.content)
        self._loader.changed(*asked.heap)
        return asking

    def _ran(self, wire: Wire, image: Image, mode: str, kept: str, limits: Limits, before: Traffic, asking: BoardInput) -> Ended:
        """Run the loaded program."""
        watched = self._board.watchdog.kind and limits.seconds < GRACE_SECONDS * 100
        self._spoiled, began = False, time.monotonic()
        try:
            stopped = wire.execute(image.entry, image.symbols["ansor_stop"] & ~1, limits.seconds + (GRACE_SECONDS if watched else 0.0))
            text = answer_at(wire, image.symbols["ansor_answer"], self._answer_room(image)) if stopped.reason == "stop" else None
            said = said_in(text, asking.nonce) if text else None
            if said is None:
                self._spoiled = stopped.reason != "timeout" or not self._as_written(wire, image, asking)
        except WireError as error:
            return Ended("", self._lost(error))
        if said is not None:
            self._spoiled = said.memory != asking.sum or (mode == "trial" and kept != "-" and said.kept != self._kept[kept].sum)
        ended = self._told(stopped, text, said, image, limits)
        if mode == "trial" and ended.failure is None and time.monotonic() - began >= self._board.overflow_seconds:
            took = f"it took {time.monotonic() - began:.3g} s, and the counter overflows after {self._board.overflow_seconds:.3g} s"
            ended = Ended("", Failure("timeout", f"{took}: the count is unreliable"))
        if ended.failure is not None:
            if mode == "reference" and ended.failure.kind == "memory" or kept != "-" and ended.failure.kind == "memory":
                self.short = True
            self.doubt()
        elif mode == "reference" and said is not None:
            self._kept[kept] = replace(self._kept[kept], there=True, sum=said.kept)
            if self._board.code.flash:
                self._copy(wire, kept)
        if stopped.reason != "stop":
            self._start_anew(wire)
        return replace(ended, counters={**ended.counters, **self._traffic(wire, before)})

    def _as_written(self, wire: Wire, image: Image, asking: BoardInput) -> bool:
        """Whether code and request are still as written. For programs that ended without reporting it."""
        return all(wire.read(one.address, len(one.content)) == one.content for one in (*standing(image), *asking.parts))

    def _answer_room(self, image: Image) -> int:
        end = min((one for name, one in image.symbols.items() if name == "ansor_data_end"), default=self._board.heap_end)
        return max(0, end - image.symbols["ansor_answer"] - ANSWER_HEAD)

    def _told(self, stopped: Stopped, text: str | None, said: BoardAnswer | None, image: Image, limits: Limits) -> Ended:
        where = "" if stopped.pc is None else f", at pc 0x{stopped.pc:x}"
        if stopped.reason == "timeout":
            why = f"; {stopped.cause}" if stopped.cause else ""
            return Ended("", with_places(Failure("timeout", f"still running after {limits.seconds:.3g} s{where}{why}"), image))
        if stopped.reason == "trap":
            return Ended("", with_places(Failure("trap", f"{stopped.cause or 'the processor stopped'}{where}"), image))
        if text is None:
            return Ended("", Failure("crash", "it ended without an answer"))
        if not text:
            return Ended("", TOO_MUCH)
        if said is None:
            return Ended("", Failure("exit", f"ended without an answer with a correct checksum; it said: {clip(text, 300)!r}"))
        failure = answer_of(Ended(said.line)).failure or (CHANGED if self._spoiled else None)
        return Ended(said.line, failure and with_places(failure, image), counters_of(said, self._board, self._unit.name))

    def _traffic(self, wire: Wire, before: Traffic) -> Mapping[str, float]:
        now = wire.traffic
        flash = {"flash_bytes_written": float(self._flash_bytes)} if self._board.code.flash else {}
        return {
            **flash,
            "tensor_bytes_sent": float(self._tensor_bytes),
            "wire_bytes_sent": float(now.sent - before.sent),
            "wire_bytes_received": float(now.received - before.received),
            "wire_bytes_overhead": float(now.overhead - before.overhead),
            "wire_packets_repeated": float(now.repeated - before.repeated),
            "wire_packets_damaged": float(now.damaged - before.damaged),
            "resets": float(self._resets),
        }

    def _start_anew(self, wire: Wire) -> None:
        """Reset after a program was halted: the board's devices may be in any state."""
        if wire.abilities.resets:
            self._resets += 1
            try:
                wire.reset()
            except WireError:
                self._disconnect()

    def _lost(self, error: WireError) -> Failure:
        """What a broken wire means for the program."""
        self._disconnect()
        if self._closing.is_set():
            return CLOSED
        if isinstance(error, BoardReset):
            self._resets += 1
            return Failure("reset", f"the board restarted while the program ran: {error}")
        return Failure("link_lost", str(error))

    def _ready(self) -> Wire:
        """The wire. The first one opens at once or not at all. A broken one is reopened and the board reset, until the board had time to come back."""
        deadline = time.monotonic() + (RETURN_SECONDS if self._opened else 0.0)
        while self._wire is None:
            try:
                wire = self._opener()
                self._wire = wire
                if self._opened and wire.abilities.resets:
                    self._resets += 1
                    wire.reset()
            except WireError:
                self._disconnect()
                if time.monotonic() >= deadline or self._closing.wait(PAUSE_SECONDS):
                    raise
        self._opened = True
        return self._wire

    def _disconnect(self) -> None:
        wire, self._wire = self._wire, None
        self.doubt()
        if wire is not None:
            with suppress(WireError):
                wire.close()


def kept_bytes(reference: Artifact) -> int:
    """Bytes of a reference's kept outputs, as trial.c writes them: 8 for each float, and 4 for how far it moves."""
    outputs = [one for one in reference.source.arguments if one.role == "output"]
    sizes = [one.physical_size * (12 if np.dtype(one.dtype).kind == "f" else np.dtype(one.dtype).itemsize) for one in outputs]
    return 8 * (HEADER_WORDS + ENTRY_WORDS * len(outputs)) + sum(-(-size // 64) * 64 for size in sizes)
