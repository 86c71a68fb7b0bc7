"""A first-fit allocator for a memory, and a cache of micro-ops that evicts the least recently used."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Space:
    """Allocates pieces of the range [first, end). Starts are multiples of `unit`."""

    first: int
    end: int
    unit: int = 1
    taken: dict[int, int] = field(default_factory=dict)

    def take(self, length: int) -> int | None:
        """The start of a free piece of this length; None if no gap is long enough."""
        start = self._rounded(self.first)
        for used in sorted(self.taken):
            if used - start >= length:
                break
            start = max(start, self._rounded(used + self.taken[used]))
        if start + length > self.end:
            return None
        self.taken[start] = max(length, self.unit)
        return start

    def give_back(self, start: int) -> None:
        """Free a piece that `take` returned."""
        del self.taken[start]

    @property
    def free(self) -> int:
        """The free length of all gaps together."""
        return self.end - self.first - sum(self.taken.values())

    def _rounded(self, place: int) -> int:
        return -(-place // self.unit) * self.unit


@dataclass
class Residents:
    """The micro-ops in the memory UOP of a core, by their contents. depth: how many UOP holds."""

    depth: int
    starts: dict[bytes, int] = field(default_factory=dict)
    _space: Space = field(init=False)

    def __post_init__(self) -> None:
        self._space = Space(0, self.depth)

    def place(self, key: bytes, count: int) -> tuple[int, bool]:
        """The start of these micro-ops, and whether they were there already. Evicts the least recently used ones if space is needed."""
        if (start := self.starts.pop(key, None)) is not None:
            self.starts[key] = start
            return start, True
        while (start := self._space.take(count)) is None:
            self._space.give_back(self.starts.pop(next(iter(self.starts))))
        self.starts[key] = start
        return start, False
