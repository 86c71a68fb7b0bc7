"""Places at the end of a board's memory that persist across programs: outputs of references, and values from files."""

from __future__ import annotations

ALIGN = 64


class NoRoom(Exception):
    """The memory is too small for what must stay in it."""


class Places:
    """Memory between two addresses, allocated from its end."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end & -ALIGN
        self._taken: dict[int, int] = {}

    @property
    def low(self) -> int:
        """Where the taken part begins."""
        return min(self._taken, default=self._end)

    def take(self, size: int) -> int:
        """Allocate `size` bytes; returns their address. Raises NoRoom."""
        size = -(-max(size, 1) // ALIGN) * ALIGN
        above = self._end
        for start in sorted(self._taken, reverse=True):
            if above - self._taken[start] >= size:
                break
            above = start
        if above - size < self._start:
            raise NoRoom
        self._taken[above - size] = above
        return above - size

    def give_back(self, start: int) -> None:
        """Free a place."""
        self._taken.pop(start, None)
