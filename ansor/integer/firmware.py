"""Builds an integer network as the whole program of a board: start-up code, network, self-test. It prints the self-test's result on the board's console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.image import harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import function_bytes, read_image
from ansor.codegen.image.toolchain import LINK, ImageToolchain
from ansor.codegen.toolchain import compile_files
from ansor.errors import ModelError, TargetError, ToolchainError
from ansor.integer.board_text import FOLDER, SCRIPT, SETTINGS
from ansor.integer.c_text import KERNELS
from ansor.integer.firmware_room import NO_ROOM, too_large, without_bounds
from ansor.integer.network_code import Limits, NetworkCode
from ansor.integer.saved import save
from ansor.support.text import clip
from ansor.targets.base import Target

SECONDS = 600.0

@dataclass(frozen=True)
class Firmware:
    """An ELF file for a board. flash_bytes: code and constants; ram_bytes: arena, the harness's own data, and the stack that the board's file reserves.

    code_bytes: code size of each kernel, by the name of its function.
    """

    path: Path
    board: Board
    flash_bytes: int
    ram_bytes: int
    code_bytes: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.path}: {self.flash_bytes} bytes of code and constants, {self.ram_bytes} of RAM with the stack, for {self.board.name}"

    def __repr__(self) -> str:
        return f"Firmware({self})"


def board_of(code: NetworkCode) -> Board:
    """The board that a network was compiled for. Raises TargetError if its target is not a board."""
    toolchain = code.target.toolchain()
    if not isinstance(toolchain, ImageToolchain):
        raise TargetError(f"asked for the firmware of {code.network.name} for {code.target}, which is not a board: choose one, such as micro -board=mps2-an386")
    return toolchain.board


def limits_of(target: Target, ram_bytes: int | None = None, flash_bytes: int | None = None, arena_bytes: int = 0) -> Limits:
    """The memory that networks for a target may use: as given, or else all that its board has. If code is in RAM, constants count there, too."""
    if not isinstance(arena_bytes, int):
        raise ModelError(f"asked for arena_bytes={arena_bytes!r}; give a number of bytes")
    toolchain, together = target.toolchain(), 0
    if isinstance(toolchain, ImageToolchain):
        board = toolchain.board
        together = 0 if board.code_is_apart else board.run.stack
        ram_bytes = board.data.size if ram_bytes is None else ram_bytes
        flash_bytes = board.code.size if flash_bytes is None else flash_bytes
    return Limits(ram_bytes, flash_bytes, together, arena_bytes)


def build_firmware(code: NetworkCode, folder: str | Path, *, behind_wire: bool = False) -> Firmware:
    """Write the network as C, and build the board's program, `firmware.elf`. behind_wire: the program leaves its output in memory.

    Raises ToolchainError if it does not build, ModelError if it does not fit.
    """
    board, toolchain = board_of(code), code.target.toolchain()
    assert isinstance(toolchain, ImageToolchain)  # board_of checks it
    place = save(code, folder)
    starts = [place / FOLDER / one.name for one in harness.sources(board) if one.name != "trial.c"]
    network = [place / f"{one}.c" for one in ("firmware", "net", "weights", "selftest")] + [place / KERNELS / f"{one.code.entry}.c" for one in code.kernels]
    around: tuple[str, ...] = ("-g0", "-fno-sanitize=all", "-ffunction-sections", "-fdata-sections", "-include", str(place / SETTINGS))
    around += ("-DFIRMWARE_BEHIND_WIRE",) if behind_wire else ()
    places = (f"-I{place}", f"-I{place / FOLDER}", *LINK, f"-Wl,-T,{place / SCRIPT}")
    flags = tuple(one for one in toolchain.flags if one != "-DTRIAL_SMALL")
    path = place / "firmware.elf"
    made = compile_files(toolchain.compiler, [*starts, *network], path, (*flags, *around, *places), libraries=(), timeout=SECONDS)
    if not made.ok and any(one in made.text for one in NO_ROOM):
        unbounded = place / f"unbounded-{SCRIPT}"
        unbounded.write_text(without_bounds((place / SCRIPT).read_text()))
        larger, again = place / "unbounded.elf", tuple(f"-Wl,-T,{unbounded}" if one == f"-Wl,-T,{place / SCRIPT}" else one for one in places)
        measured = compile_files(toolchain.compiler, [*starts, *network], larger, (*flags, *around, *again), libraries=(), timeout=SECONDS)
        said = too_large(code, board, larger) if measured.ok else clip(" ".join(made.text.split()), 300)
        unbounded.unlink()
        larger.unlink(missing_ok=True)
        raise ModelError(f"{code.network.name} with its code does not fit into the memory of {board.name}: {said}")
    if not made.ok:
        raise ToolchainError(f"asked to build {code.network.name} for {board.name}, but the build failed: {made.text}")
    image = read_image(path)
    flash = sum(len(one.content) for one in image.segments)
    ram = image.symbols["ansor_bss_end"] - board.data.start + board.run.stack
    return Firmware(path, board, flash, ram, function_bytes(path, [one.code.entry for one in code.kernels]))


