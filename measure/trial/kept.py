"""Reads and writes the file with a reference's outputs that programs compare theirs with. `trial.c` uses the same format on a device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument
from ansor.measure.verify import Sensitivity

MAGIC = 0x32747065736E616B
HEADER_WORDS, ENTRY_WORDS = 4, 8  # as in trial.c


@dataclass(frozen=True, slots=True, eq=False)
class KeptFile:
    """Outputs by name, in their shapes, floats as doubles. moves: how far each output moves, and each element of a float output (in the file as float32, after
    the doubles). input_scale: the largest magnitude of an input."""

    outputs: dict[str, NDArray[np.generic]]
    moves: dict[str, Sensitivity]
    input_scale: float


def read_kept(content: bytes, outputs: Sequence[Argument]) -> KeptFile:
    """Parse the file. `outputs`: of the reference, in order. Raises ValueError for anything else."""
    head = HEADER_WORDS * 8
    magic, count, scale, _ = struct.unpack_from("<QQdQ", content) if len(content) >= head else (0, 0, 0.0, 0)
    if magic != MAGIC or count != len(outputs) or len(content) < head + count * ENTRY_WORDS * 8:
        raise ValueError(f"asked to read {len(outputs)} outputs of a reference from {len(content)} bytes, which is not the size of such a file")
    arrays, moves = {}, {}
    for number, one in enumerate(outputs):
        offset, size, kind, itemsize, usual = struct.unpack_from("<QQQQd", content, head + number * ENTRY_WORDS * 8)
        arrays[one.name] = np.frombuffer(content, f"{chr(kind)}{itemsize}", size, offset).reshape(one.shape)
        each = np.frombuffer(content, "<f4", size, offset + size * itemsize).reshape(one.shape) if chr(kind) == "f" else None
        moves[one.name] = Sensitivity(usual, each)
    return KeptFile(arrays, moves, scale)


def kept_bytes(kept: KeptFile, outputs: Sequence[Argument]) -> bytes:
    """The file of these outputs, as `trial.c` writes it. `outputs`: of the reference, in order."""
    head, contents = HEADER_WORDS * 8 + len(outputs) * ENTRY_WORDS * 8, b""
    entries = b""
    for one in outputs:
        array = kept.outputs[one.name]
        array = array.astype(np.float64) if array.dtype.kind == "f" else array
        row = struct.pack("<QQQQd", head + len(contents), array.size, ord(array.dtype.kind), array.itemsize, kept.moves[one.name].usual)
        entries += row.ljust(ENTRY_WORDS * 8, b"\0")
        written = array.tobytes() + _each(array, kept.moves[one.name])
        contents += written.ljust(-(-len(written) // 64) * 64, b"\0")
    return struct.pack("<QQdQ", MAGIC, len(outputs), kept.input_scale, 0) + entries + contents


def _each(array: NDArray[np.generic], moves: Sensitivity) -> bytes:
    """How far each element of a float output moves."""
    if array.dtype.kind != "f":
        return b""
    return (np.zeros(array.shape, np.float32) if moves.each is None else moves.each).astype("<f4").tobytes()
