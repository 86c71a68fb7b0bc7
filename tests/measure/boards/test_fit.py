"""What has room on a board, to the byte."""

from __future__ import annotations

from dataclasses import replace

from ansor.codegen.image.harness import BAND_BYTES
from ansor.codegen.source import Argument, CSource
from ansor.measure.boards.fit import misfit
from ansor.targets.boards.catalogue import find_board

BOARD = find_board("mps2-an386")
FREE = BOARD.data.start + 0x8000
ROOM = BOARD.heap_end - FREE


def copy(size: int) -> CSource:
    return CSource("", "run", (Argument("a", (size,), "int8", "input"), Argument("c", (4,), "int32", "output")))


def test_what_fits_to_the_byte_fits_and_one_more_does_not() -> None:
    most = ROOM - 16 - 3 * BAND_BYTES
    assert misfit(copy(most), BOARD, FREE) is None
    failure = misfit(copy(most + 1), BOARD, FREE)
    assert failure is not None and failure.kind == "does_not_fit"
    assert f"{ROOM + 1 - BAND_BYTES:,} bytes for its arguments" in failure.text and f"mps2-an386 has {ROOM:,} for them" in failure.text
    assert failure.text.endswith(f"; the largest buffer is a of {most + 1:,} bytes")


def test_a_workspace_may_be_the_largest_buffer() -> None:
    failure = misfit(replace(copy(8), workspace_bytes=ROOM), BOARD, FREE)
    assert failure is not None and failure.text.endswith(f"; the largest buffer is the workspace of {ROOM:,} bytes")
