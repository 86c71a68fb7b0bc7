"""How compilers are told the cores of boards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansor.codegen.image.compilers import clang_flags, gcc_flags, gcc_name, zig_flags
from ansor.targets.boards.catalogue import board_names, find_board

GCC = {
    "mps2-an385": "-mthumb -mcpu=cortex-m3 -mfloat-abi=soft",
    "mps2-an386": "-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    "mps2-an500": "-mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16",
    "mps3-an547": "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard -mfpu=auto",
    "rp2040-pico": "-mthumb -mcpu=cortex-m0plus -mfloat-abi=soft",
    "esp32c3": "-march=rv32imc -mabi=ilp32",
    "qemu-riscv32": "-march=rv32imac -mabi=ilp32",
    "spike-rvv128": "-march=rv64imafdcv_zvl128b -mabi=lp64d -mcmodel=medany",
}


@pytest.mark.parametrize(("board", "flags"), GCC.items())
def test_gcc(board: str, flags: str) -> None:
    assert " ".join(gcc_flags(find_board(board).core)) == flags


@pytest.mark.parametrize("board", board_names())
def test_every_board_has_flags(board: str) -> None:
    core = find_board(board).core
    assert clang_flags(core)[1:] == gcc_flags(core) and clang_flags(core)[0].startswith("--target=") and zig_flags(core)[0] == "-target"
    assert gcc_name(core) == ("arm-none-eabi-gcc" if core.architecture == "thumb" else "riscv64-unknown-elf-gcc")


def test_64_bit_risc_v_reaches_memory_from_2_gib_on() -> None:
    core = find_board("qemu-riscv64").core
    assert core.flags == () and core.options == ("-mcmodel=medany",) and "-fPIC" not in zig_flags(core)
    assert replace(core, flags=("-mcmodel=medlow",)).options == ("-mcmodel=medlow",) and find_board("qemu-riscv32").core.options == ()
    assert "-fPIC" in zig_flags(replace(core, mcpu="generic_rv64+m+a+c", floats=False)), "its library has doubles"
