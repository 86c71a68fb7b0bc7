"""`te.var` and `te.size_var`: values that a function receives when called."""

from __future__ import annotations

from typing import overload

from ansor.te.expr import Expr
from ansor.te.size import Size, open_size
from ansor.te.tensor import placeholder


@overload
def var(name: str = "tindex", dtype: None = None) -> Size: ...


@overload
def var(name: str, dtype: str) -> Expr: ...


def var(name: str = "tindex", dtype: str | None = None) -> Size | Expr:
    """A size; with a dtype, a scalar of that type. Shapes cannot depend on a scalar."""
    return open_size(name) if dtype is None else placeholder((), dtype, name)[()]


def size_var(name: str = "size", dtype: str = "int32") -> Size:
    """A size."""
    return open_size(name)
