"""Checksums of a board's memory and text, as `ansor/codegen/image/bare.c` computes them. They tell whether memory is still as written.

A single changed word always changes the checksum. Several changed words leave it unchanged once in 2^32 times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.image.elf import Image, Segment

STOP_BYTES = 16  # at the address where runs end: the wire may overwrite them
_STEP = 0x9E3779B9
_BITS = 0xFFFFFFFF


def memory_sum(parts: Sequence[Segment], nonce: int) -> int:
    """The checksum of bytes in memory, as little-endian words; each part is padded with zeros."""
    return _summed(np.frombuffer(b"".join(one.content + bytes(-len(one.content) % 4) for one in parts), "<u4"), nonce)


def text_sum(text: str, nonce: int) -> int:
    """The checksum of the text that a run wrote; every byte counts as a word."""
    return _summed(np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.uint32), nonce)


def standing(image: Image) -> tuple[Segment, ...]:
    """The parts of an image that a run leaves unchanged: all but the bytes where it ends."""
    stop = image.symbols["ansor_stop"] & ~1
    around = [part for one in image.segments for part in (_cut(one, one.address, stop), _cut(one, stop + STOP_BYTES, one.end))]
    return tuple(one for one in around if one.content)


def _cut(part: Segment, start: int, end: int) -> Segment:
    low, high = max(part.address, start), min(part.end, end)
    return Segment(low, part.content[low - part.address : high - part.address] if low < high else b"")


def _summed(words: NDArray[np.uint32], key: int) -> int:
    keys = np.arange(words.size, dtype=np.uint32) * np.uint32(_STEP) + np.uint32(key & _BITS)
    return int(_mixed(words ^ keys).sum(dtype=np.uint64)) & _BITS


def _mixed(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    bits = (bits ^ bits >> np.uint32(16)) * np.uint32(0x7FEB352D)
    bits = (bits ^ bits >> np.uint32(15)) * np.uint32(0x846CA68B)
    return bits ^ bits >> np.uint32(16)
