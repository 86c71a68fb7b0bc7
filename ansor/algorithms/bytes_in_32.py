"""Products of bytes in registers of 32 bits: three sums in two registers where that is possible, two products for one multiplication elsewhere.

Three sums in two take four instructions for three products, two products at a time seven for four. Both would be searched, and one of them in vain.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.packed_products import packed_in_32
from ansor.algorithms.three_in_two import three_in_two
from ansor.ir.dag import Dag

NAME = "bytes_in_32"


@register_algorithm(NAME, everywhere=False)
def bytes_in_32(dag: Dag) -> Iterator[Alternative]:
    """The better one of the two that fits."""
    yield from list(three_in_two(dag)) or packed_in_32(dag)
