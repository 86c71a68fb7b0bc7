"""Quotients and remainders in indices: counted where the C code computes them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ansor import te
from ansor.codegen.generate import generate
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.index_division import index_divisions
from ansor.dataset.drawn import drawn
from ansor.dataset.operators import DRAWN
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Loops, Node
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Fuse, PragmaUnroll, Reorder, Split, Step, Unroll, Vectorize
from ansor.search.derive import derive_sketches
from ansor.targets.base import parse_target

TARGET = parse_target("cpu -mcpu=x86-64-v4 -threads=1")
MACHINE = TARGET.machine
FUSED = Fuse("B", ("i", "j"))


def transposed(*steps: Step) -> Sketch:
    """B[i, j, k] = A[j, i, k], 4 by 6 by 10."""
    a = te.placeholder((6, 4, 10), name="A")
    return Sketch(Dag([a, te.compute((4, 6, 10), lambda i, j, k: a[j, i, k] * 2.0, name="B")])).then(*steps)


def straight(*steps: Step) -> Sketch:
    """B[i, j, k] = A[i, j, k], 4 by 6 by 10."""
    a = te.placeholder((4, 6, 10), name="A")
    return Sketch(Dag([a, te.compute((4, 6, 10), lambda i, j, k: a[i, j, k] * 2.0, name="B")])).then(*steps)


def window(*steps: Step) -> Sketch:
    """Sums over windows of 3 by 3, 5 by 7 of them."""
    a = te.placeholder((7, 9), name="A")
    k, m = te.reduce_axis(3, name="k"), te.reduce_axis(3, name="m")
    return Sketch(Dag([a, te.compute((5, 7), lambda i, j: te.sum(a[i + k, j + m], axis=[k, m]), name="B")])).then(*steps)


def counted(sketch: Sketch) -> float:
    """The divisions of the only statement but an initialisation."""
    (*_, statement) = statements_of(sketch.lower_row([]))
    return float(index_divisions(statement.nest))


def divides(loops: Loops) -> bool:
    """Whether the C code divides by a number in an index."""
    return re.search(r"\) [/%] \d+\b(?!\.)", generate(loops, MACHINE, "kernel").text) is not None


def without_pragmas(node: Node) -> Node:
    """The same loops, none of which the compiler is asked to unroll."""
    return replace(node, body=tuple(map(without_pragmas, node.body)), runs=replace(node.runs, unroll_limit=0)) if isinstance(node, For) else node


def divisions(loops: Loops) -> float:
    """The divisions of all statements."""
    return sum(float(index_divisions(statement.nest)) for statement in statements_of(loops))


CASES = {
    "not fused": (transposed(), 0),
    "neighbours in memory": (straight(FUSED), 0),
    "three neighbours in memory": (straight(FUSED, Fuse("B", ("i_j_f", "k"))), 0),
    "transposed, a quotient and a remainder": (transposed(FUSED), 2 * 24),
    "tiles as long as the inner axis": (transposed(FUSED, Split("B", "i_j_f", (6,), 2)), 0),
    "tiles that divide the inner axis: once for each tile": (transposed(FUSED, Split("B", "i_j_f", (3,), 2)), 2 * 8),
    "tiles of tiles": (transposed(FUSED, Split("B", "i_j_f", (1, 3), 3)), 2 * 8),
    "tiles across the end of the inner axis": (transposed(FUSED, Split("B", "i_j_f", (4,), 2)), 2 * 24),
    "windows": (window(Fuse("B", ("k", "m"))), 2 * 35 * 9),
}
WHOLE = window(Fuse("B", ("k", "m")), PragmaUnroll("B", 9))


@pytest.mark.parametrize("case", CASES)
def test_divisions_are_counted_where_the_code_computes_them(case: str) -> None:
    sketch, expected = CASES[case]
    assert counted(sketch) == expected
    assert divides(sketch.lower_row([])) == (expected > 0)


def test_compilers_divide_where_they_unroll_a_whole_reduction() -> None:
    assert counted(WHOLE) == 0 and divides(WHOLE.lower_row([]))
    assert counted(window(Fuse("B", ("k", "m")), PragmaUnroll("B", 8))) == 2 * 35 * 9


def test_compilers_divide_the_numbers_of_unrolled_loops() -> None:
    assert counted(transposed(FUSED, Unroll("B", "i_j_f"))) == 0 and counted(transposed(FUSED)) > 0
    assert counted(window(Fuse("B", ("k", "m")), Unroll("B", "k_m_f"))) == 0 and counted(window(Fuse("B", ("k", "m")))) > 0


@pytest.mark.parametrize(("limit", "expected"), [(4, 4 * 5), (19, 4 * 5), (20, 0)])
def test_a_vector_with_a_division_is_written_as_its_elements(limit: int, expected: int) -> None:
    a, k = te.placeholder((7,), name="A"), te.reduce_axis(4, name="k")
    sums = te.compute((5,), lambda j: te.sum(a[(k * 5 + j) // 3], axis=k), name="B")
    assert counted(Sketch(Dag([a, sums])).then(Reorder("B", ("k", "j")), Vectorize("B", "j"), PragmaUnroll("B", limit))) == expected


@pytest.mark.parametrize("seed", range(0, DRAWN, 24))
def test_code_divides_where_divisions_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sketches = derive_sketches(Dag(drawn(seed)), TARGET.rules, TARGET)
    for place in rng.permutation(len(sketches))[:5]:
        sketch = sketches[place]
        loops = sketch.lower_row([int(rng.integers(size)) for size in sketch.sizes])
        as_written = replace(loops, body=tuple(map(without_pragmas, loops.body)))
        assert divides(loops) == (divisions(as_written) > 0) and divisions(loops) <= divisions(as_written)
