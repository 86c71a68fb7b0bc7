"""A trial program's input: lines of text, read by `recipe.h`. Arguments are named by their place; a double is "x" and the 16 hexadecimal digits of its bits.

    ansor-trial 1                                   the first line
    fill PLACE DTYPE KEY LOW HIGH                   a float argument: from the generator, in [LOW, HIGH)
    fill PLACE DTYPE KEY FIRST COUNT                any other: integers in [FIRST, FIRST + COUNT)
    file PLACE DTYPE BYTES PATH                     logical contents, from the last BYTES bytes of a file
    stored PLACE BYTES PATH                         buffer contents, from the last BYTES bytes of a file
    check PLACE SLOT GROWTH EPS TINY STATED         an output, and the kept output to compare it with; `ansor.measure.verify` explains the bound
    sums PLACE BLOCK COUNT KEY                      an output's signed sums, COUNT per BLOCK of elements
    moves NUMBER KEY EPS SECONDS                    how often a reference runs on inputs moved by EPS of themselves, unless it takes SECONDS
    time CLOCK NUMBER REPEAT MORE FLUSH MIN CUT CONTENDER LIMIT BEST     `TimingOptions`; without it nothing is timed
    count WARM                                      marks around a call, after WARM others, for counting instructions or cycles
    threads NUMBER, outputs PATH                    threads of a call; a file that gets all outputs of a trial
    end                                             the last line
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ansor.codegen.source import Argument, CSource
from ansor.measure.timing import TimingOptions
from ansor.measure.trial.fill import Fill, key_of
from ansor.measure.verify import growth

HEAD = "ansor-trial 1"
REPEATS = 256  # the most repeats a program has room for
MOVES, MOVE_SECONDS = 3, 10.0  # runs of a reference on moved inputs, as in `ansor.measure.worker`


@dataclass(frozen=True, slots=True)
class File:
    """An argument's values on the device: the last `size` bytes of a file hold its logical contents."""

    dtype: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An argument's buffer on the device: the last `size` bytes of a file are its contents."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SumsRequest:
    """Signed sums of an output: `count` per `block` of elements, with signs from the key."""

    name: str
    block: int
    count: int
    key: int


Source = Fill | File | Stored


def recipe_text(lines: Iterable[str]) -> str:
    """A whole recipe."""
    return "\n".join([HEAD, *lines, "end", ""])


def input_lines(arguments: Sequence[Argument], sources: Mapping[str, Source]) -> list[str]:
    """How to fill inputs and constants."""
    return [_input(place, sources[one.name]) for place, one in enumerate(arguments) if one.role != "output"]


def check_lines(source: CSource, outputs: Sequence[Argument], reduction: int, rounding: str, measured: Mapping[str, float] | None = None) -> list[str]:
    """The bound of each output of a candidate. `outputs`: of the reference, in its order; `measured`: growth of errors, by output (`verify.growth`)."""
    known = measured or {}
    slots = {one.name: slot for slot, one in enumerate(outputs)}
    return [
        f"check {place} {slots[one.name]} {_bound(one.dtype, reduction, rounding, known.get(one.name, 0.0))} {double(source.tolerance)}"
        for place, one in enumerate(source.arguments) if one.role == "output" and one.name in slots
    ]  # fmt: skip


def sums_lines(arguments: Sequence[Argument], requests: Sequence[SumsRequest]) -> list[str]:
    """The requested sums."""
    places = {one.name: place for place, one in enumerate(arguments)}
    return [f"sums {places[one.name]} {one.block} {one.count} {one.key:016x}" for one in requests]


def moves_line(seed: int, rounding: str, *, slower: float = 1.0) -> str:
    """How a reference measures how far its outputs move. `slower`: how many times slower than a processor the device is."""
    return f"moves {MOVES} {key_of(seed, 'moves'):016x} {double(float(np.finfo(rounding or 'float32').eps))} {double(MOVE_SECONDS * slower)}"


def time_line(options: TimingOptions, best: float | None, wall: bool) -> str:
    """How to time a candidate."""
    repeat = min(options.repeat, REPEATS)
    counts = f"{options.number} {repeat} {min(options.stopping.contender_repeats, REPEATS - repeat)} {options.flush_bytes}"
    shares = (options.min_repeat_ms / 1e3, options.stopping.cut_ratio, options.stopping.contender_ratio, options.timeout_seconds, inf if best is None else best)
    return f"time {'wall' if wall else 'own'} {counts} {' '.join(map(double, shares))}"


def double(value: float) -> str:
    """A double as its bits."""
    return f"x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


def _input(place: int, source: Source) -> str:
    if isinstance(source, Stored):
        return f"stored {place} {source.size} {source.path}"
    dtype = np.dtype(source.dtype)
    name = f"{dtype.kind}{dtype.itemsize}"
    if isinstance(source, File):
        return f"file {place} {name} {source.size} {source.path}"
    limits = f"{double(source.low)} {double(source.high)}" if dtype.kind == "f" else f"{int(source.low)} {source.span:016x}"
    return f"fill {place} {name} {source.key:016x} {limits}"


def _bound(dtype: str, reduction: int, rounding: str, measured: float) -> str:
    if np.dtype(dtype).kind != "f":
        return " ".join([double(0.0)] * 3)
    limits = np.finfo(rounding or dtype)
    return " ".join(map(double, (growth(rounding or dtype, reduction, measured), float(limits.eps), float(limits.tiny))))
