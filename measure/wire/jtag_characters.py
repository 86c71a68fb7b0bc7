"""Encodes clocks of a JTAG port as characters of the remote bitbang protocol, in bulk.

A digit sets three pins: 4 is TCK, 2 is TMS, 1 is TDI. `R` reads TDO. A clock is its low half, at which TDO changes, then its high half, at which TMS and TDI
are sampled; TDO is read between them. A scan begins in Run-Test/Idle or an Update state and ends in an Update state, so that scans may follow each
other without Run-Test/Idle in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

IDLE = b"04"
TO_RESET = b"26" * 5
"""Test-Logic-Reset, from any state."""

NOTHING, READ, WRITE = 0, 1, 2
"""Operations of a scan of the debug module interface."""

OPERATION_BITS, WORD_BITS = 2, 32
_DATA_AT = 2 * (3 + OPERATION_BITS)  # Select-DR, Capture-DR, Shift-DR, and the operation


def path(modes: str) -> bytes:
    """Clocks with these values of TMS, TDI low."""
    return modes.replace("1", "26").replace("0", "04").encode()


def scan(value: int, bits: int, modes: str = "100", answer: tuple[int, int] = (0, 0)) -> bytes:
    """Shift in `bits` of `value`, the lowest first. modes: TMS on the way to the shift state.

    answer: the first bit shifted out to read, and the one after the last."""
    clocks = [path(modes)]
    for bit in range(bits):
        digit = (value >> bit & 1) + (2 if bit == bits - 1 else 0)
        clocks.append(b"%d%s%d" % (digit, b"R" if answer[0] <= bit < answer[1] else b"", digit + 4))
    clocks.append(path("1"))
    return b"".join(clocks)


def instruction(value: int, bits: int) -> bytes:
    """Load the instruction register."""
    return scan(value, bits, "1100")


@dataclass(frozen=True, slots=True)
class ModuleScans:
    """Scans of the debug module interface (DMI), a register of 34 bits and `address_bits`: operation, word, address."""

    address_bits: int

    @property
    def bits(self) -> int:
        """The length of the register."""
        return OPERATION_BITS + WORD_BITS + self.address_bits

    def one(self, operation: int, address: int = 0, word: int = 0, answer: tuple[int, int] = (0, 0)) -> bytes:
        """One scan. The bits it shifts out, from answer[0] up to answer[1], are the outcome of the previous scan."""
        return _module_scan(self.bits, address << 34 | (word & 0xFFFFFFFF) << 2 | operation, answer)

    def writes(self, words: NDArray[np.uint32], registers: Sequence[int], after: bytes) -> bytes:
        """Many rows of writes. words: (rows, registers); `after` follows each row."""
        rows = len(words)
        scans = [self.one(WRITE, register) for register in registers]
        template = np.frombuffer(b"".join(scans) + after, np.uint8)
        text = np.empty((rows, len(template)), np.uint8)
        text[:] = template
        octets = np.ascontiguousarray(words, "<u4").view(np.uint8).reshape(rows, len(registers), 4)
        pins = np.repeat(np.unpackbits(octets, axis=2, bitorder="little"), 2, axis=2)
        for column in range(len(registers)):
            start = column * len(scans[0]) + _DATA_AT
            text[:, start : start + 2 * WORD_BITS] += pins[:, column]
        return text.tobytes()

    def reads(self, rows: int, registers: Sequence[int], after: bytes) -> bytes:
        """Many rows of reads; each scan shifts out the word of the previous one."""
        word = (OPERATION_BITS, OPERATION_BITS + WORD_BITS)
        return (b"".join(self.one(READ, register, answer=word) for register in registers) + after) * rows


@lru_cache(4096)
def _module_scan(bits: int, value: int, answer: tuple[int, int]) -> bytes:
    return scan(value, bits, answer=answer)


def number(bits: NDArray[np.uint8]) -> int:
    """The number that was shifted out, the lowest bit first."""
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def words_of(bits: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Words that were shifted out consecutively. bits: a multiple of 32."""
    return np.packbits(bits.reshape(-1, WORD_BITS), axis=1, bitorder="little").view("<u4").reshape(-1)
