"""`ansor micro`: boards, and what is at the other end of a wire."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.commands import micro
from ansor.measure.wire.process import open_process
from ansor.measure.wire.wire import FlashRegion
from ansor.targets.boards.catalogue import FOLDER, board_names, find_board
from tests.testing.memory_wire import SIZE, START, Board, MemoryWire

ROWS = {
    "rp2040-pico": r"cortex_m0plus +264 KiB +2 MiB +ticks \(1000000 Hz\) +gdb://localhost:3333 +with a board attached",
    "mps3-an547": r"cortex_m55 +5 MiB +- +instructions +qemu-system ",
    "rvsim-inorder": r"generic_rv64 +512 KiB +- +cycles \(rvsim in order\) +rvsim ",
}


def test_every_board_has_a_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["micro", "boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["board", "core", "RAM", "flash", "counts", "runs", "on", "ready"]
    assert [line.split()[0] for line in lines[1:-1]] == board_names()
    for name, row in ROWS.items():
        assert any(re.match(f"{name} +{row}", line) for line in lines), name


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert micro.ready(find_board("mps2-an386")).startswith("there is no program qemu-system-arm; apt-get update")


@pytest.mark.compiler
def test_a_wire_is_probed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wire = open_process("process:")
    start = wire.facts.free[0]
    monkeypatch.setattr(micro, "open_wire", lambda text: wire)
    assert main(["micro", "probe", "process:", "--memory", f"{start:#x}:1000"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("wire       process:: 64-bit addresses, 512 bytes at a time, stops programs, resets\n")
    assert re.search(rf"memory     {start:#x} to {start + 1000:#x}: keeps what is written; [0-9.e+]+ kB/s written, [0-9.e+]+ kB/s read\n", said)
    assert re.search(rf"size       {start:#x} responds up to 0x[0-9a-f]+, 1 MiB\n", said)
    assert re.search(r"traffic    3032 bytes written, 3[0-9]{3} read, \d+ others; 0 packets repeated, 0 damaged\n", said)


def test_memory_is_measured_and_held_against_a_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    larger = "64 KiB; 'ram' of the file has 128 KiB: the file is wrong"
    for size, status, said in ((SIZE, 0, "64 KiB\n"), (2 * SIZE, 1, larger), (SIZE // 2, 0, "programs use no more")):
        path = tmp_path / f"{size}.toml"
        path.write_text((FOLDER / "qemu-riscv32.toml").read_text().replace("0x0400_0000", f"{size:#x}").replace("stack = 0x1_0000", ""))
        monkeypatch.setattr(micro, "open_wire", lambda text: MemoryWire(Board()))
        assert main(["micro", "probe", "gdb://x:1", "--board", str(path)]) == status
        assert f"size       {START:#x} responds up to {START + SIZE:#x}, " in (found := capsys.readouterr().out) and said in found


class WithFlash(MemoryWire):
    """It can write flash, too."""

    def flash(self) -> tuple[FlashRegion, ...]:
        return (FlashRegion(0x08000000, 0x10000, 0x4000),)

    def program(self, parts: Sequence[tuple[int, bytes]]) -> None:
        raise AssertionError("a probe writes no flash")


@pytest.mark.parametrize(
    ("wire", "board", "said"),
    [
        (WithFlash, "qemu-riscv32", "flash      0x8000000 to 0x8010000, erased in blocks of 16 KiB\n"),
        (MemoryWire, "netduinoplus2", "flash      none that this wire can write: programs can only run with -code=ram\n"),
        (MemoryWire, "qemu-riscv32", ""),
    ],
)
def test_the_flash_that_a_wire_can_write_is_shown(
    wire: type[MemoryWire], board: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro, "open_wire", lambda text: wire(Board()))
    monkeypatch.setattr(micro, "other_core", lambda wire, board: "")
    monkeypatch.setattr(micro, "_tested", lambda *given: False)
    main(["micro", "probe", "gdb://x:1", "--board", board])
    found = capsys.readouterr().out
    assert said in found and (bool(said) or "flash" not in found)


class Stuck(MemoryWire):
    """A bit of it does not change."""

    def read(self, address: int, size: int) -> bytes:
        found = bytearray(super().read(address, size))
        for at in range(size):
            if address + at == START + 16:
                found[at] |= 1
        return bytes(found)


def test_memory_that_does_not_keep_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro, "open_wire", lambda text: Stuck(Board()))
    assert main(["micro", "probe", "gdb://x:1", "--memory", f"{START:#x}:0x20"]) == 1
    assert f"{START + 16:#x} does not keep what is written" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "asked for the wire 'nonsense', which does not name one; write gdb://HOST:PORT"),
        (["loop://", "--memory", "here"], "asked to test the memory 'here'; write ADDRESS:BYTES, such as 0x20000000:4096, at most 65536 bytes"),
        (["loop://", "--memory", "0:99999999"], "asked to test the memory '0:99999999'"),
        (["loop://", "--board", "nothing"], "asked for the board nothing; the boards are esp32c3"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["micro", "probe", *words]) == 1
    assert capsys.readouterr().err.startswith(f"ansor: {said}")
