"""Builds the monitor: as a local process, and as an ELF file for boards. Each is built once and kept in the cache folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.complaints import in_brief
from ansor.codegen.library_cache import kept_library
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, compile_files, find_compiler
from ansor.errors import ToolchainError
from ansor.support.safe_files import PRIVATE_PROGRAM

FOLDER = Path(__file__).parent / "monitor"
HOST_FLAGS = ("-std=gnu11", "-O1", "-DMONITOR_HOSTED", "-fno-sanitize=all", "-w")
BARE_FLAGS = (
    "-std=gnu11", "-ffreestanding", "-fno-builtin", "-nostdlib", "-Oz", "-g0", "-s", "-fno-sanitize=all", "-fno-stack-protector", "-ffunction-sections",
    "-fdata-sections", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer", "-Wl,--gc-sections", "-w",
)  # fmt: skip
RISCV = ("-mcmodel=medany", "-mno-relax")


@dataclass(frozen=True, slots=True)
class MonitorBoard:
    """A board that the monitor can be built for. flags: the processor's, for the compiler. sources: C files of `measure/wire/monitor/`, besides monitor.c.

    code, data: where to put the monitor and its memory (4 KiB); data 0: after the code. free: first address and last + 1 for programs, 0: after data.
    settings: macros for the sources, as NAME=VALUE. chunk: bytes of memory in one frame; the receive buffer has four times as many.
    """

    name: str
    flags: tuple[str, ...]
    sources: tuple[str, ...]
    code: int
    data: int
    free: tuple[int, int]
    settings: tuple[str, ...] = ()
    chunk: int = 512


def _riscv(bits: int) -> tuple[str, ...]:
    return ("-target", f"riscv{bits}-freestanding", f"-mcpu=generic_rv{bits}+m+a+c", *RISCV)


def _thumb(mcpu: str) -> tuple[str, ...]:
    return ("-target", "thumb-freestanding-eabi", f"-mcpu={mcpu}")


VIRT = ("UART=0x10000000", "RESET_AT=0x100000", "RESET_WORD=0x7777")
BOARDS = {
    board.name: board
    for board in (
        MonitorBoard("riscv32-virt", _riscv(32), ("arch_riscv.c", "uart_16550.c"), 0x80000000, 0, (0, 0x88000000), VIRT),
        MonitorBoard("riscv64-virt", _riscv(64), ("arch_riscv.c", "uart_16550.c"), 0x80000000, 0, (0, 0x88000000), VIRT),
        MonitorBoard("mps2-an385", _thumb("cortex_m3"), ("arch_thumb.c", "uart_cmsdk.c"), 0, 0x20000000, (0, 0x20400000), ("UART=0x40004000",)),
        MonitorBoard("mps2-an386", _thumb("cortex_m4"), ("arch_thumb.c", "uart_cmsdk.c"), 0, 0x20000000, (0, 0x20400000), ("UART=0x40004000",)),
        MonitorBoard("mps2-an500", _thumb("cortex_m7"), ("arch_thumb.c", "uart_cmsdk.c"), 0, 0x20000000, (0, 0x20400000), ("UART=0x40004000",)),
        MonitorBoard("stm32f4", _thumb("cortex_m4"), ("arch_thumb.c", "uart_stm32.c"), 0x08000000, 0x20000000, (0, 0x20020000), ("CLOCK=16000000",)),
        MonitorBoard("nrf52", _thumb("cortex_m4"), ("arch_thumb.c", "uart_nrf.c"), 0, 0x20000000, (0, 0x20010000), ("TX_PIN=6", "RX_PIN=8")),
        MonitorBoard("rp2040", _thumb("cortex_m0plus"), ("arch_thumb.c", "uart_rp2040.c"), 0x20038000, 0, (0x20000000, 0x20038000), ("CLOCK=6000000",)),
    )
}
"""QEMU's boards, and families of chips, whose pins and clocks are settings to check. Define other boards in the same way."""


def linker_script(board: MonitorBoard) -> str:
    """The monitor's memory layout. Only constants are initialised, so nothing must be copied at start."""
    data = f"  . = {board.data:#x};\n" if board.data else ""
    start = f"{board.free[0]:#x}" if board.free[0] else "ALIGN(free_begin, 16)"
    return (
        f"ENTRY(_start)\nSECTIONS\n{{\n  . = {board.code:#x};\n  .text : {{ KEEP(*(.start)) *(.text .text.* .rodata .rodata.*) }}\n{data}"
        "  .bss (NOLOAD) : ALIGN(16) { bss_start = .; *(.bss .bss.* COMMON .data .data.*) . = ALIGN(16); bss_end = .; . += 1024; stack_top = .; }\n"
        f"  free_begin = .;\n  free_start = {start};\n  free_end = {board.free[1]:#x};\n  /DISCARD/ : {{ *(.ARM.exidx* .comment .eh_frame*) }}\n}}\n"
    )


def built_monitor(board: MonitorBoard | str) -> Path:
    """The monitor for a board, as an ELF file.

    Raises ToolchainError for an unknown name or if it does not build, CacheError if it cannot be kept.
    """
    if isinstance(board, str):
        if board not in BOARDS:
            raise ToolchainError(f"asked for a monitor for {board!r}; it is known for {', '.join(BOARDS)}, and for a `MonitorBoard` of your own")
        board = BOARDS[board]
    settings = (f'BOARD_NAME="{board.name}"', f"MONITOR_CHUNK={board.chunk}", f"MONITOR_RING={4 * board.chunk}", *board.settings)
    flags = (*board.flags, *BARE_FLAGS, *(f"-D{setting}" for setting in settings))
    return _built(f"monitor-{board.name}", ("monitor.c", *board.sources), flags, linker_script(board))


def built_process() -> Path:
    """The monitor as a local program. Raises ToolchainError if it does not build, CacheError if it cannot be kept."""
    return _built("monitor-process", ("monitor.c", "arch_host.c", "board_process.c", "start_process.c"), HOST_FLAGS)


def _built(name: str, sources: Sequence[str], flags: Sequence[str], script: str = "") -> Path:
    compiler = find_compiler("zig")
    files = [FOLDER / source for source in sources]
    texts = [path.read_text() for path in (*files, *sorted(FOLDER.glob("*.h")))]
    key = hashlib.sha256("\0".join([*texts, compiler.version, *flags, script]).encode()).hexdigest()[:16]

    def build(place: Path) -> None:
        layout = place.with_name("monitor.ld")
        layout.write_text(script)
        linked = (f"-Wl,-T,{layout}",) if script else ()
        compiled = compile_files(compiler, files, place, (*flags, *linked), libraries=(), timeout=FIRST_CALL_SECONDS)
        if not compiled.ok:
            raise ToolchainError(f"{compiler.version} cannot build the {name}: {in_brief(compiled.text)}")

    return kept_library(f"{name}-{key}", build, mode=PRIVATE_PROGRAM)
