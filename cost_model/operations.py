"""The operations of a statement's value, by the buffers that they depend on: what an unrolled loop does not change is computed once for all its iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ansor.cost_model.copies import shares
from ansor.cost_model.nest import Nest
from ansor.ir.loops import Access, Buffer, IndexValue, Store
from ansor.te.expr import COMPARISONS, DIVISIONS, Binary, Call, Cast, Const, Expr, Select, is_float
from ansor.te.fold import fold, postorder, walk
from ansor.te.scalar import ROUNDING, small_power

EXTREME = 2.0
"""Instructions of a minimum or maximum of floats, which have to keep NaN."""

DIVISION = 0.5
"""The cost of a division or a square root, relative to a function such as exp."""

SHORT = frozenset({"fabs", "copysign", *ROUNDING})
"""Functions that are one instruction."""

Reads = frozenset[Buffer] | None
"""The buffers that operations read; None if they also depend on loop variables."""

Kind = Literal["arithmetic", "choices", "calls"]


@dataclass(frozen=True)
class Operations:
    """Operations that depend on the same buffers, for one element or one vector.

    arithmetic: instructions; choices: selections between two values; calls: functions such as exp, with a division or square root as `DIVISION` of one.
    """

    reads: Reads
    arithmetic: float = 0.0
    choices: float = 0.0
    calls: float = 0.0


def operations_of(nest: Nest, optimizes: bool) -> tuple[Operations, ...]:
    """The operations of a store, including its reduction; of what only some copies of an unrolled body compute, their share. optimizes: see `Issue`; if False,
    all operations are one entry, with one instruction for all of the arithmetic, and each copy counts as computing all."""
    store = nest.store
    if not optimizes:
        nodes = list(walk(store.value))
        return (Operations(None, 1.0, float(sum(isinstance(node, Select) for node in nodes)), float(sum(isinstance(node, Call) for node in nodes))),)
    found: dict[Reads, Operations] = {None: Operations(None, 1.0 if store.combiner is None else _combining(store))}
    reads, computed = _reads(store.value), shares(store.value, nest.path)
    added = store.value if store.combiner == "sum" else None
    for node in postorder(store.value):
        kind, count = _count(node, added, reads)
        share = computed.get(id(node), 0.0) if computed else 1.0
        if count and share:
            key = reads[id(node)] if share == 1.0 else None
            before = found.get(key, Operations(key))
            found[key] = replace(before, **{kind: getattr(before, kind) + share * count})
    return tuple(found.values())


def _combining(store: Store) -> float:
    return EXTREME if store.combiner in ("max", "min") and is_float(store.buffer.dtype) else 1.0


def _reads(value: Expr) -> dict[int, Reads]:
    """The buffers that each node depends on, by its id."""
    found: dict[int, Reads] = {}

    def note(node: Expr, below: tuple[Reads, ...]) -> Reads:
        reads: Reads = frozenset({node.buffer}) if isinstance(node, Access) else None if isinstance(node, IndexValue) else frozenset()
        for one in below:
            reads = None if reads is None or one is None else reads | one
        found[id(node)] = reads
        return reads

    fold(value, note)
    return found


def _count(node: Expr, added: Expr | None, reads: Mapping[int, Reads]) -> tuple[Kind, float]:
    """What a node costs. added: what the reduction adds; if it is a product, both are one instruction. reads: as `_reads` returns them."""
    if isinstance(node, Select):
        return "choices", 1.0
    if isinstance(node, Call):
        return _count_call(node)
    if isinstance(node, Cast):
        return "arithmetic", 1.0
    if not isinstance(node, Binary) or node.op in COMPARISONS or node.dtype == "bool":
        return "arithmetic", 0.0
    if node.op == "div" or node.op in DIVISIONS:
        return "calls", DIVISION
    if node.op in ("min", "max") and is_float(node.dtype):
        return "arithmetic", 1.0 if isinstance(node.right, Const) or isinstance(node.left, Const) else EXTREME
    fused = node.op == "mul" and node is added
    return "arithmetic", float(not fused and not _adds_product(node, reads))


def _count_call(call: Call) -> tuple[Kind, float]:
    """What a function costs: some are a single instruction, as fast as an addition, or as slow as a division."""
    if call.name in SHORT or small_power(call):
        return "arithmetic", max(1.0, float((small_power(call) + 1) // 2))
    return "calls", DIVISION if call.name == "sqrt" else 1.0


def _adds_product(node: Binary, reads: Mapping[int, Reads]) -> bool:
    """Whether one of its operands is a product that is computed as often, so that both are one instruction: counted for the product."""
    products = [operand for operand in node.children if isinstance(operand, Binary) and operand.op == "mul"]
    return node.op in ("add", "sub") and any(reads[id(product)] == reads[id(node)] for product in products)
