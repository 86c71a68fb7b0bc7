"""Counts the arithmetic operations of a declaration (reference section 1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansor.ir.access import reduce_length, value_of
from ansor.te.expr import Binary, Expr, Reduce, Select
from ansor.te.fold import LARGE, postorder
from ansor.te.tensor import Read, Tensor


def flops(tensor: Tensor) -> int:
    """Operations for the whole tensor. Index arithmetic and padding tests are free. The attribute FLOP overrides the count."""
    if tensor.compute is None:
        return 0
    override = tensor.attrs.get("FLOP")
    if isinstance(override, int):
        return override
    per_element = _operations(value_of(tensor), tensor.dtype)
    if isinstance(tensor.compute.body, Reduce):
        return tensor.size * reduce_length(tensor) * (per_element + 1)
    return tensor.size * per_element


def _code(dtype: str) -> str:
    return dtype.rstrip("0123456789")


def _operations(expr: Expr, dtype: str) -> int:
    """Operations per element. In an expression too large to write out, each shared part counts once, as it is computed once."""
    known: dict[int, int] = {}
    for node in postorder(expr, _operands):
        known[id(node)] = _of_node(node, dtype) + _of_operands(node, known)
    if known[id(expr)] <= LARGE:
        return known[id(expr)]
    return min(known[id(expr)], sum(_of_node(node, dtype) for node in postorder(expr, _operands)))


def _operands(expr: Expr) -> Sequence[Expr]:
    return () if isinstance(expr, Read) else expr.children


def _of_node(expr: Expr, dtype: str) -> int:
    return int(isinstance(expr, Binary) and _code(dtype) in (_code(expr.left.dtype), _code(expr.right.dtype)))


def _of_operands(expr: Expr, known: Mapping[int, int]) -> int:
    if isinstance(expr, Select):
        return known[id(expr.condition)] + max(known[id(expr.then)], known[id(expr.otherwise)])
    return sum(known[id(child)] for child in _operands(expr))
