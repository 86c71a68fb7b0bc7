"""Comparisons and logic, element by element, with NumPy's broadcasting. Results are tensors of dtype bool."""

from __future__ import annotations

import operator

from ansor.errors import DeclarationError
from ansor.te import scalar
from ansor.te.expr import Expr, Number
from ansor.te.nn.elementwise import combine
from ansor.te.tensor import Tensor, elementwise


def greater(x: Tensor | Number, y: Tensor | Number, name: str = "greater") -> Tensor:
    """x > y."""
    return combine(operator.gt, name, x, y)


def greater_equal(x: Tensor | Number, y: Tensor | Number, name: str = "greater_equal") -> Tensor:
    """x >= y."""
    return combine(operator.ge, name, x, y)


def less(x: Tensor | Number, y: Tensor | Number, name: str = "less") -> Tensor:
    """x < y."""
    return combine(operator.lt, name, x, y)


def less_equal(x: Tensor | Number, y: Tensor | Number, name: str = "less_equal") -> Tensor:
    """x <= y."""
    return combine(operator.le, name, x, y)


def equal(x: Tensor | Number, y: Tensor | Number, name: str = "equal") -> Tensor:
    """x == y."""
    return combine(operator.eq, name, x, y)


def not_equal(x: Tensor | Number, y: Tensor | Number, name: str = "not_equal") -> Tensor:
    """x != y."""
    return combine(operator.ne, name, x, y)


def logical_and(x: Tensor, y: Tensor, name: str = "logical_and") -> Tensor:
    """Whether x and y both hold; other dtypes are true where they are not 0."""
    return combine(lambda a, b: scalar.all(truth(a), truth(b)), name, x, y)


def logical_or(x: Tensor, y: Tensor, name: str = "logical_or") -> Tensor:
    """Whether x or y holds; other dtypes are true where they are not 0."""
    return combine(lambda a, b: scalar.any(truth(a), truth(b)), name, x, y)


def logical_xor(x: Tensor, y: Tensor, name: str = "logical_xor") -> Tensor:
    """Whether exactly one of x and y holds; other dtypes are true where they are not 0."""
    return combine(lambda a, b: truth(a) != truth(b), name, x, y)


def logical_not(x: Tensor, name: str = "logical_not") -> Tensor:
    """Whether x does not hold; other dtypes are true where they are not 0."""
    return elementwise(x, lambda v: scalar.logical_not(truth(v)), name)


def where(condition: Tensor, x: Tensor | Number, y: Tensor | Number, name: str = "where") -> Tensor:
    """x where `condition` holds (is not 0), else y, with NumPy's broadcasting of all three."""
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype != y.dtype:
        raise DeclarationError(f"asked for {name} between {x.dtype} tensor {x.name} and {y.dtype} tensor {y.name}; both need one dtype: use te.nn.cast")
    return combine(lambda c, a, b: scalar.if_then_else(truth(c), a, b), name, condition, x, y)


def truth(value: Expr) -> Expr:
    """`value` as a condition: itself when it is one, else whether it is not 0."""
    return value if value.dtype == "bool" else value != 0
