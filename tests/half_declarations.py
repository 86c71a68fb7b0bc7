"""Random declarations of float16: those of `tests.declarations` and `tests.mixed_declarations` with float32 replaced, and expressions that mix it with others.

`half_case(draw)` draws one; reductions are short and values small, so that no partial sum leaves the range of halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Axis, Const, Expr, Not, Reduce
from ansor.te.fold import fold
from ansor.te.tensor import Compute, Read, Tensor
from tests import mixed_declarations
from tests.declarations import KINDS as PLAIN_KINDS
from tests.declarations import Case, Draw, Given
from tests.mixed_declarations import small_values

HALF, SINGLE = "float16", "float32"
MIXED = (HALF, HALF, HALF, "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")


def in_half(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors with float16 in place of float32 in everything that they depend on."""
    known: dict[int, Tensor] = {}
    return [_tensor(tensor, known) for tensor in tensors]


def _dtype(dtype: str) -> str:
    return HALF if dtype == SINGLE else dtype


def _tensor(tensor: Tensor, known: dict[int, Tensor]) -> Tensor:
    if id(tensor) not in known:
        compute = tensor.compute
        if compute is not None:
            compute = Compute(compute.axes, compute.reduce_axes, fold(compute.body, lambda expr, operands: _rebuilt(expr, operands, known)))
        known[id(tensor)] = Tensor(tensor.name, tensor.shape, _dtype(tensor.dtype), compute, tensor.constant, tensor.tag, tensor.attrs)
    return known[id(tensor)]


def _rebuilt(expr: Expr, operands: tuple[Expr, ...], known: Mapping[int, Tensor]) -> Expr:
    if isinstance(expr, Axis | Not):
        return expr.rebuilt(operands)
    if isinstance(expr, Read):
        return Read(_tensor(expr.tensor, known), operands, _dtype(expr.dtype))  # type: ignore[arg-type]
    made = expr.rebuilt(operands)
    assert isinstance(made, Const | Reduce) or made.children
    return replace(made, dtype=_dtype(expr.dtype))  # type: ignore[type-var]


def _halved(kind: str) -> Callable[[Draw], Given]:
    def declare(draw: Draw) -> Given:
        given = (PLAIN_KINDS | mixed_declarations.MIXED_KINDS)[kind](draw)
        return Given(in_half(given.tensors), given.values)

    return declare


def _expressions(draw: Draw) -> Given:
    return mixed_declarations.expressions(draw, MIXED)


HALF_KINDS: dict[str, Callable[[Draw], Given]] = {
    **{f"half_{kind}": _halved(kind) for kind in (*PLAIN_KINDS, "nn_conv", "nn_pool", "nn_norm", "nn_shape", "nn_dense", "two_readers", "guarded_products")},
    "half_expressions": _expressions,
}


def half_case(draw: Draw, kind: str | None = None) -> Case:
    """One declaration of `kind` (a name in HALF_KINDS), or of any."""
    kind = kind or draw.pick(sorted(HALF_KINDS))
    given = HALF_KINDS[kind](draw)
    rng = np.random.default_rng(draw.integer(0, 1000))
    dag = Dag(given.tensors)
    placeholders = [tensor for tensor in given.tensors if tensor.is_placeholder]
    inputs = {
        renamed.name: np.asarray(given.values.get(tensor.name, small_values(rng, tensor))).astype(tensor.dtype)
        for tensor, renamed in zip(placeholders, dag.inputs, strict=True)
    }
    results = evaluate(dag.outputs, dict(inputs))
    return Case(kind, dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, results, strict=True)})
