"""`te.var` and `te.size_var`: importable, and an error with what to write instead once they are called."""

from __future__ import annotations

from typing import NoReturn

from ansor.compat.tvm.missing import MissingNameError
from ansor.errors import DeclarationError


class SymbolicSizeError(MissingNameError, DeclarationError):
    """A symbolic size. Write a number in its place, or make a declaration for each size."""


def var(name: str = "tindex", dtype: str = "int32") -> NoReturn:
    """Raises SymbolicSizeError, a DeclarationError: shapes are numbers here."""
    raise SymbolicSizeError(
        f"asked for te.var({name!r}); shapes are Python integers: write a number in its place, {name} = 1024, or make one declaration for each size with a "
        "function of the sizes; a value that changes from call to call is a te.placeholder(()) of its own"
    )


def size_var(name: str = "size", dtype: str = "int32") -> NoReturn:
    """Raises SymbolicSizeError, a DeclarationError: shapes are numbers here."""
    var(name, dtype)
