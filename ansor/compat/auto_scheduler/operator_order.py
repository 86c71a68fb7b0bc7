"""The order of a declaration's tensors, which numbers the stages. Source: TVM 0.9, `auto_scheduler` compute_dag."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from ansor.te.tensor import Read, Tensor


def topological(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor after those it reads. On a tie, the one that a depth-first walk from the last of `tensors` reaches last."""
    met: dict[int, int] = {}
    known: dict[int, Tensor] = {}
    readers: dict[int, list[Tensor]] = {}
    waiting = Counter[int]()
    stack = list(tensors)
    while stack:
        op = stack.pop()
        if id(op) in met:
            continue
        met[id(op)], known[id(op)] = len(met), op
        for source in read_in_order(op):
            readers.setdefault(id(source), []).append(op)
            waiting[id(op)] += 1
            stack.append(source)
    ready = [(-met[key], key) for key in met if not waiting[key]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, key = heapq.heappop(ready)
        order.append(known[key])
        for reader in readers.get(key, []):
            waiting[id(reader)] -= 1
            if not waiting[id(reader)]:
                heapq.heappush(ready, (-met[id(reader)], id(reader)))
    return order


def read_in_order(op: Tensor) -> list[Tensor]:
    """The tensors that `op` reads, each once. A tensor read inside an index precedes the tensor that it indexes."""
    found: dict[int, Tensor] = {}
    stack = [(op.compute.body, False)] if op.compute else []
    while stack:
        node, ready = stack.pop()
        if ready:
            if isinstance(node, Read):
                found.setdefault(id(node.tensor), node.tensor)
        else:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.children)]
    return list(found.values())
