"""Products of bytes in 32-bit registers: three sums in two registers where possible, otherwise two products per multiplication.

Three sums in two registers take four instructions for three products; two products per multiplication take seven for four. Searching both would waste time.
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
    """The better of the two that applies."""
    yield from list(three_in_two(dag)) or packed_in_32(dag)
