"""Boards that tests simulate, each with a GDB server: QEMU's machines, and Spike behind OpenOCD. On loopback, and ended by their process id."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.spikes import need_spike, spike

MACHINES = {
    "riscv32": ("qemu-system-riscv32", "-M", "virt", "-bios", "none"),
    "riscv64": ("qemu-system-riscv64", "-M", "virt", "-bios", "none"),
    "cortex-m4": ("qemu-system-arm", "-M", "mps2-an386"),
    "cortex-m55": ("qemu-system-arm", "-M", "mps3-an547"),
}
SECONDS = 20.0


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def qemu(machine: str, *more: str) -> Iterator[int]:
    """A halted machine; the port of its GDB server."""
    port = free_port()
    quiet = ("-nographic", "-monitor", "none", "-serial", "null", "-S", "-gdb", f"tcp:127.0.0.1:{port}")
    with running([*MACHINES[machine], *quiet, *more]) as process:
        wait_for(process, port)
        yield port


@contextlib.contextmanager
def spike_and_openocd(folder: Path, isa: str = "rv64imac_zicsr", flash: str = "") -> Iterator[int]:
    """The RISC-V simulator Spike behind OpenOCD; the port of OpenOCD's GDB server. flash: the command that declares flash."""
    with _openocd(folder, isa, (0x80000000, "0x80000000:0x100000"), "", flash) as port:
        yield port


@contextlib.contextmanager
def spike_with_flash(folder: Path) -> Iterator[int]:
    """Spike with the memories of an STM32F1, behind OpenOCD, whose driver for that flash runs code of its own at the start of RAM.

    What is flash there is memory to Spike, and so are the registers of its controller: nothing is ever busy, and erasing does nothing."""
    memories = "0x8000000:0x20000,0x1ffff000:0x1000,0x20000000:0x10000,0x40022000:0x1000,0xe0042000:0x1000"
    known = "mww 0xe0042000 0x20036410\nmwh 0x1ffff7e0 128\nmww 0x40022020 0xffffffff"  # its kind, KiB of flash, no block is protected
    area = "-work-area-phys 0x20000000 -work-area-size 0x1000"
    with _openocd(folder, "rv32imc_zicsr_zicntr", (0x20000000, memories), area, "flash bank main stm32f1x 0x08000000 0 0 0 riscv.cpu", known) as port:
        yield port


@contextlib.contextmanager
def _openocd(folder: Path, isa: str, memories: tuple[int, str], area: str, flash: str, after: str = "") -> Iterator[int]:
    """memories: where a program may be, and all of them as Spike wants them; area: options of OpenOCD's target; after: its commands once the core is halted."""
    need_spike()
    port, said = free_port(), folder / "spike.txt"
    endless = folder / "endless.elf"
    _endless_program(endless, isa[:4], memories[0])
    with said.open("wb") as output, running([spike(), f"--isa={isa}", f"-m{memories[1]}", "--rbb-port=0", "--halted", str(endless)], output) as simulator:
        config = folder / "spike.cfg"
        config.write_text(f"""adapter driver remote_bitbang
remote_bitbang host 127.0.0.1
remote_bitbang port {_bitbang_port(simulator, said)}
jtag newtap riscv cpu -irlen 5 -expected-id 0xdeadbeef
target create riscv.cpu riscv -chain-position riscv.cpu {area}
{flash}
gdb_port {port}
tcl_port disabled
telnet_port disabled
bindto 127.0.0.1
init
halt
{after}
""")
        with running(["openocd", "-f", str(config)], subprocess.DEVNULL) as debugger:
            wait_for(debugger, port)
            yield port


@contextlib.contextmanager
def running(command: list[str], output: object = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a port listens, without connecting to it, since that would count as a debugger."""
    end = time.monotonic() + SECONDS
    wanted = f"{port:04X}"
    while time.monotonic() < end and process.poll() is None:
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if any(fields[1].endswith(f":{wanted}") and fields[3] == "0A" for fields in listening):
            return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args!r} does not listen at {port}")


def _bitbang_port(process: subprocess.Popen[bytes], said: Path) -> int:
    """The port that Spike says it took."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(rb"port (\d+)", said.read_bytes()):
            return int(found[1])
        time.sleep(0.01)
    raise RuntimeError(f"Spike says {said.read_bytes()[-200:]!r}")


def _endless_program(path: Path, machine: str, start: int) -> None:
    """An ELF file whose only instruction jumps to itself. machine: rv32 or rv64."""
    source = path.with_suffix(".s")
    source.write_text(".globl _start\n_start: j _start\n")
    script = path.with_suffix(".ld")
    script.write_text(f"ENTRY(_start) SECTIONS {{ . = {start:#x}; .text : {{ *(.text*) }} }}\n")
    compiler = [sys.executable, "-m", "ziglang", "cc", f"--target=riscv{machine[2:]}-freestanding", "-nostdlib", "-T", str(script)]
    subprocess.run([*compiler, str(source), "-o", str(path)], check=True, timeout=60)
