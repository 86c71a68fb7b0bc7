"""Whole trials on a board whose wire breaks, or whose memory is lost: no wrong result is believed. Several boards, of which one dies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.api import tune_tasks
from ansor.errors import AnsorWarning
from ansor.measure.boards import wire_transport
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.failure import Failure
from ansor.measure.record import load
from ansor.measure.wire.link import BoardReset
from ansor.measure.wire.opening import open_wire
from ansor.measure.wire.wire import Abilities, Stopped, Traffic, Wire, WireError
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.tasks.task import SearchTask
from ansor.testing.device_contract import TIMING, DeviceContract, product, sums
from tests.measure.boards.simulated import qemu_gdb

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
BOARD = "qemu-riscv32"
TARGET = f"micro -board={BOARD}"
SCHEDULES = 100


class FaultyWire:
    """A wire that breaks before, within and after what it is asked; boards that start anew, and memory that is damaged where nobody says so."""

    name = "faulty"

    def __init__(self, inner: Wire, source: random.Random) -> None:
        self.inner, self.source, self.rate = inner, source, 0.0

    @property
    def abilities(self) -> Abilities:
        return self.inner.abilities

    @property
    def traffic(self) -> Traffic:
        return self.inner.traffic

    def read(self, address: int, size: int) -> bytes:
        self._fault()
        found = self.inner.read(address, size)
        self._fault()
        return found

    def write(self, address: int, data: bytes) -> None:
        self._fault()
        if self.source.random() < self.rate:
            self.inner.write(address, data[: self.source.randrange(len(data))])
            raise WireError("it broke within a write")
        self.inner.write(address, data)
        self._fault()

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        self._fault()
        stopped = self.inner.execute(entry, stop, seconds)
        self._fault()
        return stopped

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        """The real one goes on."""

    def _fault(self) -> None:
        chance = self.source.random()
        if chance < self.rate / 3:
            raise WireError("it broke")
        if chance < self.rate / 2:
            self._damage()
            raise BoardReset("it started anew")

    def _damage(self) -> None:
        """Memory after a loss of power."""
        for _ in range(4):
            self.inner.write(find_board(BOARD).data.start + self.source.randrange(1 << 15), self.source.randbytes(1 << 12))


@pytest.fixture(scope="module")
def built(boards: None) -> Iterator[tuple[Job, Job]]:
    """A program that is right, and one that is wrong."""
    contract = DeviceContract()
    contract.target = TARGET
    with Builder(parse_target(TARGET).toolchain(), "image", jobs=1, timeout=120) as builder:
        task, right, reference = contract._built(builder, sums(), sums())
        _, wrong, _ = contract._built(builder, sums(), sums(-1))
        yield Job(task, right, reference, TIMING), Job(task, wrong, reference, TIMING)


def test_faults_never_make_a_wrong_result_right(built: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_transport, "PAUSE_SECONDS", 0.0)
    right, wrong = built
    with qemu_gdb(BOARD) as (text, _):
        source = random.Random(7)
        wire = FaultyWire(open_wire(text), source)
        device = BoardDevice(text, find_board(BOARD), lambda _: wire)
        first = device.run(right)
        assert isinstance(first, Observation)
        seen = {"right": 0, "lost": 0}
        for _ in range(SCHEDULES):
            wire.rate = source.choice((0.0, 0.003, 0.03, 0.1))
            good = source.random() < 0.6
            found = device.run(right if good else wrong)
            if isinstance(found, Observation):
                assert good and found.costs == first.costs
                seen["right"] += 1
            else:
                assert found.kind in ("link_lost", "reset") or (not good and found.kind == "wrong_answer"), found
                seen["lost"] += found.kind != "wrong_answer"
        assert min(seen.values()) > 5, seen
        wire.rate = 0.0
        assert isinstance(device.run(right), Observation)
        device.close()
        wire.inner.close()


def test_given_values_are_counted_and_cost_what_others_cost(boards: None, tmp_path: Path) -> None:
    """Integers: floats are computed by calls on this core, and those depend on values."""
    contract, path = DeviceContract(), tmp_path / "A.npy"
    contract.target = TARGET
    np.save(path, np.random.default_rng(1).integers(-100, 100, (24, 24), "int32"))
    a, b = (te.placeholder((24, 24), name=name, dtype="int32") for name in "AB")
    declared = [a, b, te.compute((24, 24), lambda *at: a[at] + b[at], name="C")]
    with Builder(parse_target(TARGET).toolchain(), "image", jobs=1, timeout=120) as builder, qemu_gdb(BOARD) as (text, _):
        task, program, reference = contract._built(builder, declared, declared)
        device, given = BoardDevice(text, find_board(BOARD)), replace(task, files=(("A", str(path)),))
        seen = [device.run(Job(one, program, reference, TIMING)) for one in (task, given, given)]
        device.close()
    assert [isinstance(one, Observation) and one.counters["tensor_bytes_sent"] for one in seen] == [0, 24 * 24 * 4, 0], seen
    assert len({one.costs for one in seen if isinstance(one, Observation)}) == 1


def test_a_board_that_dies_leaves_its_work_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_transport, "RETURN_SECONDS", 0.5)
    with qemu_gdb(BOARD) as (first, process), qemu_gdb(BOARD) as (second, _):
        devices = [BoardDevice(text, find_board(BOARD)) for text in (first, second)]
        run, count = devices[0].run, [0]

        def dies(job: Job) -> Observation | Failure:
            count[0] += 1
            if count[0] == 3:
                process.kill()
            return run(job)

        monkeypatch.setattr(devices[0], "run", dies)
        task, path = SearchTask(tensors=product(), target=parse_target(TARGET), name="product"), tmp_path / "trials.jsonl"
        with pytest.warns(AnsorWarning, match="is left out"):
            (found,) = tune_tasks([task], trials=12, devices=devices, records=path, timing=TIMING)
        records = load(path).records
        assert found.best is not None and count[0] >= 3 and len(records) == found.trials
        assert len({(str(one.sketch), one.row) for one in records}) == len(records)
        for device in devices:
            device.close()
