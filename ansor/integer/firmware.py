"""An integer network as the whole program of a board: start-up code, network, self-test. It says on the board's console what the self-test found."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.image import harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import function_bytes, read_image
from ansor.codegen.image.toolchain import LINK, ImageToolchain
from ansor.codegen.toolchain import compile_files
from ansor.errors import DeviceError, ModelError, TargetError, ToolchainError
from ansor.integer.c_text import KERNELS, c_name
from ansor.integer.network_code import Limits, NetworkCode
from ansor.integer.saved import save
from ansor.measure.devices.simulator import find_program
from ansor.support.text import clip
from ansor.targets.base import Target

SECONDS = 600.0
_SAID = re.compile(r"selftest ([0-9a-f]+)\s+layers([0-9a-f ]+)\s+board ([0-9a-f]+) ([0-9a-f]+) stack ([0-9a-f]+)")

MAIN = """\
/* The network as the whole program of a board. What it says: the self-test's answer, what each layer cost, the counter before and after one run, bytes of
 * stack. */
#include "bare.h"
#include "system.h"
#include "net.h"

static unsigned char arena[{word}_ARENA_BYTES] __attribute__((aligned({word}_ALIGNMENT)));

static unsigned int costs[{layers}];
static uint64_t before;

void firmware_after(int layer) {{
    const uint64_t now = counter_now();
    costs[layer] = (unsigned int)(now - before), before = now;
}}

static void say(const char *text, size_t size, unsigned int number) {{
    int digits = 8;
    system_say(text, size);
    while (digits > 1 && !(number >> (4 * digits - 4))) --digits;
    while (digits-- > 0) system_say("0123456789abcdef" + (number >> 4 * digits & 15), 1);
}}

int trial_main(const char *mode, const char *path) {{
    (void)mode, (void)path;
    ansor_control.flags = BARE_ALONE;
    {name}_selftest_fill(arena);
    system_mark(0);
    before = counter_now();
    {name}_run(arena);
    system_mark(1);
    say("selftest ", 9, (unsigned int){name}_selftest_check(arena));
    system_say("\\nlayers", 7);
    for (int layer = 0; layer < {layers}; ++layer) say(" ", 1, costs[layer]);
    system_say("\\n", 1);
    return 0;
}}
"""


@dataclass(frozen=True)
class Firmware:
    """An ELF file for a board. flash_bytes: code and constants; ram_bytes: arena, the harness's own data, and the stack that the board's file sets aside.

    code_bytes: of each kernel, by the name of its function.
    """

    path: Path
    board: Board
    flash_bytes: int
    ram_bytes: int
    code_bytes: Mapping[str, int]


@dataclass(frozen=True)
class BoardRun:
    """wrong: 0 where every byte of the self-test is right; cost: of one run, in `unit`; layers: of each, reading the counter included.

    stack_bytes: the most that was used.
    """

    wrong: int
    cost: float
    unit: str
    stack_bytes: int
    layers: tuple[float, ...]


def board_of(code: NetworkCode) -> Board:
    """The board that a network was compiled for. Raises TargetError if its target is not a board."""
    toolchain = code.target.toolchain()
    if not isinstance(toolchain, ImageToolchain):
        raise TargetError(f"asked for the firmware of {code.network.name} for {code.target}, which is no board: choose one, such as micro -board=mps2-an386")
    return toolchain.board


def limits_of(target: Target, ram_bytes: int | None = None, flash_bytes: int | None = None) -> Limits:
    """What networks for a target may need: as given, or else what its board has. Code in RAM has no limit of its own: the linker looks."""
    toolchain = target.toolchain()
    if isinstance(toolchain, ImageToolchain):
        board = toolchain.board
        ram_bytes = board.data.size if ram_bytes is None else ram_bytes
        flash_bytes = board.code.size if flash_bytes is None else flash_bytes
    return Limits(ram_bytes, flash_bytes)


def build_firmware(code: NetworkCode, folder: str | Path) -> Firmware:
    """Write the network as C, and what the board starts: `firmware.elf`. Raises ToolchainError where it does not build, ModelError where it does not fit."""
    board, toolchain = board_of(code), code.target.toolchain()
    assert isinstance(toolchain, ImageToolchain)  # board_of asks
    place, name = save(code, folder), c_name(code)
    (place / "firmware.c").write_text(MAIN.format(name=name, word=name.upper(), layers=len(code.calls)))
    (place / "firmware.ld").write_text(harness.script(board, told=False))
    network = [place / f"{one}.c" for one in ("firmware", "net", "weights", "selftest")] + [place / KERNELS / f"{one.code.entry}.c" for one in code.kernels]
    files = [*(one for one in harness.sources(board) if one.name != "trial.c"), *network]
    defines = ("-DTRIAL_SELECTED", f"-D{name.upper()}_AFTER=firmware_after", *harness.defines(board))
    around = ("-g0", "-fno-sanitize=all", "-ffunction-sections", "-fdata-sections", *defines)
    places = (*(f"-I{one}" for one in (*harness.HEADERS, place)), *LINK, f"-Wl,-T,{place / 'firmware.ld'}")
    path = place / "firmware.elf"
    made = compile_files(toolchain.compiler, files, path, (*toolchain.flags, *around, *places), libraries=(), timeout=SECONDS)
    if not made.ok and "does not fit" in made.text:
        raise ModelError(f"{code.network.name} with its code is larger than the memories of {board.name}: {clip(' '.join(made.text.split()), 300)}")
    if not made.ok:
        raise ToolchainError(f"asked to build {code.network.name} for {board.name}, which fails: {made.text}")
    image = read_image(path)
    flash = sum(len(one.content) for one in image.segments)
    ram = image.symbols["ansor_bss_end"] - board.data.start + board.run.stack
    return Firmware(path, board, flash, ram, function_bytes(path, [one.code.entry for one in code.kernels]))


def run_firmware(firmware: Firmware) -> BoardRun:
    """Start the board's simulator with it. Raises DeviceError for a board without one, and for a run that says nothing."""
    board = firmware.board
    if not board.run.command:
        raise DeviceError(f"asked to run {firmware.path} on {board.name}, for which there is no simulator; flash it, and read its console")
    command = [find_program(board.run.command[0]), *(str(firmware.path) if word == "IMAGE" else word for word in board.run.command[1:])]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"asked to run {firmware.path}: still running after {SECONDS:.0f} s") from error
    found = _SAID.search(ran.stdout)
    if found is None:
        said = clip(" ".join(f"{ran.stdout} {ran.stderr}".split()), 300) or "nothing"
        raise DeviceError(f"asked to run {firmware.path} on {board.name}, which ended without an answer; it said: {said}")
    layers, scale = tuple(int(word, 16) * board.counter.scale for word in found[2].split()), board.counter.scale
    wrong, start, end, stack = (int(found[place], 16) for place in (1, 3, 4, 5))
    return BoardRun(wrong, (end - start) * scale, board.counter.unit, stack, layers)
