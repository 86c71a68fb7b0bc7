"""Orders the tensors of a declaration, which gives the stages their numbers. Source: TVM 0.9, `auto_scheduler` compute_dag."""

from __future__ import annotations

from collections.abc import Sequence

import networkx

from ansor.te.tensor import Read, Tensor


def topological(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Every tensor after those it reads. On a tie, the one that a depth-first walk from the last of `tensors` reaches last."""
    known: dict[int, Tensor] = {}
    order = networkx.DiGraph()
    stack = list(tensors)
    while stack:
        op = stack.pop()
        if id(op) in known:
            continue
        known[id(op)] = op
        order.add_node(id(op), late=len(known))
        for source in read_in_order(op):
            order.add_edge(id(source), id(op))
            stack.append(source)
    return [known[key] for key in networkx.lexicographical_topological_sort(order, key=lambda key: -order.nodes[key]["late"])]


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
