"""Saves an integer network to a folder as C."""

from __future__ import annotations

from pathlib import Path

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.errors import MeasureError
from ansor.integer.board_text import FOLDER, board_files
from ansor.integer.c_text import KERNELS, files_of
from ansor.integer.network_code import NetworkCode
from ansor.integer.selftest import selftest_texts
from ansor.support.safe_files import make_folder, write_whole


def save(program: NetworkCode, folder: str | Path) -> Path:
    """Write C code, a build script and a self-test, which need only a C compiler. For a board, also write its start-up code, so that the script builds the
    whole program. Replaces existing files.

    Raises MeasureError if no C compiler builds programs for the target, or if the folder cannot be written to.
    """
    place = Path(folder)
    if not isinstance(program.target.toolchain(), (CToolchain, ImageToolchain)):
        raise MeasureError(f"asked to save {program.network.name} for {program.target} as C, but no C compiler builds programs of this kind")
    try:
        make_folder(place / KERNELS)
        toolchain = program.target.toolchain()
        texts = files_of(program, selftest_texts(program))
        if isinstance(toolchain, ImageToolchain):
            make_folder(place / FOLDER)
            make_folder(place / "trial")
            texts |= board_files(program, toolchain.board)
            del texts["main.c"]
        for name, text in texts.items():
            write_whole(place / name, text.encode(), 0o755 if name.endswith(".sh") else 0o644)
    except OSError as error:
        raise MeasureError(f"asked to save a network in {place}, which cannot be written to ({error.strerror or error}); name another folder") from error
    return place
