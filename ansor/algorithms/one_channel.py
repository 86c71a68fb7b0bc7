"""Adds an axis for the channel to products of a single input channel, for cores that sum along channels (`ansor.vta.one_channel`)."""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.rewrite import with_tensor
from ansor.ir.dag import Dag
from ansor.vta.one_channel import single_channel

NAME = "one_channel"


@register_algorithm(NAME, everywhere=False)
def one_channel(dag: Dag) -> Iterator[Alternative]:
    """The workload with an axis for its single channel, if it lacks one."""
    found = single_channel(dag)
    if found is not None:
        yield Alternative(NAME, with_tensor(dag, *found))
