"""Whole trials on simulated boards whose connections have seeded faults: programs that are right, are wrong, or trap, and the device's verdicts."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansor import te
from ansor.errors import DeviceError
from ansor.ir.dag import Dag
from ansor.measure.boards import wire_transport
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.failure import LINK, Failure
from ansor.measure.reference import measure_task
from ansor.measure.timing import TimingOptions
from ansor.measure.wire.bitbang import BitbangWire
from ansor.measure.wire.opening import open_wire
from ansor.measure.wire.port import Port, socket_port
from ansor.measure.wire.serial import SerialWire
from ansor.measure.wire.wire import Wire
from ansor.schedule.sketch import Sketch
from ansor.targets.base import parse_target
from ansor.targets.boards import catalogue
from ansor.targets.micro import board_of
from tests.measure.boards.faulty_proxy import NONE, FaultyProxy, random_faults
from tests.measure.boards.simulated import qemu_gdb
from tests.measure.wire.monitor_boards import Simulator
from tests.spikes import running_spike

N = 64
RIGHT = f"const int *a = args[0], *b = args[1]; int *c = args[2]; for (int i = 0; i < {N}; ++i) c[i] = a[i] * b[i] + 1;"
PROGRAMS = {
    "right": RIGHT,
    "wrong_answer": RIGHT.replace("+ 1", "+ (i != 9)"),
    "trap": "*(volatile int *)0xdffffff0ul = 1;",
    "out_of_bounds": RIGHT + f"c[{N}] = 1;",
}
TIMING = TimingOptions(timeout_seconds=0.05)
ANSWER_SECONDS = 0.5
FAILED = "failed: "


@dataclass
class Place:
    """A board behind a proxy. opened: opens its wire; target: of its programs."""

    target: str
    proxy: FaultyProxy
    opened: Callable[[str], Wire]


@dataclass
class Found:
    """The outcomes of trials. kinds: by program and verdict; wrong: verdicts that are wrong; lost: links that did not recover;
    again: faults; longest: seconds of a trial."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    again: int = 0
    longest: float = 0.0

    def joined(self, other: Found) -> Found:
        """Of both."""
        again, longest = self.again + other.again, max(self.longest, other.longest)
        return Found(self.kinds + other.kinds, self.wrong + other.wrong, self.lost + other.lost, again, longest)


@contextlib.contextmanager
def over_gdb(seed: int, folder: Path) -> Iterator[Place]:
    """QEMU's GDB server."""
    del folder
    with qemu_gdb("qemu-riscv32") as (text, _):
        proxy = FaultyProxy(int(text.rpartition(":")[2]), seed)
        yield Place("micro -board=qemu-riscv32", proxy, lambda _: open_wire(f"gdb://127.0.0.1:{proxy.port}?timeout={ANSWER_SECONDS}"))
        proxy.close()


@contextlib.contextmanager
def over_bitbang(seed: int, folder: Path) -> Iterator[Place]:
    """Spike's remote bitbang port."""
    del folder
    with running_spike(64, ("--isa=rv64gc",)) as text:
        proxy = FaultyProxy(int(text.rpartition(":")[2]), seed)
        yield Place("micro -board=spike-rv64", proxy, lambda text: BitbangWire(text, "127.0.0.1", proxy.port, ANSWER_SECONDS))
        proxy.close()


@contextlib.contextmanager
def over_serial(seed: int, folder: Path) -> Iterator[Place]:
    """The monitor on QEMU, behind its serial line, whose reset starts another QEMU."""
    board = (Path(catalogue.__file__).parent / "qemu-riscv32.toml").read_text()
    (folder / "monitored.toml").write_text(board.replace("start = 0x8000_0000", "start = 0x8001_0000").replace("size = 0x0400_0000", "size = 0x0100_0000"))
    simulator = Simulator("riscv32-virt", ("-icount", "shift=0"))
    simulator.start().close()
    proxy = FaultyProxy(simulator.port, seed)

    def connected() -> Port:
        return socket_port("127.0.0.1", proxy.port, "monitor")

    def reset() -> Port:
        simulator.start().close()
        proxy.behind = simulator.port
        return connected()

    try:
        yield Place(f"micro -board={folder / 'monitored.toml'}", proxy, lambda text: SerialWire(connected(), text, reset, 1e6))
    finally:
        proxy.close()
        simulator.stop()


