"""Runs images on a board behind a wire: brings what differs, starts it, reads its answer. Tensors stay on the board, and so do the outputs of references."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, Segment, read_image
from ansor.errors import DeviceError
from ansor.measure.boards.asking import Asked, answer_line, counters_of, memory_of
from ansor.measure.boards.shadow import Shadow
from ansor.measure.failure import Failure
from ansor.measure.trial.transport import Ended, Limits
from ansor.measure.wire.link import BoardReset
from ansor.measure.wire.opening import open_wire
from ansor.measure.wire.wire import Stopped, Wire, WireError
from ansor.support.text import clip
from ansor.targets.unit import Unit

DONE = 2  # of bare.h
HEAD = 24  # bytes of an answer before its text
ALIGN = 64
WATCHDOG_SECONDS = 1.0  # more than the board's own watchdog has, which says where the program was
RETURN_SECONDS = 10.0  # that a board which was there may be away
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Kept:
    """The outputs of a reference on the board: where, and how they are made again."""

    start: int
    size: int
    image: Image
    program: Artifact
    recipe: str
    limits: Limits


class WireTransport:
    """Images on one board. A wire that broke is opened again for the next one; a board that started anew is loaded again."""

    def __init__(self, board: Board, unit: Unit, text: str, opened: Callable[[str], Wire] = open_wire) -> None:
        self._board, self._unit, self._text, self._open = board, unit, text, opened
        self._wire: Wire | None = None
        self._shadow = Shadow()
        self._kept: dict[str, Kept] = {}
        self._there: set[str] = set()
        self._files: dict[str, tuple[Path, int]] = {}
        self._tensor_bytes = 0
        self._resets = 0
        self._known = False
        self.closing = False

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`."""
        tensors = self._tensor_bytes
        try:
            image = read_image(program.path)
            if mode == "reference":
                room = _size_of_outputs(program)
                self._kept[kept] = Kept(self._place_for(image, kept, room), room, image, program, recipe, limits)
            elif kept != "-" and kept not in self._there:
                again = self._again(kept)
                if again is not None:
                    return again
            ended = self._told(image, program, mode, kept, recipe, limits)
        except WireError as error:
            return Ended("", self._lost(error))
        counters = {**ended.counters, "tensor_bytes_sent": float(self._tensor_bytes - tensors), "resets": float(self._resets)}
        return Ended(ended.output, ended.failure, counters)

    def place(self, path: Path) -> str:
        """Values go to the board's memory before each run: their place is found then."""
        token = f"file{len(self._files)}:{path}"
        known = next((name for name, (other, _) in self._files.items() if other == path), None)
        if known is None:
            self._files[token] = path, np.load(path, mmap_mode="r", allow_pickle=False).nbytes
        return known or token

    def forget(self, kept: str) -> None:
        """See `Transport`."""
        self._kept.pop(kept, None)
        self._there.discard(kept)

    def end(self) -> None:
        """Let what runs end; from any thread."""
        self.closing = True
        wire = self._wire
        if wire is not None:
            wire.close()

    def _again(self, kept: str) -> Ended | None:
        """Makes what a candidate is compared with once more; None when it is there."""
        made = self._kept[kept]
        ended = self._told(made.image, made.program, "reference", kept, made.recipe, made.limits)
        return ended if ended.failure is not None else None

    def _told(self, image: Image, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        wire = self._opened()
        before = wire.traffic
        recipe, values, end = self._with_values(recipe)
        keep = self._kept.get(kept)
        place = f"{keep.start:x} {keep.size:x}" if keep else "-"
        end = min([end, *(self._kept[name].start for name in {*self._there, kept} & {*self._kept})])
        asked = Asked(mode, place, recipe, False, (image.symbols["ansor_free"], end), self._board.ticks(limits.seconds))
        self._shadow.bring(wire, image.segments)
        for segment in (*values, *memory_of(image, program, asked), Segment(image.symbols["ansor_answer"], bytes(HEAD))):
            wire.write(segment.address, segment.content)
        self._tensor_bytes += sum(len(one.content) for one in values)
        stopped = wire.execute(image.entry, image.symbols["ansor_stop"], limits.seconds + WATCHDOG_SECONDS)
        ended = self._answer(wire, image, stopped)
        after = wire.traffic
        traffic = {"wire_bytes_sent": after.sent - before.sent, "wire_bytes_received": after.received - before.received,
                   "wire_packets_repeated": after.repeated - before.repeated, "wire_packets_damaged": after.damaged - before.damaged}  # fmt: skip
        if ended.failure is not None or '{"failure"' in ended.output[:12]:
            self._shadow.forget()  # it may have written anywhere
            self._there.clear()
        elif mode == "reference":
            self._there.add(kept)
        return Ended(ended.output, ended.failure, {**ended.counters, **{name: float(count) for name, count in traffic.items()}})

    def _answer(self, wire: Wire, image: Image, stopped: Stopped) -> Ended:
        where = f" at pc {image.place(stopped.pc)}" if stopped.pc is not None else ""
        if stopped.reason == "timeout":
            return Ended("", Failure("timeout", f"it does not end; halted{where}"))
        head = wire.read(image.symbols["ansor_answer"], HEAD)
        state, size, lost = (int.from_bytes(head[at : at + 8], "little") for at in (0, 8, 16))
        if stopped.reason == "trap":
            return Ended("", Failure("trap", f"{stopped.cause or 'the processor stopped'}{where}"))
        if state != DONE or size > 1 << 20:
            return Ended("", Failure("crash", f"the program ended without an answer (state {state:#x}){where}"))
        said = wire.read(image.symbols["ansor_answer"] + HEAD, size).decode(errors="replace")
        if lost:
            return Ended("", Failure("exit", f"the answer is {lost} bytes longer than the board has room for; it begins {clip(said, 80)!r}"))
        line = answer_line(said)
        if not line:
            return Ended("", Failure("exit", f"the program ended without an answer; it said: {clip(said, 300)!r}"))
        return Ended(line, None, counters_of(said, self._board, self._unit.name))

    def _with_values(self, recipe: str) -> tuple[str, list[Segment], int]:
        """The recipe with addresses in the place of files, what has to be there, and where the memory for buffers ends."""
        end, values = self._board.heap_end, []
        for token, (path, size) in self._files.items():
            if f" {token}\n" in recipe:
                end = (end - size) // ALIGN * ALIGN
                values.append(Segment(end, np.load(path, allow_pickle=False).tobytes()))
                recipe = recipe.replace(f" {token}\n", f" {end:x} {size:x}\n")
        return recipe, values, end

    def _place_for(self, image: Image, kept: str, size: int) -> int:
        """Where the outputs of a reference stay: below those that are there. Where they would take more than half of the memory, older ones go."""
        files = sum(-(-size // ALIGN) * ALIGN + ALIGN for _, size in self._files.values())
        end, free = self._board.heap_end - files, image.symbols["ansor_free"]
        others = [name for name in self._kept if name != kept and name in self._there]
        low = min([end, *(self._kept[name].start for name in others)])
        if (low - size) - free < (end - free) // 2:
            for name in others:
                self._there.discard(name)
            low = end
        return (low - size) // ALIGN * ALIGN

    def _opened(self) -> Wire:
        """The wire; one that broke is opened again, until a board had time to come back."""
        deadline = time.monotonic() + (RETURN_SECONDS if self._known else 0.0)
        while self._wire is None:
            try:
                self._wire = self._open(self._text)
            except DeviceError as error:
                if time.monotonic() >= deadline or self.closing:
                    raise DeviceError(f"asked to measure on {self._text}: no board answers there ({error})") from error
                time.sleep(PAUSE_SECONDS)
        self._known = True
        return self._wire

    def _lost(self, error: WireError) -> Failure:
        """What a wire that broke means for the program that ran: nobody knows what became of it."""
        wire, self._wire = self._wire, None
        self._shadow.forget()
        self._there.clear()
        if wire is not None:
            wire.close()
        if self.closing:
            return Failure("machine", "the device was closed while the program ran")
        if isinstance(error, BoardReset):
            self._resets += 1
            return Failure("reset", f"the board started anew while the program ran: {error}")
        return Failure("link_lost", f"the wire broke while the program ran: {error}")


def _size_of_outputs(reference: Artifact) -> int:
    """Bytes of the file of outputs that a reference keeps (trial.c): a header, an entry for each output, the contents."""
    outputs = [one for one in reference.source.arguments if one.role == "output"]
    sizes = [one.physical_size * (8 if np.dtype(one.dtype).kind == "f" else np.dtype(one.dtype).itemsize) for one in outputs]
    return 8 * (4 + 8 * len(outputs)) + sum(-(-size // ALIGN) * ALIGN for size in sizes)


