"""Bits of a board's memory that flip between trials, and during one: no wrong result, no wrong cost and no wrong failure is believed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.image.elf import Image, Segment, read_image
from ansor.measure.boards import wire_transport
from ansor.measure.boards.asking import _NOTE, BoardAnswer
from ansor.measure.boards.checksums import memory_sum
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.failure import Failure
from ansor.measure.timing import TimingOptions
from ansor.measure.wire.opening import open_wire
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.testing.device_contract import DeviceContract, sums
from tests.measure.boards.damage import DamagedBoard, Range
from tests.measure.boards.simulated import qemu_gdb

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
TIMING = TimingOptions(timeout_seconds=0.03)
FLIPS = 10  # of each kind of place


@dataclass
class Setting:
    """A board whose memory is damaged, a right program and a wrong one, and the place where outputs of their reference are."""

    wire: DamagedBoard
    device: BoardDevice
    right: Job
    wrong: Job

    def places(self, what: str) -> list[Range]:
        image = read_image(self.right.artifact.path)
        return {"code": _code(image), "kept": self._kept(), "told": _told(image), "values": self._values()}[what]

    def _kept(self) -> list[Range]:
        return [(one.start, one.start + one.size) for one in self.device._transport._kept.values() if one.there]

    def _values(self) -> list[Range]:
        return [(one.address, one.end) for one in self.device._transport._files.values()]


def _code(image: Image) -> list[Range]:
    """Without the table of vectors: a Cortex-M whose handlers are gone locks up, which ends QEMU."""
    return [(one.address, one.end) for one in image.segments if one.address]


def _told(image: Image) -> list[Range]:
    control, asked = image.symbols["ansor_control"], image.symbols["ansor_asked"]
    return [(control, control + 72), (asked, asked + 200)]


@contextmanager
def damaged(board: str, folder: Path | None = None) -> Iterator[Setting]:
    """`folder`: for values of an argument that are given."""
    contract = DeviceContract()
    contract.target = f"micro -board={board}"
    source = random.Random(3)
    with Builder(parse_target(contract.target).toolchain(), "image", jobs=1, timeout=120) as builder, qemu_gdb(board) as (text, _):
        task, right, reference = contract._built(builder, sums(), sums())
        _, wrong, _ = contract._built(builder, sums(), sums(-1))
        if folder is not None:
            one = next(one for one in right.source.arguments if one.role == "input")
            np.save(folder / "values.npy", np.random.default_rng(1).uniform(-1, 1, one.shape).astype(one.dtype))
            task = replace(task, files=((one.name, str(folder / "values.npy")),))
        wire = DamagedBoard(open_wire(text), source)
        device = BoardDevice(text, find_board(board), lambda _: wire)
        yield Setting(wire, device, Job(task, right, reference, TIMING), Job(task, wrong, reference, TIMING))
        device.close()
        wire.inner.close()


@pytest.mark.parametrize("board", ["mps2-an386", "qemu-riscv32"])
def test_bits_that_flip_change_no_result(board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In code, in what is told, in outputs of the reference and in values; one bit at a time, or three."""
    monkeypatch.setattr(wire_transport, "GRACE_SECONDS", 0.5)
    with damaged(board, tmp_path) as setting:
        first, wrong = setting.device.run(setting.right), setting.device.run(setting.wrong)
        assert isinstance(first, Observation) and isinstance(wrong, Failure) and wrong.kind == "wrong_answer"
        again = 0
        for what in ("code", "kept", "told", "values"):
            for number in range(FLIPS):
                clean = setting.device.run(setting.right)
                assert isinstance(clean, Observation) and clean.costs == first.costs
                setting.wire.before, setting.wire.flips, before = setting.places(what), 1 + 2 * (number % 2), setting.wire.runs
                seen = setting.device.run(setting.wrong if number % 5 == 4 else setting.right)
                if number % 5 == 4:
                    assert isinstance(seen, Failure) and seen.kind == "wrong_answer", (what, number, seen)
                else:
                    assert isinstance(seen, Observation) and seen.costs == first.costs, (what, number, seen)
                    again += setting.wire.runs > before + 1
        assert again > 2 * FLIPS  # most of what flipped was noticed by its sum, and the program ran once more


def test_an_answer_that_is_damaged_before_it_is_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs, marks and all: the program runs once more."""
    monkeypatch.setattr(wire_transport, "GRACE_SECONDS", 0.5)
    with damaged("qemu-riscv32") as setting:
        first = setting.device.run(setting.right)
        assert isinstance(first, Observation)
        answer = read_image(setting.right.artifact.path).symbols["ansor_answer"]
        for _ in range(3 * FLIPS):
            setting.wire.after, before = [(answer, answer + 300)], setting.wire.runs
            seen = setting.device.run(setting.right)
            assert isinstance(seen, Observation) and seen.costs == first.costs and setting.wire.runs <= before + 3


def test_without_the_sums_such_results_would_be_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the other tests do is enough to let a wrong program pass."""
    monkeypatch.setattr(wire_transport, "GRACE_SECONDS", 0.5)
    with damaged("qemu-riscv32") as setting:
        assert isinstance(setting.device.run(setting.right), Observation)
        start = read_image(setting.right.artifact.path).symbols["ansor_answer"]
        said = setting.wire.inner.read(start, 1000)
        marks = (start + said.index(b"board ") + 6, start + said.index(b" stack "))
        monkeypatch.setattr(wire_transport, "said_in", _believed)
        seen = []
        for _ in range(FLIPS):
            setting.wire.after = [marks]
            seen.append(setting.device.run(setting.right))
        assert len({one.costs for one in seen if isinstance(one, Observation)}) > 1


def _believed(text: str, nonce: int) -> object:
    """What a run said, whatever its sum is."""
    note = _NOTE.search(text)
    if note is None:
        return None
    return BoardAnswer(text.partition("\n")[0], tuple(int(word, 16) for word in note[1].split()), int(note[2], 16), int(note[3], 16), int(note[4], 16))


def test_a_word_that_changed_changes_the_sum() -> None:
    source = random.Random(2)
    content = source.randbytes(402)
    right = memory_sum([Segment(0, content)], 9)
    for bit in range(8 * len(content)):
        other = bytearray(content)
        other[bit // 8] ^= 1 << bit % 8
        assert memory_sum([Segment(0, bytes(other))], 9) != right
    assert memory_sum([Segment(0, content)], 10) != right and memory_sum([Segment(0, content[4:] + content[:4])], 9) != right
