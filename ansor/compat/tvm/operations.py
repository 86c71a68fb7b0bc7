"""`te.ComputeOp` and `te.PlaceholderOp`: the two kinds of operations, to be told apart by `isinstance`. Ours are of one class."""

from __future__ import annotations

from ansor.te.tensor import Operation


class _Kind(type):
    given: bool

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Operation) and instance.tensor.is_placeholder == cls.given


class PlaceholderOp(metaclass=_Kind):
    """What gives a tensor from outside."""

    given = True


class ComputeOp(metaclass=_Kind):
    """What computes a tensor."""

    given = False
