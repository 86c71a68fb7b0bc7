"""Checks, before anything runs, whether a program's arguments and workspace fit on a board beside the harness."""

from __future__ import annotations

import numpy as np

from ansor.codegen.image.board import Board
from ansor.codegen.image.harness import BAND_BYTES
from ansor.codegen.source import Argument, CSource
from ansor.measure.failure import Failure


def misfit(source: CSource, board: Board, free: int) -> Failure | None:
    """Why a program does not fit; None if it does. `free`: where the memory for buffers begins."""
    arguments, room = arguments_bytes(source), board.heap_end - free
    if arguments + source.workspace_bytes + BAND_BYTES <= room:
        return None
    needs = f"needs {arguments:,} bytes for its arguments and {source.workspace_bytes + BAND_BYTES:,} of workspace"
    sizes = {one.name: bytes_of(one) for one in source.arguments}
    largest = max(sizes, key=lambda name: sizes[name], default="")
    most = f"the workspace of {source.workspace_bytes:,}" if source.workspace_bytes >= sizes.get(largest, 0) else f"{largest} of {sizes[largest]:,}"
    has = f"{board.name} has {room:,} for them, of {board.data.size:,} bytes of {board.data.name}"
    return Failure("does_not_fit", f"the program {needs}; {has}; the largest buffer is {most} bytes")


def arguments_bytes(source: CSource) -> int:
    """Bytes of all arguments of a program, with the guard bands around them."""
    return sum(bytes_of(one) + BAND_BYTES for one in source.arguments)


def bytes_of(argument: Argument) -> int:
    """Bytes of one argument."""
    return argument.physical_size * np.dtype(argument.physical_dtype).itemsize
