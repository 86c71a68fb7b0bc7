"""Runs recorded arithmetic over populations, by `tape.c` if there is a C compiler, else by NumPy."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.ir.tape import Matrix, Rows, Tape, gene_error
from ansor.ir.tape_operations import Op

SOURCE = Path(__file__).with_name("tape.c")
BLOCK = 64
"""Rows that tape.c processes at a time."""

MATRICES = 4
"""The most matrices per call."""

_STORES = {np.dtype(name): max(Op) + 1 + k for k, name in enumerate(("float32", "float64", "bool"))}

Run = Callable[[NDArray[np.int64]], list[Rows]]
"""Rows of genes [n, choices] -> matrices."""


def tape_library(compiler: Compiler) -> Path:
    """The shared library of `tape.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "tape", SOURCE.read_text())


def runner(tape: Tape, wanted: Sequence[Matrix], compiler: str = "") -> Run:
    """A function that computes these matrices for any rows. `compiler`: a command line, "" for the default; without one, NumPy is used."""
    library = _library(compiler)
    if library is None:
        short, given = tape.cut(wanted)
        return lambda genes: short.matrices(genes, given)
    return _RegisterTape(library, tape, wanted)


@lru_cache
def _library(compiler: str) -> ctypes.CDLL | None:
    loaded = loaded_if_built(lambda: tape_library(find_compiler(compiler)), "programs are described by NumPy, which takes many times as long")
    if loaded is None:
        return None
    address, size = ctypes.c_void_p, ctypes.c_int64
    loaded.ansor_tape_prepare.argtypes, loaded.ansor_tape_prepare.restype = [address, size, address, size, address, address], size
    loaded.ansor_tape_run.argtypes, loaded.ansor_tape_run.restype = [address, address, size, size, address, address], ctypes.c_int
    return loaded


class _Tape(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_void_p), ("length", ctypes.c_int64), ("constants", ctypes.c_void_p), ("tables", ctypes.c_void_p),
        ("registers", ctypes.c_int64), ("matrices", ctypes.c_int64), ("templates", ctypes.c_void_p * MATRICES), ("row_bytes", ctypes.c_int64 * MATRICES),
    )  # fmt: skip


class _RegisterTape:
    """A tape as instructions on registers."""

    def __init__(self, library: ctypes.CDLL, tape: Tape, wanted: Sequence[Matrix]) -> None:
        stores = [_STORES[one.template.dtype] for one in wanted]
        outputs = [(place, k, column, stores[k]) for k, one in enumerate(wanted) for column, place in zip(one.columns, one.places, strict=True)]
        given = np.asarray(sorted(outputs), np.int32).reshape(-1, 4)
        code, registers = np.empty((len(tape.nodes) + len(given), 5), np.int32), ctypes.c_int64()
        length = library.ansor_tape_prepare(_address(tape.nodes), len(tape.nodes), _address(given), len(given), _address(code), ctypes.byref(registers))
        if length < 0:
            raise MemoryError(f"not enough memory to prepare a tape of {len(tape.nodes)} operations")
        self._run = library.ansor_tape_run
        self._least_choices = int(tape.nodes[tape.nodes[:, 0] == Op.TABLE, 1].max(initial=-1)) + 1
        self._templates = [one.template for one in wanted]
        self._scratch = registers.value * BLOCK + BLOCK
        self._kept = code[:length].copy(), tape.constants, tape.tables
        self._tape = _Tape(*map(_address, self._kept[:1]), length, *map(_address, self._kept[1:]), registers.value, len(wanted))
        for k, one in enumerate(self._templates):
            self._tape.templates[k], self._tape.row_bytes[k] = _address(one), one.nbytes
        self._address = ctypes.addressof(self._tape)

    def __call__(self, genes: NDArray[np.int64]) -> list[Rows]:
        rows = np.ascontiguousarray(genes, np.int64)
        count, choices = rows.shape
        if choices < self._least_choices:
            raise gene_error()
        found = [np.empty((count, len(one)), one.dtype) for one in self._templates]
        places, scratch = (ctypes.c_void_p * MATRICES)(*map(_address, found)), _room(self._scratch)
        if not self._run(self._address, _address(rows), choices, count, _address(scratch), places):
            raise gene_error()
        return found


_rooms = threading.local()


def _room(size: int) -> NDArray[np.float64]:
    """Memory for `size` numbers, valid until this thread's next call: fresh memory costs as much as the arithmetic of a small population."""
    known: NDArray[np.float64] | None = getattr(_rooms, "room", None)
    if known is None or len(known) < size:
        known = _rooms.room = np.empty(size)
    return known


def _address(array: Rows) -> int:
    return int(array.__array_interface__["data"][0])
