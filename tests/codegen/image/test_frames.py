"""Sizes of frames, as the compiler notes them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ansor.codegen.image.compilers import zig_flags
from ansor.codegen.image.frames import FLAG, _sizes, frames, largest_frame, misfit
from ansor.codegen.toolchain import find_compiler
from ansor.targets.boards.catalogue import find_board


def noted(size: int, word: int) -> bytes:
    """A note of a function at address 0."""
    groups = [size >> shift & 0x7F for shift in range(0, max(1, size.bit_length()), 7)]
    return bytes(word) + bytes(one | 0x80 for one in groups[:-1]) + bytes(groups[-1:])


@pytest.mark.parametrize("seed", range(20))
def test_notes_are_read_as_they_are_written(seed: int) -> None:
    source, word = random.Random(seed), 4 + 4 * (seed % 2)
    sizes = [source.randrange(1 << source.randrange(1, 40)) for _ in range(source.randrange(20))]
    assert _sizes(b"".join(noted(one, word) for one in sizes), word) == sizes


@pytest.mark.compiler
@pytest.mark.parametrize("board", ["mps2-an386", "qemu-riscv64"])
def test_the_largest_frame_of_an_object(board: str, tmp_path: Path) -> None:
    text = "int leaf(int n) { return n; } int deep(int n) { volatile char a[100000]; a[n] = 1; return a[n - 1]; }"
    (tmp_path / "two.c").write_text(text)
    command = [*find_compiler("zig").command, *zig_flags(find_board(board).core), "-O2", FLAG, "-c", "two.c", "-o", "two.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    frame = largest_frame(tmp_path / "two.o")
    assert 100_000 <= frame < 100_100 and frame <= sum(frames(tmp_path / "two.o")) < frame + 100
    assert misfit(frame, 1 << 20, board) == "" and "needs 100,0" in misfit(frame, 4096, board)
