"""Boards whose code is in flash, behind a GDB server that can write it: what is erased, how often, and what goes wrong."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ansor
from ansor.codegen.artifact import Artifact
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.toolchain import IMAGE
from ansor.codegen.source import CSource
from ansor.errors import DeviceError
from ansor.measure.boards import wire_transport
from ansor.measure.builder import Builder
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import open_device
from ansor.measure.devices.board import BoardDevice
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.measure.wire.wire import FlashRegion
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.testing.device_contract import DeviceContract, sums
from tests.measure.boards.flash_proxy import FlashProxy
from tests.measure.boards.simulated import qemu_gdb
from tests.measure.devices.test_board_faults import ADD, ARGUMENTS, WRONG
from tests.measure.wire.simulated_boards import spike_with_flash

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
TARGET = "micro -board=netduinoplus2"
BOARD = find_board("netduinoplus2")
FLASH = BOARD.code
SECTORS = tuple(FlashRegion(FLASH.start + at, size, block) for at, size, block in ((0, 0x10000, 0x4000), (0x10000,) * 3, (0x20000, 0xE0000, 0x20000)))
"""Those of an STM32F405."""
BLOCKS = tuple((at, one.block) for one in SECTORS for at in range(one.start, one.end, one.block))
TIMING, SOON = TimingOptions(timeout_seconds=0.5), TimingOptions(timeout_seconds=0.05)
"""SOON is for programs that do not end: they keep a processor busy for 20 times as long."""
DEEPER = "__attribute__((noinline)) static int deeper(volatile int *up) { volatile int here[8]; here[0] = *up; return deeper(here) + here[0]; }"
LESS = ADD.replace("i < 64", "i < 63")
"""It writes too little."""
BACKWARDS = ADD.replace("int i = 0; i < 64; ++i", "int i = 63; i >= 0; --i")
"""Other code for the same: what is a reference's is not the start of a group."""


@contextlib.contextmanager
def behind(regions: tuple[FlashRegion, ...] = SECTORS, scribbles: tuple[int, int] = (0, 0)) -> Iterator[FlashProxy]:
    """A fresh machine whose flash can be written."""
    with qemu_gdb("netduinoplus2") as (text, _):
        proxy = FlashProxy(int(text.rpartition(":")[2]), regions, scribbles)
        with contextlib.closing(proxy):
            yield proxy


def link(proxy: FlashProxy) -> str:
    return f"gdb://127.0.0.1:{proxy.port}"


@contextlib.contextmanager
def opened(proxy: FlashProxy) -> Iterator[BoardDevice]:
    with contextlib.closing(BoardDevice(link(proxy), BOARD)) as device:
        yield device


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that do not end are halted soon after their time, and connections are opened again at once."""
    monkeypatch.setattr(wire_transport, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(wire_transport, "PAUSE_SECONDS", 0.0)


@pytest.fixture(scope="module")
def artifacts(boards: None) -> Iterator[dict[str, Artifact]]:
    """One group: a right program, wrong ones by the kinds of their failures, and one that writes too little. And a reference of its own."""
    with Builder(parse_target(TARGET).toolchain(), IMAGE, jobs=1, timeout=120) as builder:
        group = builder.build([source(body) for body in (ADD, *WRONG.values(), LESS)])
        alone = builder.build([source(BACKWARDS)])
        made = {name: one.artifact for name, one in zip(("right", *WRONG, "less"), group, strict=True) if one.artifact is not None}
        reference = alone[0].artifact
        assert reference is not None and len({one.path for one in made.values()}) == 1 and reference.path != made["right"].path
        yield made | {"reference": reference}


def source(body: str) -> CSource:
    return CSource(f"{DEEPER}\nvoid run(void *const *args, unsigned char *workspace) {{ {body} }}\n", "run", ARGUMENTS)


def job(artifacts: dict[str, Artifact], name: str) -> Job:
    return Job(MeasureTask("add", source(ADD)), artifacts[name], artifacts["reference"], SOON if name == "timeout" else TIMING)


class TestFlash(DeviceContract):
    """The tests of every device, with code in flash. A machine for each: interrupts of QEMU's STM32 timers come late by as long as it has run."""

    target, long, trials = TARGET, 48, 4

    @pytest.fixture(autouse=True)
    def started(self, boards: None) -> Iterator[None]:
        with behind() as self.proxy:
            yield
            assert not self.proxy.nor.broken

    def open(self) -> Device:
        return BoardDevice(link(self.proxy), BOARD)


