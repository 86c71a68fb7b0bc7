"""Calls of one network with inputs of any length: inputs are padded, and results are cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ansor.graph.export import CallArguments
from ansor.graph.network import CompiledNetwork
from ansor.graph.opened import closed
from ansor.graph.spans import Padding, Spans, before, cut
from ansor.networks.model_runs import Leaf, flat
from ansor.networks.size_arithmetic import padded_array

SHORTEST, STEP = 16, 8
"""The least length that networks are compiled for by default, since calls take hardly less time below; and what all but the largest are multiples of."""


def lengths_up_to(largest: int) -> tuple[int, ...]:
    """The lengths that calls are padded to, the smallest first: four between a power of two and the next. From 32 on, less than a fifth of it is padding."""
    found = {(part << bit) // 4 for bit in range(largest.bit_length()) for part in (4, 5, 6, 7)}
    return tuple(sorted({one for one in found if SHORTEST <= one < largest and one % STEP == 0} | {largest}))


@lru_cache
def length_for(length: int) -> int:
    """The length to which a call is padded if the largest is not known."""
    return next(one for one in lengths_up_to(4 * max(length, SHORTEST)) if one >= length)


def shortest_for(length: int) -> int:
    """The least length for which `length_for` gives this one."""
    return max((one + 1 for one in lengths_up_to(length) if one < length), default=1)


def others_of(length: int, shortest: int) -> tuple[int, int]:
    """The lengths to compare the graph for one length with, in order of preference. PyTorch treats an extent of 1 as a case of its own."""
    return min(max(shortest, 2), length - 1), length - 1


def lengths_to_try(length: int, shortest: int) -> tuple[int, int]:
    """The lengths for which results of a network are compared with the model's: the shortest, and one about in the middle. That has no common divisor with the
    network's length, since a model may round its length to a multiple of something."""
    middle = (shortest + length) // 2
    return shortest, next((one for one in range(middle, length) if gcd(one, length) == 1), shortest)


@dataclass(frozen=True, eq=False)
class PaddedNetwork:
    """A network that takes inputs padded to one length, and how it is called."""

    network: CompiledNetwork
    padding: Padding

    def __call__(self, call: CallArguments, length: int) -> object:
        """The results for arguments that are padded, cut to the length."""
        args, kwargs = call
        given = self.network(*args, **kwargs, **{self.padding.keyword: np.asarray([length], np.int32)})
        if isinstance(given, Leaf):
            return self._cut(given, self.padding.ends[0], length)
        leaves, tree = flat(given)
        return closed(pytree.tree_unflatten([self._cut(*one, length) for one in zip(leaves, self.padding.ends, strict=True)], tree))

    def _cut(self, leaf: object, spans: Spans | None, length: int) -> object:
        if isinstance(leaf, torch.Tensor):
            return before(leaf, spans, self.padding.length, length).contiguous() if spans and length != self.padding.length else leaf
        return cut(leaf, spans, self.padding.length, length) if isinstance(leaf, np.ndarray) else leaf


def padded_or_cut(leaf: Leaf, axis: int, length: int) -> Leaf:
    """An input of another length: cut, or padded with its last element, which is an index if the input holds indices."""
    more = length - leaf.shape[axis]
    whole = (slice(None),) * axis
    if more <= 0:
        return leaf[(*whole, slice(length))]
    if isinstance(leaf, torch.Tensor):
        return torch.cat([leaf, leaf[(*whole, slice(-1, None))].expand(*leaf.shape[:axis], more, *leaf.shape[axis + 1 :])], axis)
    return padded_array(leaf, axis, length)
