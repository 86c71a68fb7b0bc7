"""What is known to be in a board's memory, so that a wire brings only what differs: the harness goes over it once, and a few kilobytes for each candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansor.codegen.image.elf import Segment
from ansor.measure.wire.wire import Wire

BLOCK = 64  # bytes that are compared, and written, together


class Shadow:
    """The memory of a board as it was written through one wire."""

    def __init__(self) -> None:
        self._blocks: dict[int, bytes] = {}

    def bring(self, wire: Wire, segments: Iterable[Segment]) -> int:
        """Write what differs; how many bytes went. What a wire failed to write is not known to be there."""
        sent = 0
        for run in _joined(one for segment in segments for one in _blocks(segment) if self._blocks.get(one.address) != one.content):
            for one in _blocks(run):
                self._blocks.pop(one.address, None)
            wire.write(run.address, run.content)
            sent += len(run.content)
            self._blocks.update((one.address, one.content) for one in _blocks(run))
        return sent

    def agrees(self, wire: Wire, segments: Iterable[Segment]) -> bool:
        """Whether the board's memory still holds these; read back."""
        return all(wire.read(one.address, len(one.content)) == one.content for one in segments)

    def forget(self) -> None:
        """Nothing is known any more."""
        self._blocks.clear()


def _blocks(segment: Segment) -> Iterator[Segment]:
    """Parts that end where addresses are multiples of a block."""
    at = segment.address
    while at < segment.end:
        end = min(segment.end, (at // BLOCK + 1) * BLOCK)
        yield Segment(at, segment.content[at - segment.address : end - segment.address])
        at = end


def _joined(parts: Iterable[Segment]) -> Iterator[Segment]:
    """Neighbours as one."""
    last: Segment | None = None
    for one in parts:
        if last is not None and last.end == one.address:
            last = Segment(last.address, last.content + one.content)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last
