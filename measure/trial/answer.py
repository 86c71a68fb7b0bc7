"""A trial program's answer: one JSON object, read into frozen values. Anything else raises ValueError."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ansor.measure.failure import KINDS, Failure


@dataclass(frozen=True, slots=True)
class Element:
    """The element at flat index `at`: `found` in the output, `expected` in the reference."""

    at: int
    found: float
    expected: float


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """One output compared with the reference's. `place`: the argument's; `worst`: the largest difference as a share of the allowed one.

    `example`: the first wrong element, or the worst.
    """

    place: int
    size: int
    wrong: int
    unwritten: int
    worst: float
    allowed: float
    example: Element


@dataclass(frozen=True, slots=True, eq=False)
class OutputSums:
    """Sums of an output, one row per block: signed sums [blocks, count], magnitudes [blocks], and marks of non-finite elements [blocks].
    Non-float outputs have a hash and no blocks."""

    place: int
    block: int
    sums: NDArray[np.float64]
    magnitudes: NDArray[np.float64]
    odd: NDArray[np.uint64]
    hash: int | None = None


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """An output of the reference kept on the device."""

    size: int
    nan: int
    infinite: int
    sensitivity: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A program's answer. costs: seconds of each repeat; later: outputs were right at first but wrong after repeated calls."""

    failure: Failure | None = None
    costs: tuple[float, ...] = ()
    cut_short: bool = False
    later: bool = False
    checks: tuple[OutputCheck, ...] = ()
    sums: tuple[OutputSums, ...] = ()
    kept: tuple[KeptOutput, ...] = ()
    input_scale: float = 1.0


def read_answer(text: str) -> Answer:
    """Parse the answer in `text`. Raises ValueError for anything else."""
    data = _object(_parsed(text))
    if "failure" in data:
        kind, said = _list(data["failure"], 2)
        if kind not in KINDS:
            _refused("a kind of failure", kind)
        return Answer(Failure(_text(kind), _text(said)))
    if "reference" in data:
        reference = _object(data["reference"])
        kept = tuple(_kept(_object(one)) for one in _list(_field(reference, "outputs")))
        return Answer(kept=kept, input_scale=_double(_field(reference, "input_scale")), sums=_all_sums(data))
    costs = tuple(_double(one) for one in _list(_field(data, "costs")))
    if not all(0 <= cost < float("inf") for cost in costs):
        _refused("costs", costs)
    checks = tuple(_check(_object(one)) for one in _list(_field(data, "check")))
    return Answer(None, costs, _field(data, "cut_short") is True, _field(data, "later") is True, checks, _all_sums(data))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("a trial program's answer is nested too deep") from error


def _check(data: dict[str, object]) -> OutputCheck:
    place, size, wrong, unwritten, at = (_count(data, name) for name in ("argument", "size", "wrong", "unwritten", "at"))
    found, expected = (_number(_field(data, name)) if size else 0.0 for name in ("found", "expected"))
    return OutputCheck(place, size, wrong, unwritten, _double(_field(data, "worst")), _double(_field(data, "allowed")), Element(at, found, expected))


def _kept(data: dict[str, object]) -> KeptOutput:
    return KeptOutput(_count(data, "size"), _count(data, "nan"), _count(data, "infinite"), _double(_field(data, "sensitivity")))


def _all_sums(data: dict[str, object]) -> tuple[OutputSums, ...]:
    return tuple(_sums(_object(one)) for one in _list(_field(data, "sums")))


def _sums(data: dict[str, object]) -> OutputSums:
    place, block, count = _count(data, "argument"), _count(data, "block"), _count(data, "count")
    none = np.empty(0)
    if "hash" in data:
        return OutputSums(place, block, np.empty((0, count)), none, none.astype(np.uint64), int(_words(data["hash"], 1)[0, 0]))
    words = _words(_field(data, "blocks"), count + 2)
    return OutputSums(place, block, words[:, :count].view(np.float64), words[:, count].copy().view(np.float64), words[:, count + 1].copy())


def _words(text: object, columns: int) -> NDArray[np.uint64]:
    if not isinstance(text, str) or columns > 66 or re.fullmatch("[0-9a-f]*", text) is None or len(text) % (16 * columns):
        _refused("hexadecimal digits", text)
    return np.frombuffer(bytes.fromhex(text), ">u8").astype(np.uint64).reshape(-1, columns)


def _refused(wanted: str, found: object) -> NoReturn:
    raise ValueError(f"a trial program's answer has {found!r:.80} instead of {wanted}")


def _object(data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        _refused("an object", data)
    return data


def _field(data: dict[str, object], name: str) -> object:
    if name not in data:
        _refused(f"a field {name!r}", list(data))
    return data[name]


def _list(data: object, length: int | None = None) -> list[object]:
    if not isinstance(data, list) or length is not None and len(data) != length:
        _refused("a list", data)
    return data


def _text(data: object) -> str:
    if not isinstance(data, str):
        _refused("a string", data)
    return data


def _count(data: dict[str, object], name: str) -> int:
    number = _field(data, name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 63:
        _refused(f"a count {name!r}", number)
    return number


def _double(data: object) -> float:
    if not isinstance(data, str) or re.fullmatch("x[0-9a-f]{16}", data) is None:
        _refused("the bits of a double", data)
    return float(struct.unpack(">d", bytes.fromhex(data[1:]))[0])


def _number(data: object) -> float:
    return data if isinstance(data, int) and not isinstance(data, bool) else _double(data)
