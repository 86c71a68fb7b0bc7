"""Python's operators, shared by all classes that have them: scalar expressions build expressions, tensors build tensors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from ansor.errors import DeclarationError

if TYPE_CHECKING:
    import numpy as np

Result = TypeVar("Result")

_OPERATIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floordiv", "remainder": "floormod", "power": "pow", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge", "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor",
    "left_shift": "shl", "right_shift": "shr",
}  # fmt: skip
"""NumPy's names of Python's operators."""

_COMPARED = {"equal": "__eq__", "not_equal": "__ne__"}
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_OURS = {"absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "rint": "round", "arctan2": "atan2", "float_power": "power",
         "logical_and": "all", "logical_or": "any", **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}}  # fmt: skip
"""NumPy functions with another name here."""


class Operators(Generic[Result]):
    """Operators that call `_apply(operation, left, right)`, which returns the result, or NotImplemented where the other side handles it.

    `==` and `!=` are not among them: expressions build comparisons, tensors compare by identity.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **_: object) -> object:
        """Apply operators between NumPy's numbers and this class; raises DeclarationError for NumPy's other functions."""
        inputs = tuple(map(_scalar, inputs))
        operation = _OPERATIONS.get(ufunc.__name__)
        if operation is not None and method == "__call__" and len(inputs) == 2:
            return self._apply(operation, *inputs)
        if ufunc.__name__ in _COMPARED and method == "__call__":
            return _compared(self, ufunc.__name__, inputs[1] if inputs[0] is self else inputs[0])
        if method == "reduce":
            _refuse(f"np.{ufunc.__name__}.reduce", _REDUCTIONS.get(ufunc.__name__, ""), self)
        _refuse(f"np.{ufunc.__name__}", ufunc.__name__, self)

    def __float__(self) -> float:
        _refuse("the number", "", self)

    def __int__(self) -> int:
        _refuse("the number", "", self)

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


def _scalar(value: object) -> object:
    """A number for an array of rank 0, to which NumPy turns its numbers in comparisons."""
    item = getattr(value, "item", None)
    return item() if item is not None and not isinstance(value, Operators) and getattr(value, "ndim", 1) == 0 else value


def _compared(one: object, name: str, other: object) -> object:
    """`==` or `!=`; tensors compare by identity, so a tensor never equals a number."""
    found = getattr(type(one), _COMPARED[name])(one, other)
    return found if found is not NotImplemented else name == "not_equal"


def _refuse(asked: str, name: str, value: object) -> NoReturn:
    """Raise DeclarationError for a function of another library. `name`: the function's name, '' for `float`, `int` and functions of `math`."""
    te, ours = sys.modules.get("ansor.te"), _OURS.get(name, name)
    place = "te" if hasattr(value, "dtype") and not hasattr(value, "shape") else "te.nn"  # an element, or a whole tensor
    known = bool(name) and hasattr(getattr(te, "nn", None) if place == "te.nn" else te, ours)
    cure = f"use {place}.{ours}" if known else "use the functions in te and te.nn, such as te.exp"
    text = f"`{value}`" if place == "te" else f"tensor {getattr(value, 'name', '')}"
    raise DeclarationError(f"asked for {asked} of {text}, which has no value while declaring; {cure}")
