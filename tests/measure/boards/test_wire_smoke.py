"""Boards behind a wire whose files are wrong in one place are refused before a trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ansor.codegen.image.board import Board as Machine
from ansor.codegen.image.board import Memory
from ansor.codegen.image.toolchain import IMAGE, PLAIN
from ansor.errors import DeviceError
from ansor.measure.boards import smoke
from ansor.measure.boards.wire_smoke import check_memories, places_of
from ansor.measure.devices.board import BoardDevice
from ansor.measure.wire.wire import WireError
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from tests.measure.boards.simulated import qemu_gdb
from tests.testing.memory_wire import SIZE, START, Board, MemoryWire


@dataclass
class Ram(MemoryWire):
    """Memory of so many bytes: behind it, it begins anew (mirrors), keeps nothing (holes), or is refused."""

    has: int = SIZE
    behind: str = ""
    broken: bool = False

    def read(self, address: int, size: int) -> bytes:
        return bytes(size) if self._beyond(address) == "holes" else super().read(self._there(address), size)

    def write(self, address: int, data: bytes) -> None:
        if self._beyond(address) != "holes":
            super().write(self._there(address), data)

    def _beyond(self, address: int) -> str:
        if self.broken:
            raise WireError("memory: it broke")
        return self.behind if not START <= address < START + self.has else ""

    def _there(self, address: int) -> int:
        if self._beyond(address) == "refused":
            raise WireError("memory: no memory there")
        return START + (address - START) % self.has


def machine(start: int = START, size: int = SIZE) -> Machine:
    return replace(find_board("qemu-riscv32"), memories=(Memory("ram", start, size),))


def test_places_are_the_start_the_end_and_between() -> None:
    assert places_of(Memory("ram", 0x100, 0x1000)) == [0x100, 0x2F0, 0x4F0, 0x8F0, 0x10F0]
    for size in (16, 17, 40, 1000):
        assert all(0 <= at <= size - 16 for at in places_of(Memory("ram", 0, size)))


def test_memory_as_the_file_says() -> None:
    check_memories(Ram(Board()), machine())


@pytest.mark.parametrize(
    ("behind", "start", "text"),
    [
        ("mirrors", START, "is smaller: data written at .* appear at .*, so it repeats after 32768 bytes or fewer; check size of"),
        ("holes", START, "does not keep what is written at 0x8000fff0, its end; check size of the memory 'ram'"),
        ("refused", START, r"cannot be written at 0x8000fff0, its end \(memory: no memory there\); check size"),
        ("holes", START - 0x1000, "does not keep what is written at 0x7ffff000, its start; check start of the memory 'ram'"),
        ("refused", START - 0x1000, "cannot be written at 0x7ffff000, its start .*; check start of the memory"),
    ],
)
def test_memory_that_is_another(behind: str, start: int, text: str) -> None:
    with pytest.raises(DeviceError, match=text) as error:
        check_memories(Ram(Board(), has=SIZE // 2, behind=behind), machine(start))
    assert "\n" not in str(error.value)


def test_a_wire_that_breaks_is_no_mistake_of_the_file() -> None:
    with pytest.raises(WireError, match="it broke"):
        check_memories(Ram(Board(), broken=True), machine())


@pytest.fixture(scope="module")
def link(boards: None) -> Iterator[str]:
    with qemu_gdb("mps2-an386") as (text, _):
        yield text


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("field", "changes", "text"),
    [
        ("", {}, ""),
        ("counter", {"register": 0x40000008}, "does not count.*counter.register"),
        ("counter", {"register": 0x60000000}, "trap.*check counter.register"),
        ("watchdog", {"registers": (0x40001000, 12)}, r"counted, and then its watchdog \(cmsdk\) did not end it .*watchdog.registers"),
        ("watchdog", {"hertz": 25e3}, "watchdog fired while .*watchdog.hertz"),
        ("memories", (Memory("ram", 0x20000000, 0x800000),), "memory 'ram'.* size of the memory 'ram'"),
        ("memories", (Memory("ram", 0x30000000, 0x400000),), "memory 'ram'.* start of the memory 'ram'"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(field: str, changes: Any, text: str, link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "SECONDS", 1.0)
    board = find_board("mps2-an386")
    if field:
        board = replace(board, **{field: replace(getattr(board, field), **changes) if isinstance(changes, dict) else changes})
    toolchain = replace(parse_target("micro -board=mps2-an386").toolchain(), board=board)  # type: ignore[type-var]  # an image's
    made = toolchain.build([PLAIN], IMAGE, tmp_path / "plain", timeout=120)
    assert made.said.ok, made.said.text
    device = BoardDevice(link, board)
    try:
        if text:
            with pytest.raises(DeviceError, match=text):
                device.check(made.artifacts[0])
        else:
            first = device.check(made.artifacts[0])
            monkeypatch.setattr(BoardDevice, "_believed", None)
            assert abs(first - 40_000) < 100 and device.check(made.artifacts[0]) == first
    finally:
        device.close()
