"""What an image is told, as bytes of its memory, and what it answers, as text: the two ends of `ansor/codegen/image/bare.h`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansor.codegen.artifact import Artifact
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import Image, Segment
from ansor.codegen.image.harness import ASKED_BYTES
from ansor.codegen.trial.manifest import MANIFEST
from ansor.errors import MeasureError
from ansor.measure.failure import Failure

ALONE = 1
STACK = "stack_bytes_used"
_NOTE = re.compile(r"^board ((?:[0-9a-f]+ )*)stack ([0-9a-f]+)$", re.MULTILINE)
_ADDRESS = re.compile(r"\bpc 0x([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One run of an image. kept: the place of a reference's outputs, "-" for none; alone: whether the answer goes to the console, and the machine ends itself;
    heap, limit: where buffers may be, from and to, and ticks of the watchdog, 0 for none."""

    mode: str
    kept: str
    recipe: str
    alone: bool
    heap: tuple[int, int]
    limit: int = 0


def memory_of(image: Image, artifact: Artifact, asked: Asked) -> tuple[Segment, ...]:
    """What has to be in memory before the run, beside the image. Raises MeasureError for a recipe that is too long."""
    text = f"{asked.mode} {asked.kept}\n{asked.recipe}".encode() + b"\0"
    if len(text) > ASKED_BYTES:
        what = f"asked to measure a program of {len(artifact.source.arguments)} arguments on a board"
        raise MeasureError(f"{what}: what it is told has {len(text)} bytes, and there is room for {ASKED_BYTES}; measure it on the device local")
    manifest = image.symbols[f"{artifact.symbol}_{MANIFEST}"]
    words = (ALONE if asked.alone else 0, manifest, *asked.heap, asked.limit)
    return Segment(image.symbols["ansor_control"], b"".join(one.to_bytes(8, "little") for one in words)), Segment(image.symbols["ansor_asked"], text)


def answer_line(text: str) -> str:
    """The answer in what a program said: its last failure, which may stand behind a part of an answer, or the one line that is an answer.

    There is none where an answer or the note behind it stands twice: one of them is not the harness's."""
    found = [line for line in text.splitlines() if line.startswith("{")]
    if found and found[-1].startswith('{"failure"'):
        return found[-1]
    return found[0] if len(found) == 1 and len(_NOTE.findall(text)) == 1 else ""


def counters_of(text: str, board: Board, unit: str) -> Mapping[str, float]:
    """What the board counted of the marked call, under the name of its unit, and how much of the stack was used."""
    note = _NOTE.search(text)
    if note is None:
        return {}
    marks, found = [int(word, 16) for word in note[1].split()], {STACK: float(int(note[2], 16))}
    if len(marks) == 4:
        nothing, call = (round((marks[at + 1] - marks[at]) * board.counter.scale) for at in (0, 2))  # each: a rounded tick has to be lost before they meet
        found[unit] = float(call - nothing) + 1
    return found


def with_places(failure: Failure, image: Image) -> Failure:
    """The failure with names beside the addresses in its text."""
    return Failure(failure.kind, _ADDRESS.sub(lambda found: f"{found[0]} ({image.place(int(found[1], 16))})", failure.text))
