"""Parts of NumPy that TVM 0.9's tests use and later versions removed: `np.infty`, `np.reshape(newshape=)`, and lists of slices as an index."""

from __future__ import annotations

import ast
from typing import Any

import numpy

INDEX = "_as_old_numpy_took_it"


def install() -> None:
    """Put the names back."""
    vars(numpy)["infty"] = numpy.inf
    reshape = numpy.reshape

    def with_newshape(a: Any, *args: Any, newshape: Any = None, **kwargs: Any) -> Any:
        return reshape(a, *args, **kwargs) if newshape is None else reshape(a, newshape, *args, **kwargs)

    vars(numpy)["reshape"] = with_newshape


def index(given: object) -> object:
    """A list that holds slices is a tuple of indices; anything else stays."""
    return tuple(given) if isinstance(given, list) and any(isinstance(one, slice) for one in given) else given


class OldIndices(ast.NodeTransformer):
    """`a[name]` becomes `a[index(name)]`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Only for names: an index that is written out in brackets is a tuple already."""
        self.generic_visit(node)
        if isinstance(node.slice, ast.Name):
            node.slice = ast.copy_location(ast.Call(ast.Name(INDEX, ast.Load()), [node.slice], []), node.slice)
        return node
