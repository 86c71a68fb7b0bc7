"""Whether a program has room on a board: its arguments and workspace beside the harness. Said before anything runs, with the numbers."""

from __future__ import annotations

import numpy as np

from ansor.codegen.image.board import Board
from ansor.codegen.image.harness import BAND_BYTES
from ansor.codegen.source import CSource
from ansor.measure.failure import Failure


def misfit(source: CSource, board: Board, free: int) -> Failure | None:
    """Why a program has no room; None when it has. `free`: where the memory for buffers begins."""
    arguments, room = arguments_bytes(source), board.heap_end - free
    if arguments + source.workspace_bytes + BAND_BYTES <= room:
        return None
    needs = f"needs {arguments:,} bytes for its arguments and {source.workspace_bytes + BAND_BYTES:,} of workspace"
    return Failure("does_not_fit", f"the program {needs}; {board.name} has {room:,} for them, of {board.data.size:,} bytes of {board.data.name}")


def arguments_bytes(source: CSource) -> int:
    """Bytes of all arguments of a program, with the guard bands around them."""
    return sum(one.physical_size * np.dtype(one.physical_dtype).itemsize + BAND_BYTES for one in source.arguments)
