"""Declarations that no core computes, and what to do instead: said before anything is built."""

from __future__ import annotations

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.vta.groups import divided_reads, grouping_of, in_groups, padding_of, product_of


def refusal(dag: Dag, block: int) -> str:
    """Why no core with blocks of so many channels computes a declaration, in one sentence; '' where one may."""
    return _tensors(dag) or _reductions(dag) or _padding(dag) or _groups(dag, block)


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


def _groups(dag: Dag, block: int) -> str:
    read = next((read for stage in dag.stages for read in divided_reads(stage)), None)
    if read is None:
        return ""
    grouping = grouping_of(dag)
    if grouping is None or not grouping.refusal(block) and in_groups(dag, block) is None:
        where = f"it reads {read.tensor.name} at a divided index that is none of channels in groups"
        return f"{where}; a VTA core has none: declare each part as an operator of its own"
    return grouping.refusal(block)


def _padding(dag: Dag) -> str:
    """GEMM reads what a LOAD pads; only accumulators, on which the ALU works, can have other numbers around them."""
    grouping = grouping_of(dag)
    read = next((read for stage in dag.stages for read in product_of(stage) or () if padding_of(read.tensor)), None)
    if read is None or grouping is not None and grouping.alone:
        return ""
    number = int(padding_of(read.tensor))
    what = f"{read.tensor.name}, which is multiplied with weights, has {number} around it, and a LOAD of a VTA core pads with 0"
    return f"{what}: pad with 0, and add {number} times the weights that are outside to the bias of each place"
