"""Accesses memory through the program buffer of a RISC-V debug module: words go to s1, a short program stores them at s0, and each word restarts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.measure.wire.debug_module import ABSTRACTAUTO, COMMAND, DATA0, EXCEPTION, POSTEXEC, S0, S1, TRANSFER, WRITES, CommandError, DebugModule
from ansor.measure.wire.tap import Answers, Batch
from ansor.measure.wire.wire import WireError

PART = 1 << 16  # bytes per batch, which has one answer
_ZERO, _S0, _S1 = 0, 8, 9
_WIDTH = {1: 0, 2: 1, 4: 2, 8: 3}


@dataclass(frozen=True, slots=True)
class Piece:
    """A range moved uniformly. unit: bytes per load or store; units: loads or stores per run of the program; runs: how often it runs."""

    address: int
    unit: int
    units: int
    runs: int

    @property
    def block(self) -> int:
        """Bytes per run."""
        return self.unit * self.units

    @property
    def size(self) -> int:
        """Bytes of the whole piece."""
        return self.block * self.runs

    @property
    def words(self) -> int:
        """Words of data per run."""
        return max(self.unit // 4, 1) * self.units


def pieces(address: int, size: int, unit: int, units: int) -> Iterator[Piece]:
    """Split a range so that each load and store is aligned: small ones until the largest `unit` fits; blocks of several; the rest."""
    end = address + size
    while address < end:
        fits = next(width for width in (8, 4, 2, 1) if width <= unit and address % width == 0 and address + width <= end)
        block = fits * units if fits == unit and end - address >= fits * units else fits
        runs = (end - address) // block if fits == unit else 1
        piece = Piece(address, fits, block // fits, runs)
        yield piece
        address += piece.size


class Memory:
    """A halted processor's memory. Raises WireError with the address it refused."""

    def __init__(self, module: DebugModule) -> None:
        self._module = module
        self._unit = module.bits // 8
        parts = module.parts
        each = self._unit // 4
        room = parts.program + parts.ends_itself
        many = parts.data // each if parts.data_address is not None else 1
        # A store program has one store, a load and a store for each further unit, an addition and an ebreak. A load program is one instruction longer.
        self._stored = max(1, min(many, (room - 1) // 2))
        self._loaded = max(1, min(many, (room - 2) // 2))

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, at any address."""
        self._check(address, len(data), "write")
        for start in range(0, len(data), PART):
            self._write(address + start, data[start : start + PART])

    def read(self, address: int, size: int) -> bytes:
        """Load bytes, from any address."""
        self._check(address, size, "read")
        return b"".join(self._read(address + start, min(PART, size - start)) for start in range(0, size, PART))

    def _check(self, address: int, size: int, what: str) -> None:
        if address < 0 or size < 0 or address + size > 1 << self._module.bits:
            raise WireError(f"asked to {what} {size} bytes of memory at {address:#x}, which are not within the {self._module.bits} bits of its addresses")

    def _write(self, address: int, data: bytes) -> None:
        def build(batch: Batch) -> None:
            for piece in pieces(address, len(data), self._unit, self._stored):
                start = piece.address - address
                self._store(batch, piece, data[start : start + piece.size])

        self._module.borrow(S0, S1)
        try:
            self._module.run(build)
        except CommandError as error:
            raise self._refused(error, "write", address, len(data)) from error

    def _read(self, address: int, size: int) -> bytes:
        def build(batch: Batch) -> list[tuple[Piece, list[Rows]]]:
            return [(piece, self._load(batch, piece)) for piece in pieces(address, size, self._unit, self._loaded)]

        self._module.borrow(S0, S1)
        try:
            answers, places = self._module.run(build)
        except CommandError as error:
            raise self._refused(error, "read", address, size) from error
        return b"".join(_loaded(answers, piece, found) for piece, found in places)

    def _store(self, batch: Batch, piece: Piece, data: bytes) -> None:
        words = _words(piece, data)
        registers = tuple(DATA0 + index for index in reversed(range(piece.words)))
        command = self._module.access(S1, 64 if piece.unit == 8 else 32) | TRANSFER | WRITES | POSTEXEC
        self._module.put(batch, S0, piece.address)
        self._module.program(batch, _store_program(piece, self._module.parts.data_address))
        for register, word in zip(registers, words[0].tolist(), strict=True):
            batch.write(register, word)
        batch.write(COMMAND, command, starts=True)
        if piece.runs == 1:
            return
        if self._module.parts.automatic:
            batch.write(ABSTRACTAUTO, 1)
            batch.write_rows(words[1:], registers)
            batch.write(ABSTRACTAUTO, 0)
            return
        again = np.full((piece.runs - 1, 1), command, np.uint32)
        batch.write_rows(np.hstack([words[1:], again]), (*registers, COMMAND))

    def _load(self, batch: Batch, piece: Piece) -> list[Rows]:
        """Each run leaves its units in the data; reading their lowest word starts the next."""
        command = self._module.access(S1)
        registers = tuple(DATA0 + index for index in reversed(range(piece.words)))
        self._module.put(batch, S0, piece.address)
        self._module.program(batch, _load_program(piece, self._module.parts.data_address))
        batch.write(COMMAND, command | POSTEXEC, starts=True)
        if piece.units > 1:
            return [*self._each(batch, piece.runs - 1, registers, command | POSTEXEC), _plain(batch, registers)]
        found = []
        if piece.runs > 1:
            # s1 goes to the data as the next run starts: it is one ahead and must not load beyond the end.
            batch.write(COMMAND, command | TRANSFER | POSTEXEC, starts=True)
            found = [*self._each(batch, piece.runs - 2, registers, command | TRANSFER | POSTEXEC), _plain(batch, registers)]
        batch.write(COMMAND, command | TRANSFER, starts=True)
        return [*found, _plain(batch, registers)]

    def _each(self, batch: Batch, runs: int, registers: tuple[int, ...], command: int) -> list[Rows]:
        if not runs:
            return []
        if self._module.parts.automatic:
            batch.write(ABSTRACTAUTO, 1)
            found = [Rows(batch.read_rows(runs, registers), runs, len(registers))]
            batch.write(ABSTRACTAUTO, 0)
            return found
        found = []
        for _ in range(runs):
            found.append(_plain(batch, registers))
            batch.write(COMMAND, command, starts=True)
        return found

    def _refused(self, error: CommandError, what: str, address: int, size: int) -> WireError:
        if error.code != EXCEPTION:
            return error
        block, advice = (self._stored, ", and is it writable") if what == "write" else (self._loaded, "")
        found = f"the processor took an exception in the {block * self._unit} bytes from 0x{self._module.held(S0):x}"
        return WireError(f"asked to {what} {size} bytes of memory at 0x{address:x}: {found}; is there memory{advice}?")


@dataclass(frozen=True, slots=True)
class Rows:
    """Answers of `Batch.read_rows`."""

    at: int
    runs: int
    words: int


def _plain(batch: Batch, registers: tuple[int, ...]) -> Rows:
    return Rows(batch.read_rows(1, registers), 1, len(registers))


def _loaded(answers: Answers, piece: Piece, found: list[Rows]) -> bytes:
    words = np.concatenate([answers.rows(rows.at, rows.runs, rows.words) for rows in found])[:, ::-1]
    octets = np.ascontiguousarray(words, "<u4").view(np.uint8).reshape(piece.runs, -1)
    return octets[:, : piece.block].tobytes()


def _words(piece: Piece, data: bytes) -> NDArray[np.uint32]:
    """shape: (runs, words), the highest word first: writing the lowest one starts a run."""
    octets = np.zeros((piece.runs, piece.words * 4), np.uint8)
    octets[:, : piece.block] = np.frombuffer(data, np.uint8).reshape(piece.runs, piece.block)
    return octets.view("<u4")[:, ::-1]


def _store_program(piece: Piece, data: int | None) -> tuple[int, ...]:
    program = [_store(piece.unit, _S1, 0, _S0)]
    for offset in range(piece.unit, piece.block, piece.unit):
        program += [_load(piece.unit, _S1, (data or 0) + offset, _ZERO), _store(piece.unit, _S1, offset, _S0)]
    return (*program, _add(piece.block))


def _load_program(piece: Piece, data: int | None) -> tuple[int, ...]:
    if piece.units == 1:
        return _load(piece.unit, _S1, 0, _S0), _add(piece.block)
    program = []
    for offset in range(0, piece.block, piece.unit):
        program += [_load(piece.unit, _S1, offset, _S0), _store(piece.unit, _S1, (data or 0) + offset, _ZERO)]
    return (*program, _add(piece.block))


def _load(unit: int, register: int, offset: int, base: int) -> int:
    return offset << 20 | base << 15 | _WIDTH[unit] << 12 | register << 7 | 0x03


def _store(unit: int, register: int, offset: int, base: int) -> int:
    return (offset >> 5) << 25 | register << 20 | base << 15 | _WIDTH[unit] << 12 | (offset & 31) << 7 | 0x23


def _add(size: int) -> int:
    return size << 20 | _S0 << 15 | _S0 << 7 | 0x13
