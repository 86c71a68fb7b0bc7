"""Products of one input channel with an axis of it, for cores that add along channels (`ansor.vta.one_channel`)."""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.rewrite import with_tensor
from ansor.ir.dag import Dag
from ansor.vta.one_channel import single_channel

NAME = "one_channel"


@register_algorithm(NAME, everywhere=False)
def one_channel(dag: Dag) -> Iterator[Alternative]:
    """The workload with an axis of its one channel, where a core needs one."""
    found = single_channel(dag)
    if found is not None:
        yield Alternative(NAME, with_tensor(dag, *found))
