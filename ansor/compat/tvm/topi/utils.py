"""`tvm.topi.utils`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import SupportsIndex

from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # what is not here raises
from ansor.ir.access import producers
from ansor.manual.schedule import Schedule
from ansor.te.operation import Operation


def get_const_int(expr: SupportsIndex) -> int:
    """A number as Python's."""
    return operator.index(expr)


def get_const_tuple(in_tuple: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """A shape: here it is one already."""
    return tuple(map(operator.index, in_tuple))


def traverse_inline(s: Schedule, final_op: Operation, callback: Callable[[Operation], object]) -> None:
    """Call `callback` with every operation that `final_op` is computed from, itself included, and inline those that only move or combine elements."""
    seen: set[int] = set()

    def visit(op: Operation) -> None:
        if id(op.tensor) in seen:
            return
        seen.add(id(op.tensor))
        if is_injective(op) and op != final_op:
            s[op].compute_inline()
        for tensor in producers(op.tensor):
            if not tensor.is_placeholder:
                visit(tensor.op)
        callback(op)

    visit(final_op)


def is_injective(op: Operation) -> bool:
    """Whether an operation has no reduction and reads everything by its own indices, as `topi.tag.is_injective` asks by tags."""
    return not op.reduce_axis and not op.tensor.is_placeholder


def nchw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with batches and channels in blocks: `NCHW1n16c`."""
    return layout_info.startswith("NCHW") and {"n", "c"} <= set(layout_info[4:])


def nchw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with channels only in blocks: `NCHW16c`."""
    return layout_info.startswith("NCHW") and "c" in layout_info[4:] and "n" not in layout_info[4:]
