"""Grouped and depthwise convolutions with the groups as a dimension, for cores that multiply whole blocks of channels (`ansor.vta.groups`)."""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Algorithm, Alternative, register_algorithm
from ansor.ir.dag import Dag
from ansor.vta.groups import in_groups

NAME = "groups"
BLOCKS = tuple(1 << bits for bits in range(9))
"""The block sizes of all cores, in channels."""


def _in_blocks(block: int) -> Algorithm:
    def grouped(dag: Dag) -> Iterator[Alternative]:
        found = in_groups(dag, block)
        if found is not None:
            yield Alternative(NAME, *found)

    return grouped


for _block in BLOCKS:
    register_algorithm(f"{NAME}_{_block}", everywhere=False)(_in_blocks(_block))
