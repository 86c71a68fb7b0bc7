"""Restores parts of NumPy that TVM 0.9's tests use and that NumPy has removed: `np.infty`, `np.reshape(newshape=)`, and lists of slices as an index."""

from __future__ import annotations

import ast
from typing import Any

import numpy

INDEX = "_as_old_numpy_took_it"


def install() -> None:
    """Restore the names."""
    vars(numpy)["infty"] = numpy.inf
    reshape = numpy.reshape

    def with_newshape(a: Any, *args: Any, newshape: Any = None, **kwargs: Any) -> Any:
        return reshape(a, *args, **kwargs) if newshape is None else reshape(a, newshape, *args, **kwargs)

    vars(numpy)["reshape"] = with_newshape


def index(given: object) -> object:
    """Turns a list that contains slices into a tuple of indices; returns anything else as it is."""
    return tuple(given) if isinstance(given, list) and any(isinstance(one, slice) for one in given) else given


class OldIndices(ast.NodeTransformer):
    """Turns `a[name]` into `a[index(name)]`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Only names have to be changed: an index written in brackets is already a tuple."""
        self.generic_visit(node)
        if isinstance(node.slice, ast.Name):
            node.slice = ast.copy_location(ast.Call(ast.Name(INDEX, ast.Load()), [node.slice], []), node.slice)
        return node
