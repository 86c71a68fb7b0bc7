"""Names of `tvm.te` that differ from ours in meaning, or that we do not have.

Reads are checked when a program is built, a computation of a tuple is one operation, sizes may be given at the call, and limits of floats are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload
from weakref import WeakKeyDictionary, ref

import numpy as np

from ansor import te
from ansor.compat.common.threads import BindingSchedule
from ansor.manual import schedule
from ansor.manual.schedule import Schedule, Scheduled
from ansor.manual.scheduled_stage import as_list
from ansor.support.bfloat16 import BFLOAT16, EPSILON
from ansor.te import scalar
from ansor.te.expr import Const, Expr, Operand, is_float
from ansor.te.size import Size, open_size
from ansor.te.tensor import Operation, Tensor, placeholder

_together: WeakKeyDictionary[Tensor, list[ref[Tensor]]] = WeakKeyDictionary()
"""A tensor from a computation of a tuple -> all tensors of that tuple."""


def compute(
    shape: int | Sequence[int], fcompute: Callable[..., Operand | Sequence[Operand]], name: str = "compute", tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:  # fmt: skip
    """`ansor.te.compute`, except that it accepts reads out of bounds; `tvm.lower`, `tvm.build` and the tuners raise for them."""
    made = te.compute(shape, fcompute, name, tag, attrs, check_reads=False)
    if isinstance(made, tuple):
        _together.update(dict.fromkeys(made, [ref(one) for one in made]))
    return made


def create_schedule(ops: Scheduled | Sequence[Scheduled]) -> Schedule:
    """`ansor.manual.create_schedule`, with stages that can be bound to GPU threads.

    A computation of a tuple is scheduled as a whole: each of its tensors, in order, is a stage and a result.
    """
    wanted: dict[int, Scheduled] = {}
    for one in as_list(ops):
        tensor = one.tensor if isinstance(one, Operation) else one
        wanted.update({id(member): member for member in _members(tensor)})
    return BindingSchedule(schedule.create_schedule(list(wanted.values())).dag)


def _members(what: object) -> list[Scheduled]:
    """The tensor itself, or all tensors of its tuple that still exist."""
    known = _together.get(what, ()) if isinstance(what, Tensor) else ()
    return [member for one in known if (member := one()) is not None] or [what]  # type: ignore[list-item]  # create_schedule refuses anything else


class _Kind(type):
    """Implements `isinstance`, since our operations have a single class."""

    given: bool

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Operation) and instance.tensor.is_placeholder == cls.given


class PlaceholderOp(metaclass=_Kind):
    """An operation whose tensor is an input."""

    given = True


class ComputeOp(metaclass=_Kind):
    """An operation that computes a tensor."""

    given = False


@overload
def var(name: str = "tindex", dtype: None = None) -> Size: ...


@overload
def var(name: str, dtype: str) -> Expr: ...


def var(name: str = "tindex", dtype: str | None = None) -> Size | Expr:
    """A size that is passed when a function is called; with a dtype, a scalar of that type. Shapes cannot depend on a scalar."""
    return open_size(name) if dtype is None else placeholder((), dtype, name)[()]


def size_var(name: str = "size", dtype: str = "int32") -> Size:
    """A size that is passed when a function is called."""
    return open_size(name)


def min_value(dtype: str) -> Const:
    """The least finite value of `dtype`. For floats, `ansor.te.min_value` is infinite instead."""
    return Const(-_greatest(dtype), dtype) if is_float(dtype) else scalar.min_value(dtype)


def max_value(dtype: str) -> Const:
    """The greatest finite value of `dtype`. For floats, `ansor.te.max_value` is infinite instead."""
    return Const(_greatest(dtype), dtype) if is_float(dtype) else scalar.max_value(dtype)


def _greatest(dtype: str) -> float:
    return (2 - EPSILON) * 2.0**127 if dtype == BFLOAT16 else float(np.finfo(dtype).max)
