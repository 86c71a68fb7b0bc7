"""Networks as the whole program of a board, in QEMU: every byte against the reference, and what does not fit."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor.errors import DeviceError, ModelError, TargetError
from ansor.integer.board_run import run_firmware, wire_of
from ansor.integer.compiling import as_declared, compiled
from ansor.integer.firmware import board_of, build_firmware, limits_of
from ansor.integer.from_torch import from_torch
from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import NetworkCode
from ansor.integer.saved import save
from ansor.integer.table import profile_text, table_text
from ansor.measure.wire.wire import FlashRegion
from ansor.run.keywords import RunOptions
from ansor.support.settings import cache_part
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import FOLDER
from ansor.zoo import tiny
from tests.integer.models import samples, small
from tests.measure.boards.flash_proxy import FlashProxy
from tests.measure.boards.simulated import qemu_gdb

pytestmark = [pytest.mark.compiler, pytest.mark.torch, pytest.mark.usefixtures("boards")]
BOARDS = ("mps2-an386", "qemu-riscv32", "spike-rv32", "spike-rvv128")


@pytest.fixture(scope="module")
def network() -> IntegerNetwork:
    return from_torch(small(), samples(), "small")


def code_of(network: IntegerNetwork, text: str) -> NetworkCode:
    asked, target = RunOptions.of({"trials": 0}), parse_target(text)
    with asked.audience.reporter(target) as reporter:
        return compiled(network, target, asked, reporter)


@pytest.mark.parametrize("board", BOARDS)
def test_every_byte_is_right_on_a_board(network: IntegerNetwork, tmp_path: Path, board: str) -> None:
    code = code_of(network, f"micro -board={board} -stack=1024")
    firmware = build_firmware(code, tmp_path)
    assert re.fullmatch(r"Firmware\(.*firmware.elf: \d+ bytes of code and constants, \d+ of RAM with the stack, for [\w-]+\)", repr(firmware))
    run = run_firmware(firmware)
    assert run.wrong == 0 and run.unit == "instructions" and 0 < run.stack_bytes < 4096
    at_once = 32 if board == "spike-rvv128" else 1  # the most that one instruction adds to: eight registers of 128 bits have 32 sums of 32 bits
    assert network.macs / at_once < run.cost < 100 * network.macs
    assert code.constant_bytes < firmware.flash_bytes and code.arena_bytes < firmware.ram_bytes
    assert run_firmware(firmware) == run
    assert len(run.layers) == len(code.calls) and run.cost * 0.98 < sum(run.layers) <= run.cost and all(firmware.code_bytes.values())
    profile = profile_text(code, run.layers, run.unit, firmware.code_bytes).splitlines()
    assert len(profile) == 1 + len(code.kernels) and profile[0].split()[:4] == ["kernel", "calls", "MACs", "instructions"]
    assert table_text(code).splitlines()[-1].startswith(f"{network.macs} MACs; RAM: {code.arena_bytes} bytes of arena")


@pytest.mark.parametrize("board", ["qemu-riscv32", "mps2-an386"])
def test_a_board_behind_a_wire(network: IntegerNetwork, tmp_path: Path, board: str) -> None:
    code = code_of(network, f"micro -board={board} -code=ram -stack=1024")
    alone = run_firmware(build_firmware(code, tmp_path / "alone"))
    firmware = build_firmware(code, tmp_path / "wire", behind_wire=True)
    with qemu_gdb(board) as (wire, _):
        found = run_firmware(firmware, wire)
    assert found.wrong == 0 and abs(found.cost - alone.cost) <= 2 and len(found.layers) == len(code.calls)


def test_what_is_no_wire_and_code_in_flash(network: IntegerNetwork, tmp_path: Path) -> None:
    code = code_of(network, "micro -board=netduinoplus2 -stack=1024")
    board = board_of(code)
    assert wire_of(board) == "" and wire_of(board, "gdb://a:1") == "gdb://a:1"
    assert wire_of(board_of(code_of(network, "micro -board=nrf52840dk -stack=1024"))) == "gdb://localhost:3333"
    with pytest.raises(DeviceError, match="which is not a wire to a board; write gdb://"):
        wire_of(board, "local")
    with pytest.raises(DeviceError, match=r"programs for netduinoplus2 over process:.*: their code is in flash memory.*use -code=ram"):
        run_firmware(build_firmware(code, tmp_path, behind_wire=True), "process:")


def test_a_board_with_its_code_in_flash_behind_a_gdb_server_that_can_write_it(network: IntegerNetwork, tmp_path: Path) -> None:
    code = code_of(network, "micro -board=netduinoplus2 -stack=1024")
    board = board_of(code)
    alone = run_firmware(build_firmware(code, tmp_path / "alone"))
    firmware = build_firmware(code, tmp_path / "wire", behind_wire=True)
    with qemu_gdb(board.name) as (wire, _):
        with pytest.raises(DeviceError, match="in flash memory, but the GDB server reports no writable flash .*use -code=ram"):
            run_firmware(firmware, wire)
        with contextlib.closing(FlashProxy(int(wire.rpartition(":")[2]), (FlashRegion(board.code.start, board.code.size, 0x4000),))) as proxy:
            found = [run_firmware(firmware, f"gdb://127.0.0.1:{proxy.port}") for _ in range(2)]
    assert [one.wrong for one in found] == [0, 0] and all(abs(one.cost - alone.cost) <= 2 for one in found)
    assert proxy.nor.programmed == 1 and not proxy.nor.broken


def compilers() -> dict[str, str]:
    """C compilers for Cortex-M that are no part of this package: GCC where it is installed."""
    import ziglang  # type: ignore[import-untyped]

    gcc = {"gcc": "arm-none-eabi-gcc"} if shutil.which("arm-none-eabi-gcc") else {}
    return {"zig": f"{Path(ziglang.__file__).parent / 'zig'} cc", **gcc}


def test_the_build_script_needs_nothing_of_ours(network: IntegerNetwork, tmp_path: Path) -> None:
    save(code_of(network, "micro -board=mps2-an386 -stack=1024"), tmp_path)
    for name, compiler in compilers().items():
        # the compiler's own runtime, which takes it 5 s to build, is not what is looked at here
        around = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CC": compiler, "ZIG_GLOBAL_CACHE_DIR": str(cache_part("zig")),
                  "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "zig")}
        made = subprocess.run(["sh", "build.sh", "test"], cwd=tmp_path, env=around, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0 and "small: right" in made.stdout, (name, made.stdout, made.stderr)
    weights = tmp_path / "weights.c"
    weights.write_text(weights.read_text().replace("-1,", "1,"))
    made = subprocess.run(["sh", "build.sh", "test"], cwd=tmp_path, env=around, capture_output=True, text=True, timeout=300)
    assert made.returncode == 1 and "small: wrong" in made.stdout


def test_plain_loops_are_right_too_and_wrong_weights_show(network: IntegerNetwork, tmp_path: Path) -> None:
    code = as_declared(network, parse_target("micro -board=mps2-an386"))
    first = next(iter(code.constants))
    assert run_firmware(build_firmware(code, tmp_path)).wrong == 0
    wrong = replace(code, constants={**code.constants, first: np.zeros_like(code.constants[first])})
    assert run_firmware(build_firmware(wrong, tmp_path)).wrong > 0


def test_limits_are_those_of_the_board(network: IntegerNetwork, tmp_path: Path) -> None:
    limits = limits_of(parse_target("micro -board=mps2-an386"))
    assert limits.ram_bytes == limits.flash_bytes == 4 << 20
    assert limits_of(parse_target("cpu")).ram_bytes is None and limits_of(parse_target("cpu"), 5, 6).flash_bytes == 6
    with pytest.raises(ModelError, match="needs .* bytes of RAM"):
        limits_of(parse_target("micro -board=mps2-an386"), ram_bytes=100).check_before(network, 4)
    with pytest.raises(ModelError, match="of stack and .* of constants in one memory, but the board has 8500: put its code in flash"):
        limits_of(parse_target("micro -board=rp2040-pico -code=ram"), ram_bytes=8500).check_before(network, 4)
    with pytest.raises(TargetError, match="which is not a board"):
        build_firmware(code_of(network, "cpu -mcpu=x86-64 -vector-bytes=4 -mattr=-sse2"), tmp_path)


def test_a_network_fits_where_none_of_its_layers_could_be_measured(tmp_path: Path) -> None:
    """Beside its arguments a trial needs room for weights, results to compare and guard bands; the firmware keeps weights in flash."""
    board = (FOLDER / "netduinoplus2.toml").read_text()
    assert "size = 0x0002_0000" in board
    (tmp_path / "small.toml").write_text(board.replace("size = 0x0002_0000", "size = 0x0000_8800"))
    words = tiny.NETWORKS["ds_cnn"]
    network = from_torch(words.model(), words.samples(), "ds_cnn")
    code = code_of(network, f"micro -board={tmp_path / 'small.toml'}")
    assert run_firmware(build_firmware(code, tmp_path / "net")).wrong == 0
    (tmp_path / "small.toml").write_text(board.replace("size = 0x0002_0000", "size = 0x0000_4000"))
    with pytest.raises(ModelError, match="its ram has 16,384 bytes, but [0-9,]+ are needed: 16,000 of arena"):
        build_firmware(code_of(network, f"micro -board={tmp_path / 'small.toml'}"), tmp_path / "smaller")