WIRES = {"gdb": over_gdb, "bitbang": over_bitbang, "serial": over_serial}


def jobs(target: str, builder: Builder) -> dict[str, Job]:
    """A job for each program, by name."""
    a, b = te.placeholder((N,), "int32", name="A"), te.placeholder((N,), "int32", name="B")
    dag = Dag([a, b, te.compute((N,), lambda i: a[i] * b[i] + 1, name="C")])
    task = measure_task(dag, parse_target(target))
    assert task.reference is not None
    source = parse_target(target).emit(Sketch(dag).lower_row((), "candidate"), "candidate")
    texts = [replace(source, text=f"void candidate(void *const *args, unsigned char *workspace) {{ {body} }}\n") for body in PROGRAMS.values()]
    reference, *built = builder.build([task.reference, *texts])
    assert reference.artifact is not None
    return {name: Job(task, one.artifact, reference.artifact, TIMING) for name, one in zip(PROGRAMS, built, strict=True) if one.artifact is not None}


def run_schedules(wire: str, schedules: int, seed: int, folder: Path, until: float = float("inf")) -> Found:
    """This many trials with faults, each followed by one without, while `time.monotonic()` is below `until`."""
    found, source = Found(), random.Random(seed)
    with _short_waits(), WIRES[wire](seed, folder) as place, Builder(parse_target(place.target).toolchain(), "image", jobs=1, timeout=120) as builder:
        all_jobs = jobs(place.target, builder)
        device = BoardDevice("faulty", board_of(parse_target(place.target)), place.opened)
        first = device.run(all_jobs["right"])
        assert isinstance(first, Observation), first
        for _ in range(schedules):
            if time.monotonic() > until:
                break
            place.proxy.faults = random_faults(source)
            name = source.choice(("right", "right", *PROGRAMS))
            began, said = time.monotonic(), _said(device, all_jobs[name])
            place.proxy.faults = NONE
            _note(found, name, said, first.costs, time.monotonic() - began)
            clean = _said(device, all_jobs["right"])
            if isinstance(clean, Failure) and clean.kind in LINK:  # bytes that were still in flight
                clean = _said(device, all_jobs["right"])
            if not isinstance(clean, Observation) or clean.costs != first.costs:
                found.lost.append(str(clean))
        found.again = sum(place.proxy.seen.values())
        device.close()
    return found


@contextlib.contextmanager
def _short_waits() -> Iterator[None]:
    before = wire_transport.RETURN_SECONDS, wire_transport.GRACE_SECONDS
    wire_transport.RETURN_SECONDS, wire_transport.GRACE_SECONDS = 5.0, 1.0
    try:
        yield
    finally:
        wire_transport.RETURN_SECONDS, wire_transport.GRACE_SECONDS = before


def _said(device: BoardDevice, job: Job) -> Observation | Failure | str:
    try:
        return device.run(job)
    except DeviceError as error:
        return f"left out: {error}"


def _note(found: Found, name: str, said: Observation | Failure | str, costs: tuple[float, ...], seconds: float) -> None:
    kind = "right" if isinstance(said, Observation) else said.kind if isinstance(said, Failure) else "left out"
    found.kinds[name, kind] += 1
    found.longest = max(found.longest, seconds)
    believed = isinstance(said, Observation)
    if kind not in (name, *LINK, "left out") or believed and (name != "right" or isinstance(said, Observation) and said.costs != costs):
        found.wrong.append(f"{name}: {said}")