@pytest.mark.parametrize("scribbles", [(0, 0), (BOARD.data.start, BOARD.data.size)], ids=["ram-stays", "ram-is-lost"])
def test_a_group_is_written_once_whatever_its_programs_do(artifacts: dict[str, Artifact], scribbles: tuple[int, int]) -> None:
    """One image has all of a group. Failures put memory in doubt: flash is read then, and not written; the reference does not run again."""
    with behind((FlashRegion(FLASH.start, FLASH.size, 0x400),), scribbles) as proxy, opened(proxy) as device:
        first = device.run(job(artifacts, "right"))
        assert isinstance(first, Observation), first
        after_first, programmed = proxy.nor.erased.copy(), proxy.nor.programmed
        for name in [*WRONG, "right", *reversed(WRONG), "less", "right"]:
            found = device.run(job(artifacts, name))
            if name == "right":
                assert isinstance(found, Observation) and found.costs == first.costs, found
            else:
                assert isinstance(found, Failure) and found.kind == ("wrong_answer" if name == "less" else name), (name, found)
        assert proxy.nor.erased == after_first and proxy.nor.programmed == programmed and not proxy.nor.broken
    assert programmed == 2 and set(after_first.values()) == {1, 2}  # the reference's image, then the group's: only the end of the harness is in both
    assert sum(count == 2 for count in after_first.values()) <= 2
    assert all(FLASH.start <= at < FLASH.end for at in after_first)


def test_no_tensor_is_sent_unless_writing_flash_has_overwritten_it(artifacts: dict[str, Artifact]) -> None:
    """And costs are those of the simulator."""
    simulator = SimulatorDevice("qemu-system", BOARD)
    expected = simulator.run(job(artifacts, "right"))
    simulator.close()
    assert isinstance(expected, Observation)
    for scribbles in ((0, 0), (BOARD.data.start, BOARD.data.size)):
        with behind(scribbles=scribbles) as proxy, opened(proxy) as device:
            found = [device.run(job(artifacts, "right")) for _ in range(2)]
        assert all(isinstance(one, Observation) and one.costs == expected.costs for one in found), found
        assert [one.counters["runs_repeated"] for one in found] == [0, 0]
        sent = [one.counters["tensor_bytes_sent"] for one in found]
        assert (sent[0] > 0) == (scribbles != (0, 0)) and sent[1] == 0
        assert [one.counters["flash_bytes_written"] for one in found] == [sum(proxy.nor.erased[at] * size for at, size in BLOCKS), 0]


def test_images_that_take_turns_do_not_run_again(artifacts: dict[str, Artifact]) -> None:
    """Each time flash is written, RAM is lost, and what has to be there is written again before a program runs."""
    with behind(scribbles=(BOARD.data.start, BOARD.data.size)) as proxy, opened(proxy) as device:
        found = [device.run(job(artifacts, name)) for name in ("right", "reference", "right", "reference")]
        assert proxy.nor.programmed == 1 + 4  # the reference, to know what is right
    assert all(isinstance(one, Observation) for one in found), found
    assert [one.counters["runs_repeated"] for one in found] == [0] * 4


def test_flash_that_changes_by_itself_is_found_and_only_that_is_written(artifacts: dict[str, Artifact]) -> None:
    """In a program that does not run. The board's own checksum says so after the run, which does not count."""
    other = artifacts["less"]
    at = read_image(other.path).symbols[other.symbol] & ~1
    with behind() as proxy, opened(proxy) as device:
        first = device.run(job(artifacts, "right"))
        before = proxy.nor.erased.copy()
        proxy.spoils = at
        found = device.run(job(artifacts, "right"))
        assert isinstance(first, Observation) and isinstance(found, Observation) and found.costs == first.costs
        assert found.counters["runs_repeated"] == 1 and proxy.nor.erased - before == {at & -0x4000: 1} and not proxy.nor.broken


def test_tuning_erases_what_differs_once_for_each_group() -> None:
    """Each group has its own image, behind the same harness."""
    with behind() as proxy:
        made = ansor.auto_schedule("matmul", (8, 8, 8), target=TARGET, devices=[link(proxy)], trials=8, progress=False)
        erased, programmed = proxy.nor.erased, proxy.nor.programmed
        assert not proxy.nor.broken
    simulated = ansor.auto_schedule("matmul", (8, 8, 8), target=TARGET, trials=8, progress=False)
    assert made.cost and made.cost == simulated.cost
    assert max(erased.values()) == programmed <= 1 + 8 and erased[FLASH.start] == 1, (erased, programmed)


