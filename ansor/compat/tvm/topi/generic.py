"""`tvm.topi.generic` and `tvm.topi.x86`: schedules of operators. They are all the one that computes stage after stage, as it is declared.

What is fast is found by tuning; these are for scripts that want any schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansor.compat.tvm.missing import of_topi
from ansor.compat.tvm.topi import nn
from ansor.manual.schedule import Schedule, create_schedule
from ansor.te.tensor import Tensor


def default_schedule(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The schedule of the tensors that are wanted."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    return create_schedule([tensor.op for tensor in tensors])


def __getattr__(name: str) -> Callable[..., object]:
    """`schedule_softmax` and its like, whatever they are of; operators as in `topi.nn`."""
    if name.startswith("schedule_"):
        return lambda *arguments: default_schedule(arguments[-1])
    operator: Callable[..., object] | None = None if name.startswith("__") else getattr(nn, name, None)
    return operator if operator is not None else of_topi(name)
