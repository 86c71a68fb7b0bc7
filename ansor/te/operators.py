"""Python's operators, once for all that has them: scalar expressions build expressions, tensors build tensors."""

from __future__ import annotations

from typing import Generic, TypeVar

Result = TypeVar("Result")


class Operators(Generic[Result]):
    """Operators as calls of `_apply(operation, left, right)`, which gives the result, or NotImplemented where the other side knows what is meant.

    `==` and `!=` are not among them: expressions build comparisons, tensors compare by identity.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's numbers leave the operation to us

    def _apply(self, operation: str, left: object, right: object) -> Result:
        raise NotImplementedError

    def __add__(self, other: object) -> Result:
        return self._apply("add", self, other)

    def __radd__(self, other: object) -> Result:
        return self._apply("add", other, self)

    def __sub__(self, other: object) -> Result:
        return self._apply("sub", self, other)

    def __rsub__(self, other: object) -> Result:
        return self._apply("sub", other, self)

    def __mul__(self, other: object) -> Result:
        return self._apply("mul", self, other)

    def __rmul__(self, other: object) -> Result:
        return self._apply("mul", other, self)

    def __truediv__(self, other: object) -> Result:
        return self._apply("div", self, other)

    def __rtruediv__(self, other: object) -> Result:
        return self._apply("div", other, self)

    def __floordiv__(self, other: object) -> Result:
        return self._apply("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Result:
        return self._apply("floordiv", other, self)

    def __mod__(self, other: object) -> Result:
        return self._apply("floormod", self, other)

    def __rmod__(self, other: object) -> Result:
        return self._apply("floormod", other, self)

    def __pow__(self, other: object) -> Result:
        return self._apply("pow", self, other)

    def __rpow__(self, other: object) -> Result:
        return self._apply("pow", other, self)

    def __lshift__(self, other: object) -> Result:
        return self._apply("shl", self, other)

    def __rlshift__(self, other: object) -> Result:
        return self._apply("shl", other, self)

    def __rshift__(self, other: object) -> Result:
        return self._apply("shr", self, other)

    def __rrshift__(self, other: object) -> Result:
        return self._apply("shr", other, self)

    def __and__(self, other: object) -> Result:
        return self._apply("bitand", self, other)

    def __rand__(self, other: object) -> Result:
        return self._apply("bitand", other, self)

    def __or__(self, other: object) -> Result:
        return self._apply("bitor", self, other)

    def __ror__(self, other: object) -> Result:
        return self._apply("bitor", other, self)

    def __xor__(self, other: object) -> Result:
        return self._apply("bitxor", self, other)

    def __rxor__(self, other: object) -> Result:
        return self._apply("bitxor", other, self)

    def __neg__(self) -> Result:
        return self._apply("sub", 0, self)

    def __invert__(self) -> Result:
        return self._apply("bitxor", self, -1)

    def __lt__(self, other: object) -> Result:
        return self._apply("lt", self, other)

    def __le__(self, other: object) -> Result:
        return self._apply("le", self, other)

    def __gt__(self, other: object) -> Result:
        return self._apply("gt", self, other)

    def __ge__(self, other: object) -> Result:
        return self._apply("ge", self, other)
