"""The host's side of `ansor/codegen/image/bare.h`: the input of an image, as bytes in its memory, and its answer, as text."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, Segment
from ansor.codegen.image.harness import ASKED_BYTES
from ansor.codegen.trial.manifest import MANIFEST
from ansor.errors import MeasureError
from ansor.measure.boards.checksums import memory_sum, standing, text_sum
from ansor.measure.failure import Failure
from ansor.measure.wire.wire import Wire

ALONE, COUNTS, REGIONS, DONE = 1, 2, 32, 2  # as in bare.h
ANSWER_HEAD = 24  # bytes of an answer in memory before its text: state, size, lost
STACK = "stack_bytes_used"
CHANGED = Failure("out_of_bounds", "the code or the recipe of the trial program had changed when the program ended")
_NOTE = re.compile(r"^board ((?:[0-9a-f]+ )*)stack ([0-9a-f]+) memory ([0-9a-f]+) kept ([0-9a-f]+) sum ([0-9a-f]+)$", re.MULTILINE)
_LINE, _FAILED = re.compile(r"^\{", re.MULTILINE), '{"failure"'
_ADDRESS = re.compile(r"\bpc 0x([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """One run of an image. kept: the place of a reference's outputs, "-" for none; alone: the answer goes to the console, and the machine ends itself;
    counts: run loops of known lengths instead of a candidate.
    heap: where buffers may be, from and to. limit: ticks of the watchdog, 0 for none. nonce: for the checksums."""

    mode: str
    kept: str
    recipe: str
    alone: bool
    heap: tuple[int, int]
    limit: int = 0
    nonce: int = field(default_factory=lambda: secrets.randbits(32))
    counts: bool = False


@dataclass(frozen=True, slots=True)
class BoardInput:
    """The memory written before a run. parts: besides the image; sum: the checksum of all constant memory, which the board reports if it is intact."""

    parts: tuple[Segment, ...]
    sum: int
    nonce: int


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """A run's answer, with a correct checksum. marks: of the counter; memory, kept: checksums of its constant memory and of a reference's kept outputs."""

    line: str
    marks: tuple[int, ...] = ()
    stack: int = 0
    memory: int = 0
    kept: int = 0

    @property
    def failed(self) -> bool:
        """Whether the answer is a failure."""
        return self.line.startswith(_FAILED)


def told(image: Image, artifact: Artifact, asked: BoardRequest, values: Sequence[Segment] = ()) -> BoardInput:
    """What must be in memory before the run, besides the image. values: of arguments, already there. Raises MeasureError for a recipe that is too long."""
    text = f"{asked.mode}\0{asked.kept}\0{asked.recipe}\0".encode()
    if len(text) > ASKED_BYTES:
        what = f"asked to measure a program of {len(artifact.source.arguments)} arguments on a board"
        raise MeasureError(f"{what}: its recipe has {len(text)} bytes, the limit is {ASKED_BYTES}; measure it on the device local")
    manifest, place = image.symbols[f"{artifact.symbol}_{MANIFEST}"], image.symbols["ansor_control"]
    recipe, standing_parts = Segment(image.symbols["ansor_asked"], text), standing(image)
    kept = [0, 0] if asked.kept == "-" else [int(word, 16) for word in asked.kept.split()]
    others = (*standing_parts, *values, recipe)
    assert len(others) < REGIONS, "of bare.h"
    words = [(ALONE if asked.alone else 0) | (COUNTS if asked.counts else 0), manifest, *asked.heap, asked.limit, asked.nonce, *kept, len(others) + 1]
    size = 8 * (len(words) + 2 * (len(others) + 1))
    for at, length in (*((one.address, len(one.content)) for one in others), (place, size)):
        words += [at, length]
    control = Segment(place, b"".join(one.to_bytes(8, "little") for one in words))
    return BoardInput((control, recipe), memory_sum((*others, control), asked.nonce), asked.nonce)


def answer_at(wire: Wire, place: int, room: int) -> str | None:
    """What a program left at `ansor_answer`, which has `room` bytes for text. None if it did not end by itself, '' if the answer did not fit."""
    head = wire.read(place, ANSWER_HEAD)
    state, size, lost = (int.from_bytes(head[start : start + 8], "little") for start in (0, 8, 16))
    if state != DONE or size > room:
        return None
    return "" if lost else wire.read(place + ANSWER_HEAD, size).decode("utf-8", "replace")


def said_in(text: str, nonce: int) -> BoardAnswer | None:
    """The answer in a run's text: the last failure, which may follow part of an answer, or else the one-line answer.

    None if there is neither. Also None if an answer or the note after it appears twice, or their checksum is wrong: it may be damaged, or another run's.
    """
    starts, notes = [found.start() for found in _LINE.finditer(text)], list(_NOTE.finditer(text))
    if not starts or not notes:
        return None
    start, note = starts[-1], notes[-1]
    if not text.startswith(_FAILED, start) and (len(starts) > 1 or len(notes) > 1):
        return None
    if start > note.start() or text_sum(text[start : note.start(5)], nonce) != int(note[5], 16):
        return None
    stack, memory, kept = (int(note[number], 16) for number in (2, 3, 4))
    return BoardAnswer(text[start:].partition("\n")[0], tuple(int(word, 16) for word in note[1].split()), stack, memory, kept)


def counters_of(said: BoardAnswer, board: Board, unit: str) -> Mapping[str, float]:
    """What the board counted for the marked call, under the name of its unit, and the stack bytes used."""
    found, marks = {STACK: float(said.stack)}, said.marks
    if len(marks) == 4:
        nothing, call = (round((marks[at + 1] - marks[at]) * board.counter.scale) for at in (0, 2))  # each is rounded before the subtraction
        found[unit] = float(call - nothing) + 1
    return found


def with_places(failure: Failure, image: Image) -> Failure:
    """The failure with names beside the addresses in its text."""
    return Failure(failure.kind, _ADDRESS.sub(lambda found: f"{found[0]} ({image.place(int(found[1], 16))})", failure.text))