@pytest.mark.parametrize("after", range(12))
def test_a_connection_that_is_lost_while_flash_is_written(artifacts: dict[str, Artifact], after: int) -> None:
    """At any packet: nothing is known of the flash then, and nothing wrong is believed."""
    with behind() as proxy, opened(proxy) as device:
        proxy.cuts = after * 3
        right, wrong = device.run(job(artifacts, "right")), device.run(job(artifacts, "wrong_answer"))
        assert isinstance(right, Observation) and proxy.cuts is None and not proxy.nor.broken
        assert isinstance(wrong, Failure) and wrong.kind == "wrong_answer"


@pytest.mark.parametrize(("fails", "words"), [
    (lambda proxy: proxy.nor.fails.update({b"vFlashErase": b"E01"}), "cannot be erased: the GDB server says 'E01'"),
    (lambda proxy: proxy.nor.fails.update({b"vFlashDone": b"E05"}), "cannot be written: the GDB server says 'E05'"),
    (lambda proxy: setattr(proxy.nor, "loses", FLASH.start + 0x321), r"flash does not keep written data: 0x\w+ was written at 0x8000321"),
], ids=["erase", "write", "keep"])  # fmt: skip
def test_flash_that_cannot_be_written_is_said_and_given_up(artifacts: dict[str, Artifact], fails: Callable[[FlashProxy], object], words: str) -> None:
    """After the second time."""
    with behind() as proxy, opened(proxy) as device:
        fails(proxy)
        with pytest.raises(DeviceError, match=words) as caught:
            device.run(job(artifacts, "right"))
        assert "it was tried 2 times; is the flash write-protected or worn out?" in str(caught.value)
        assert max(proxy.nor.erased.values(), default=0) <= 2


def test_a_server_that_reports_no_flash_at_the_place_of_the_code(artifacts: dict[str, Artifact]) -> None:
    """QEMU's own has no memory map; another has flash elsewhere, or its blocks are too large."""
    other, large = (FlashRegion(0x90000000, 0x10000, 0x1000),), (FlashRegion(FLASH.start, 4 * FLASH.size, 4 * FLASH.size),)
    none = "the GDB server reports no writable flash"
    for regions, words in (((), none), (other, "but 0x90000000 to 0x90010000"), (large, "reaches beyond its memory 'flash'")):
        with behind(regions) as proxy, opened(proxy) as device:
            with pytest.raises(DeviceError, match=words):
                device.run(job(artifacts, "right"))
            assert proxy.nor.erased == Counter()


@pytest.mark.parametrize("text", ["bitbang://127.0.0.1:1", "serial:/dev/null", "socket://127.0.0.1:1"])
def test_wires_that_cannot_write_flash_are_refused_before_they_are_opened(text: str) -> None:
    with pytest.raises(DeviceError, match=r"asked to run programs for netduinoplus2 over .*their code is in flash memory, which only a wire.*use -code=ram"):
        open_device(text, parse_target(TARGET))
    open_device(text, parse_target(f"{TARGET} -code=ram")).close()


STM32F1 = """about = "rv32imc with flash"
core = { architecture = "riscv32", mcpu = "generic_rv32+m+c", guard = 4096 }
memories = [{ name = "ram", start = 0x2000_0000, size = 0x1_0000 }, { name = "flash", start = 0x0800_0000, size = 0x2_0000, flash = true }]
counter = { csr = "minstret", unit = "instructions" }
run = { device = "gdb://localhost:3333", code = "flash" }
watchdog = { kind = "clint", registers = [0x0200_bff8, 0x0200_4000], hertz = 1e7 }
"""


def test_openocd_writes_the_code_of_a_board_that_spike_simulates(tmp_path: Path) -> None:
    """Its driver for STM32F1 overwrites the start of RAM whenever it writes. A right and a wrong program, in one image each."""
    file = tmp_path / "mine.toml"
    file.write_text(STM32F1)
    contract, board = DeviceContract(), find_board(str(file))
    contract.target, small = f"micro -board={file}", sums(shape=(8, 8))
    with Builder(parse_target(contract.target).toolchain(), IMAGE, jobs=1, timeout=120) as builder, spike_with_flash(tmp_path) as port:
        task, right, reference = contract._built(builder, small, small)
        _, wrong, _ = contract._built(builder, small, sums(-1, shape=(8, 8)))
        with contextlib.closing(BoardDevice(f"gdb://127.0.0.1:{port}", board)) as device:
            first, second = (device.run(Job(task, one, reference, TIMING)) for one in (right, wrong))
    assert isinstance(first, Observation) and first.counters["flash_bytes_written"] > 0, first
    assert isinstance(second, Failure) and second.kind == "wrong_answer", second
