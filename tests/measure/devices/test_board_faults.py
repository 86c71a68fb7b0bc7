"""Boards behind wires that fail, boards that go, programs that trap, and what does not travel."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from ansor import te
from ansor.api import tune_tasks
from ansor.codegen.artifact import Artifact
from ansor.codegen.image.toolchain import IMAGE
from ansor.codegen.source import Argument, CSource
from ansor.errors import AnsorWarning
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.record import load
from ansor.measure.timing import TimingOptions
from ansor.measure.wire.opening import open_wire
from ansor.measure.wire.wire import Abilities, Stopped, Traffic, Wire, WireError
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from tests.measure.wire.simulated_boards import qemu

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
T = TypeVar("T")
TEXT = "micro -board=qemu-riscv32"
BOARD, TARGET = find_board("qemu-riscv32"), parse_target(TEXT)
MACHINE = ("riscv32", "-icount", "shift=0", "-m", "64M")
TIMING = TimingOptions(timeout_seconds=0.05)  # a simulated board may take 20 times as long, and a program that does not end keeps a processor busy for that
SCHEDULES = 200
ARGUMENTS = (Argument("a", (64,), "int8", "input"), Argument("b", (64,), "int8", "input"), Argument("c", (64,), "int32", "output"))
ADD = "const signed char *a = args[0], *b = args[1]; int *c = args[2]; for (int i = 0; i < 64; ++i) c[i] = a[i] + b[i];"
DEEPER = "__attribute__((noinline)) int deeper(volatile int *up) { volatile int here[8]; here[0] = *up; return deeper(here) + here[0]; }"
WRONG = {
    "trap": "*(volatile int *)0xdffffff0 = 1;",
    "instruction": '__asm__ volatile(".word 0xffffffff");',
    "timeout": "for (;;) __asm__ volatile(\"nop\");",
    "crash": "volatile int start = 1; ((int *)args[2])[0] = deeper(&start);",
    "out_of_bounds": f"{ADD} c[64] = 1;",
    "wrong_answer": ADD.replace("a[i] + b[i]", "a[i] - b[i]"),
}


def source(body: str) -> CSource:
    return CSource(f"{DEEPER}\nvoid run(void *const *args, unsigned char *workspace) {{ {body} }}\n", "run", ARGUMENTS)


@pytest.fixture(scope="module")
def artifacts(boards: None) -> Iterator[dict[str, Artifact]]:
    """A right program, and wrong ones by the kinds of their failures."""
    with Builder(TARGET.toolchain(), IMAGE, jobs=1, timeout=120) as builder:
        built = builder.build([source(body) for body in (ADD, *WRONG.values())])
        yield {name: one.artifact for name, one in zip(("right", *WRONG), built, strict=True) if one.artifact is not None}


@pytest.fixture
def link(boards: None) -> Iterator[str]:
    with qemu(*MACHINE) as port:
        yield f"gdb://127.0.0.1:{port}"


def job(artifacts: dict[str, Artifact], name: str = "right", **options: tuple[tuple[str, str], ...]) -> Job:
    return Job(MeasureTask("add", source(ADD), **options), artifacts[name], artifacts["right"], TIMING)  # type: ignore[arg-type]


def test_wrong_programs_are_failures_with_their_kind_and_the_next_one_runs(artifacts: dict[str, Artifact], link: str) -> None:
    """In whatever order: what one of them did to the memory is made good."""
    device = BoardDevice(link, BOARD)
    try:
        for name in [*WRONG, *reversed(WRONG)]:
            failure = device.run(job(artifacts, name))
            assert isinstance(failure, Failure) and failure.kind == name, (name, failure)
            assert name not in ("trap", "instruction", "timeout", "crash") or "pc" in failure.text
            after = device.run(job(artifacts))
            assert isinstance(after, Observation), (name, after)
    finally:
        device.close()


def test_no_tensor_travels_unless_a_person_gives_one_and_counts_are_equal(artifacts: dict[str, Artifact], link: str, tmp_path: Path) -> None:
    """Through a wire, in a simulator that is started anew, with seeds and with values."""
    board, simulator = BoardDevice(link, BOARD), SimulatorDevice("qemu-system", BOARD)
    try:
        seeded, again, fresh = board.run(job(artifacts)), board.run(job(artifacts)), simulator.run(job(artifacts))
        for name, seed in (("a", 1), ("b", 2)):
            np.save(tmp_path / f"{name}.npy", np.random.default_rng(seed).integers(-128, 128, 64).astype(np.int8))
        files = tuple((name, str(tmp_path / f"{name}.npy")) for name in "ab")
        given = board.run(job(artifacts, files=files))
        for one in (seeded, again, fresh, given):
            assert isinstance(one, Observation), one
        assert isinstance(seeded, Observation) and isinstance(again, Observation) and isinstance(fresh, Observation) and isinstance(given, Observation)
        assert seeded.costs == again.costs == fresh.costs == given.costs
        assert seeded.counters["tensor_bytes_sent"] == again.counters["tensor_bytes_sent"] == 0
        assert given.counters["tensor_bytes_sent"] in (128, 256)  # once, or for the reference, too
        assert again.counters["wire_bytes_sent"] < 1000
        assert "on the device" in seeded.check and "sums" in fresh.check
    finally:
        board.close()
        simulator.close()


class Faulty:
    """A wire that sometimes breaks before something, or after it, or in the middle of it."""

    def __init__(self, wire: Wire, dice: random.Random, share: float) -> None:
        self._wire, self._dice, self._share = wire, dice, share

    @property
    def name(self) -> str:
        return self._wire.name

    @property
    def abilities(self) -> Abilities:
        return self._wire.abilities

    @property
    def traffic(self) -> Traffic:
        return self._wire.traffic

    def read(self, address: int, size: int) -> bytes:
        return self._broken(lambda: self._wire.read(address, size), lambda: self._wire.read(address, size // 2))

    def write(self, address: int, data: bytes) -> None:
        self._broken(lambda: self._wire.write(address, data), lambda: self._wire.write(address, data[: len(data) // 2]))

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        return self._broken(lambda: self._wire.execute(entry, stop, seconds), lambda: None)

    def reset(self) -> None:
        self._wire.reset()

    def close(self) -> None:
        self._wire.close()

    def _broken(self, whole: Callable[[], T], half: Callable[[], object]) -> T:
        chance = self._dice.random()
        if chance < self._share:
            if chance < self._share / 3:
                half()
            elif chance < self._share * 2 / 3:
                whole()
            raise WireError("the test broke the wire")
        return whole()


def test_a_wire_that_breaks_anywhere_gives_right_results_or_failures_with_a_kind(artifacts: dict[str, Artifact], link: str) -> None:
    dice = random.Random(5)
    opened: list[Faulty] = []

    def faulty(text: str) -> Wire:
        opened.append(Faulty(open_wire(text), dice, 0.03 if opened else 0.0))
        return opened[-1]

    device = BoardDevice(link, BOARD, faulty)
    right, kinds = 0, set()
    try:
        device.run(job(artifacts))
        opened[0]._share = 0.03
        for _ in range(SCHEDULES):
            name = dice.choice(["right", "right", "wrong_answer", "trap"])
            seen = device.run(job(artifacts, name))
            if isinstance(seen, Observation):
                assert name == "right" and seen.costs[0] > 64
                right += 1
            else:
                kinds.add(seen.kind)
                assert seen.kind in ("link_lost", "reset") or seen.kind == name, (name, seen)
    finally:
        device.close()
    assert right > SCHEDULES // 4 and "link_lost" in kinds


def product() -> list[Tensor]:
    a, b = te.placeholder((8, 16), "int8", name="A"), te.placeholder((16, 8), "int8", name="B")
    k = te.reduce_axis((0, 16), name="k")
    return [a, b, te.compute((8, 8), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")]


def test_two_boards_run_every_program_once_and_one_that_goes_is_left_out(tmp_path: Path, boards: None) -> None:
    records = tmp_path / "records.jsonl"
    with qemu(*MACHINE) as first, qemu(*MACHINE) as second:
        links = [f"gdb://127.0.0.1:{port}" for port in (first, second)]
        (state,) = tune_tasks([SearchTask(tensors=product(), target=TARGET, name="product")], trials=10, devices=links, records=records, timing=TIMING)
        found = load(records).records
        assert state.best is not None and len(found) == state.trials == 10 and not any(one.failure for one in found)
        subprocess.run(["pkill", "-9", "-f", f"127.0.0.1:{second}"], check=False)
        with pytest.warns(AnsorWarning, match="is left out"):
            (again,) = tune_tasks([SearchTask(tensors=product(), target=TARGET, name="product")], trials=20, devices=links, records=records, timing=TIMING)
        assert again.resumed == 10 and len(load(records).records) == again.trials


def test_programs_of_another_length_of_sum_have_a_place(artifacts: dict[str, Artifact], link: str) -> None:
    """Tasks take turns: what is kept of one stays where the other does not reach."""
    device = BoardDevice(link, BOARD)
    try:
        other = replace(job(artifacts), task=MeasureTask("other", source(ADD), seed=7))
        costs = [seen.costs for one in (job(artifacts), other, job(artifacts), other) if isinstance(seen := device.run(one), Observation)]
        assert len(costs) == 4 and len(set(costs)) == 1
    finally:
        device.close()
