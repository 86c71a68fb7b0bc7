"""Speed of reading and writing memory through a wire.

    python benchmarks/wire_speed.py bitbang://localhost:9824 --address 0x80000000
    python benchmarks/wire_speed.py --spike [--openocd] [--rounds 5] [--bytes 262144]

`--spike` starts the simulator, with its usual debug module and with larger ones; `--openocd` also goes through OpenOCD's GDB port. Each round writes random
bytes and reads them back. It prints the best and the median of the rounds, in kB/s (1000 bytes), and the characters on the line for each byte. "both" is one
write and one read of the same bytes: the cost of a fully verified write.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ansor.measure.wire.bitbang import open_bitbang
from ansor.measure.wire.wire import Wire

MEMORY = 0x80000000
PATIENCE = 30.0
MODULES = {
    "64 bits": ("rv64imac_zicsr", ()),
    "64 bits, four data words": ("rv64imac_zicsr", ("--dm-datacount=4", "--dm-progsize=6")),
    "64 bits, six data words": ("rv64imac_zicsr", ("--dm-datacount=6", "--dm-progsize=6")),
    "32 bits": ("rv32imac_zicsr", ()),
    "32 bits, four data words": ("rv32imac_zicsr", ("--dm-datacount=4", "--dm-progsize=6")),
}
OPENOCD = """adapter driver remote_bitbang
remote_bitbang host 127.0.0.1
remote_bitbang port {bitbang}
jtag newtap board cpu -irlen 5
target create board.cpu riscv -chain-position board.cpu
bindto 127.0.0.1
gdb_port {gdb}
tcl_port disabled
telnet_port disabled
init
halt
"""


def loop(bits: int) -> bytes:
    """A program that jumps to itself, as an ELF file. Spike needs a section table: this one has a single entry, the name table, without a name."""
    code, start = bytes.fromhex("6f000000"), b"\x7fELF" + bytes((bits // 32, 1, 1)) + bytes(9)
    if bits == 64:
        head = struct.pack("<HHIQQQIHHHHHH", 2, 243, 1, MEMORY, 64, 124, 0, 64, 56, 1, 64, 1, 0)
        part, section = struct.pack("<IIQQQQQQ", 1, 7, 120, MEMORY, MEMORY, 4, 4, 4), struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 10, 2, 0, 0, 1, 0)
    else:
        head = struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, MEMORY, 52, 88, 0, 52, 32, 1, 40, 1, 0)
        part, section = struct.pack("<IIIIIIII", 1, 84, MEMORY, MEMORY, 4, 4, 7, 4), struct.pack("<IIIIIIIIII", 0, 3, 0, 0, 10, 2, 0, 0, 1, 0)
    return start + head + part + code + section


@contextmanager
def started(command: list[str], said: str) -> Iterator[re.Match[str]]:
    """A process, once it has printed something that matches."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield expected(process, said)
    finally:
        process.kill()
        process.wait()


def expected(process: subprocess.Popen[bytes], said: str) -> re.Match[str]:
    """Wait for the expected output of a process."""
    assert process.stdout
    text, deadline = b"", time.monotonic() + PATIENCE
    while not (found := re.search(said, text.decode(errors="replace"))):
        if not select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
            sys.exit(f"{process.args!r} does not start: {text.decode(errors='replace')}")
        part = process.stdout.read1(4096)  # type: ignore[attr-defined]
        if not part:
            sys.exit(f"{process.args!r} ended: {text.decode(errors='replace')}")
        text += part
    return found


@contextmanager
def spike(isa: str, options: tuple[str, ...]) -> Iterator[int]:
    """Starts a halted simulator; yields its port."""
    found = importlib.util.find_spec("riscv")
    inside = Path(str(found.origin)).parent / "data" / "bin" / "spike" if found and found.origin else Path("spike")
    program = str(inside) if inside.exists() else shutil.which("spike")
    if program is None or not shutil.which("dtc"):
        sys.exit("--spike needs Spike (pip install --pre spike) and dtc (Debian: device-tree-compiler)")
    with tempfile.TemporaryDirectory() as folder:
        (image := Path(folder) / "loop.elf").write_bytes(loop(64 if "64" in isa else 32))
        command = [program, "--rbb-port=0", "--halted", f"--isa={isa}", f"-m0x{MEMORY:x}:0x4000000", *options, str(image)]
        with started(command, r"connection on port (\d+)\.") as said:
            yield int(said[1])


@contextmanager
def openocd(port: int) -> Iterator[str]:
    """Starts OpenOCD in front of a simulator; yields the text of the wire to its GDB port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        gdb = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        (script := Path(folder) / "spike.cfg").write_text(OPENOCD.format(bitbang=port, gdb=gdb))
        with started(["openocd", "-f", str(script)], rf"port {gdb} for gdb connections"):
            yield f"gdb://127.0.0.1:{gdb}"


def opened(text: str) -> Wire:
    """Open a wire by its text."""
    if text.startswith("bitbang:"):
        return open_bitbang(text)
    from ansor.measure.wire.gdb import open_gdb

    return open_gdb(text)


def measured(table: Table, name: str, wire: Wire, arguments: argparse.Namespace) -> None:
    """Measure a wire, and add a row."""
    writes, reads, source = list[float](), list[float](), random.Random(1)
    before, between = wire.traffic, wire.traffic
    for _ in range(arguments.rounds):
        data, before, start = source.randbytes(arguments.bytes), wire.traffic, time.perf_counter()
        wire.write(arguments.address, data)
        middle, between = time.perf_counter(), wire.traffic
        if wire.read(arguments.address, len(data)) != data:
            sys.exit(f"{name}: asked for the bytes just written, and read different ones; check the wire and the address")
        writes.append(middle - start)
        reads.append(time.perf_counter() - middle)
    both = [write + read for write, read in zip(writes, reads, strict=True)]
    speeds = [f"{arguments.bytes / min(times) / 1e3:.0f} / {arguments.bytes / statistics.median(times) / 1e3:.0f}" for times in (writes, reads, both)]
    sent, received = between.overhead - before.overhead, wire.traffic.overhead - between.overhead
    characters = [f"{count / arguments.bytes:.1f}" if wire.name.startswith("bitbang:") else "" for count in (sent, received)]
    table.add_row(name, *speeds, *characters)
    wire.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="the text of a wire: bitbang://HOST:PORT, gdb://HOST:PORT")
    parser.add_argument("--spike", action="store_true", help="start Spike with several debug modules")
    parser.add_argument("--openocd", action="store_true", help="also through OpenOCD")
    parser.add_argument("--address", type=lambda text: int(text, 0), default=MEMORY + 0x1000, help="address of writable memory (default: 0x%(default)x)")
    parser.add_argument("--bytes", type=int, default=1 << 18)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if not arguments.url and not arguments.spike:
        parser.error("asked for no wire; name one, or give --spike")
    table = Table("wire", "write kB/s\nbest / median", "read kB/s\nbest / median", "both kB/s\nbest / median", "characters per\nbyte written", "\nbyte read")
    if arguments.url:
        measured(table, arguments.url, opened(arguments.url), arguments)
    for name, (isa, options) in MODULES.items() if arguments.spike else ():
        with spike(isa, options) as port:
            measured(table, name, opened(f"bitbang://127.0.0.1:{port}"), arguments)
    if arguments.spike and arguments.openocd:
        with spike(*MODULES["64 bits"]) as port, openocd(port) as text:
            measured(table, "64 bits, through OpenOCD", opened(text), arguments)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
