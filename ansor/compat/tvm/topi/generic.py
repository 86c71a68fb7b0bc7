"""`tvm.topi.generic`, and the schedules of `tvm.topi.x86`: all of them compute one stage after another, as declared.

They are for scripts that need any schedule; tuning finds fast ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansor.compat.tvm.missing import of_topi
from ansor.errors import ArgumentError
from ansor.manual.schedule import Schedule, create_schedule
from ansor.te.tensor import Tensor


def default_schedule(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The default schedule of the output tensors."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    return create_schedule([tensor.op for tensor in tensors])


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Return the schedule unchanged."""
    return sch


def __getattr__(name: str) -> Callable[..., Schedule]:
    """`schedule_softmax` and the like: functions of output tensors. They ignore a configuration before the tensors and a layout after them."""
    if not name.startswith("schedule_"):
        return of_topi(f"generic.{name}")

    def scheduled(*arguments: object) -> Schedule:
        for given in arguments:
            tensors = [given] if isinstance(given, Tensor) else list(given) if isinstance(given, list | tuple) else []
            if tensors and all(isinstance(tensor, Tensor) for tensor in tensors):
                return default_schedule(tensors)
        raise ArgumentError(f"asked for topi.generic.{name} of {', '.join(map(repr, arguments))}; give the output tensors")

    return scheduled
