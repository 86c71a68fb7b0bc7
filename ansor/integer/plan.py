"""Places the tensors of an integer network in one arena, so that tensors that are live at the same time do not overlap.

A reshaped tensor shares the memory of its source. An element-wise operator overwrites an operand that is not read later. Kernel workspaces are in the arena,
too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.graph.memory import Buffer, Plan, aligned, placed, planned
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Operator, Reshape

EXCHANGES = 500
"""The most orders of buffers that are tried."""


@dataclass(frozen=True)
class ArenaPlan:
    """offsets: byte offset of every tensor in the arena; workspaces: byte offset of every step's workspace; size: bytes of the arena; alive: bytes that are
    live during each step, including its workspace."""

    offsets: Mapping[str, int]
    workspaces: tuple[int, ...]
    size: int
    alive: tuple[int, ...]


def steps_of(network: IntegerNetwork) -> tuple[Operator, ...]:
    """The operators that run code, which are all but the reshapes, in order."""
    return tuple(one for one in network.operators if not isinstance(one, Reshape))


def roots_of(network: IntegerNetwork) -> dict[str, str]:
    """Tensor -> the tensor whose memory it uses, which may be itself."""
    last = _last_uses(network)
    roots = {name: name for name in network.inputs}
    kept = {name for name in network.outputs}
    for index, one in enumerate(network.operators):
        if isinstance(one, Reshape):
            roots[one.output] = roots[one.inputs[0]]
            continue
        apart = {roots[name] for name in one.inputs if name not in one.replaced}
        free = [name for name in one.replaced if roots[name] not in apart and _is_free(roots, roots[name], last, index, kept)]
        roots[one.output] = roots[free[0]] if free else one.output
    return roots


def _last_uses(network: IntegerNetwork) -> dict[str, int]:
    """The index of the last operator that reads each tensor."""
    return {name: index for index, one in enumerate(network.operators) for name in one.inputs}


def _is_free(roots: Mapping[str, str], root: str, last: Mapping[str, int], index: int, kept: set[str]) -> bool:
    """Whether nothing reads the memory of `root` after this operator."""
    there = [name for name, place in roots.items() if place == root]
    return all(last.get(name, -1) <= index and name not in kept for name in there)


def smallest(buffers: Sequence[Buffer], alignment: int) -> Plan:
    """A small plan. Places the largest buffers first, then tries orders with two buffers exchanged, until the plan is no larger than the peak of the steps."""
    steps = range(max((one.last for one in buffers), default=-1) + 1)
    least = max((sum(aligned(one.size, alignment) for one in buffers if one.first <= step <= one.last) for step in steps), default=0)
    best, order, chance = planned(buffers, alignment), sorted(buffers, key=lambda one: (-one.size, one.first, one.name)), random.Random(0)
    for _ in range(EXCHANGES if len(order) > 1 else 0):
        if best.size <= least:
            break
        tried = list(order)
        one, other = chance.sample(range(len(tried)), 2)
        tried[one], tried[other] = tried[other], tried[one]
        found = placed(tried, alignment)
        if found.size <= best.size:
            best, order = found, tried
    return best


def arena_of(network: IntegerNetwork, workspaces: Sequence[int], alignment: int) -> ArenaPlan:
    """The arena plan of a network. workspaces: bytes that the kernel of each step needs, in the order of `steps_of`."""
    roots, steps = roots_of(network), steps_of(network)
    at = {one.output: index for index, one in enumerate(steps)}
    spans: dict[str, tuple[int, int, int]] = {}  # root -> bytes, first and last step

    def touch(name: str, step: int) -> None:
        root = roots[name]
        size, first, last = spans.get(root, (0, step, step))
        spans[root] = (max(size, network.tensors[name].size), min(first, step), max(last, step))

    for name in network.inputs:
        touch(name, 0)
    for step, one in enumerate(steps):
        for name in (*one.inputs, one.output):
            touch(name, step)
    for name in network.outputs:
        touch(name, len(steps))
    buffers = [Buffer(root, *span) for root, span in spans.items()]
    buffers += [Buffer(f"({step})", size, step, step) for step, size in enumerate(workspaces) if size]
    plan = smallest(buffers, alignment)
    offsets = {name: plan.offsets[root] for name, root in roots.items()}
    alive = tuple(sum(one.size for one in buffers if one.first <= step <= one.last) for step in range(len(at)))
    return ArenaPlan(offsets, tuple(plan.offsets.get(f"({step})", 0) for step in range(len(at))), plan.size, alive)
