"""Declarations that no core computes, and what to do instead: said before anything is built."""

from __future__ import annotations

from collections.abc import Iterator

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import DIVISIONS, Binary, Cast, Const, Expr, Reduce, Select
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor


def refusal(dag: Dag) -> str:
    """Why no core computes a declaration, in one sentence; '' where one may."""
    return _tensors(dag) or _reductions(dag) or next((said for stage in dag.stages for said in _inside(stage)), "")


def _tensors(dag: Dag) -> str:
    outputs, given = dag.outputs, {one.name: one.dtype for one in dag.inputs}
    wrong = next((f"{name} of {dtype}" for name, dtype in given.items() if dtype not in ("int8", "int32")), "")
    if len(outputs) != 1 or outputs[0].dtype != "int8":
        made = " and ".join(f"{one.name} of {one.dtype}" for one in outputs)
        return f"it makes {made}; a VTA core makes one tensor of int8 at a time: shift, clip and cast the sums in the declaration"
    return f"it reads {wrong}; a VTA core reads int8, and biases of int32" if wrong else ""


def _reductions(dag: Dag) -> str:
    sums = [one.name for one in dag.stages if access.has_reduction(one)]
    if len(sums) > 1 or dag.outputs[0].name in sums:
        return f"it reduces in {' and '.join(sums)}; an operator of VTA has one reduction, which is not its result: declare what is done to the sums behind it"
    return ""


def _inside(stage: Tensor) -> Iterator[str]:
    """What one stage does that a core does not."""
    if stage.compute is None:
        return
    body = stage.compute.body
    for read in (node for node in walk(body) if isinstance(node, Read)):
        if isinstance(body, Reduce) and any(isinstance(node, Binary) and node.op in DIVISIONS for index in read.indices for node in walk(index)):
            where = f"{stage.name} reads {read.tensor.name} at a divided index, as channels in groups are"
            yield f"{where}; a VTA core has none: declare each group as an operator of its own"
    if isinstance(body, Select) and _value(body.otherwise) not in (None, 0) and isinstance(body.then, Read):
        what = f"{stage.name} pads {body.then.tensor.name} with {_value(body.otherwise)}"
        yield f"{what}; a VTA core pads with 0: pad on the host, or with 0 where the greatest is wanted of data that are not negative"


def _value(side: Expr) -> int | float | None:
    while isinstance(side, Cast):
        side = side.value
    return side.value if isinstance(side, Const) else None
