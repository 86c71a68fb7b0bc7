"""`te.compute` and `te.create_schedule` as in TVM: reads are checked when a program is made, and a computation of a tuple is one operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary, ref

from ansor import te
from ansor.compat.common.threads import BindingSchedule
from ansor.manual import schedule
from ansor.manual.schedule import Schedule, Scheduled
from ansor.manual.scheduled_stage import as_list
from ansor.te.expr import Operand
from ansor.te.tensor import Operation, Tensor

_together: WeakKeyDictionary[Tensor, list[ref[Tensor]]] = WeakKeyDictionary()
"""A tensor of a tuple -> all tensors of that tuple."""


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
