"""`te.ComputeOp` and `te.PlaceholderOp`, for `isinstance`. Our operations are of a single class."""

from __future__ import annotations

from ansor.te.tensor import Operation


class _Kind(type):
    given: bool

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Operation) and instance.tensor.is_placeholder == cls.given


class PlaceholderOp(metaclass=_Kind):
    """An operation whose tensor is an input."""

    given = True


class ComputeOp(metaclass=_Kind):
    """An operation that computes a tensor."""

    given = False
