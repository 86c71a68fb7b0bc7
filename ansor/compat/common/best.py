"""The best records of a log."""

import math
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

R = TypeVar("R")


def best(records: Iterable[R], cost: Callable[[R], float], groups: Callable[[R], Iterable[Hashable]], count: int = 1) -> list[R]:
    """The records that are among the `count` cheapest of any of their groups, in log order. On ties the first wins; infinite costs never count."""
    found: dict[Hashable, list[tuple[float, int]]] = {}
    numbered = list(enumerate(records))
    for number, record in numbered:
        for group in groups(record) if math.isfinite(cost(record)) else ():
            found.setdefault(group, []).append((cost(record), number))
    kept = {number for group in found.values() for _, number in sorted(group)[:count]}
    return [record for number, record in numbered if number in kept]
