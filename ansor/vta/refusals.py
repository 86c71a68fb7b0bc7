"""Reports declarations that no core can compute, and what to do instead, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Reduce, Select
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor
from ansor.vta.groups import divided_reads, grouping_of, in_groups, padding_of, product_of
from ansor.vta.one_channel import single_channel
from ansor.vta.transfers import MOST_ZEROS
from ansor.vta.values import AluError, Value, either, reduced, value_on_core


def refusal(dag: Dag, block: int) -> str:
    """Why no core with blocks of this many channels can compute a declaration, in one sentence; '' if one may be able to."""
    for said in (_tensors, _places, _reductions, _sums, _sources, _behind, _padding, lambda one: _groups(one, block), _channels, _values, _wide_padding):
        if found := said(dag):
            return found
    return ""


def _tensors(dag: Dag) -> str:
    outputs, given = dag.outputs, {one.name: one.dtype for one in dag.inputs}
    wrong = next((f"{name} of {dtype}" for name, dtype in given.items() if dtype not in ("int8", "int32")), "")
    made = " and ".join(f"{one.name} of {one.dtype}" for one in outputs)
    if len(outputs) != 1:
        return f"it makes {made}; a VTA core makes one tensor at a time: declare an operator for each"
    if outputs[0].dtype != "int8":
        return f"it makes {made}; a VTA core makes one tensor of int8 at a time: shift, clip and cast the sums in the declaration"
    if not outputs[0].shape:
        return f"{outputs[0].name} has no dimensions; a VTA core computes blocks of channels: declare it as a tensor of one element"
    read = {tensor.name for stage in dag.stages for tensor in access.producers(stage)}  # `_values` reports stages that read nothing
    idle = next((name for name in given if read and name not in read), "")
    if idle:
        return f"it never reads its argument {idle}: leave it out"
    return f"it reads {wrong}; a VTA core reads int8, and biases of int32: convert it on the host" if wrong else ""


def _places(dag: Dag) -> str:
    """The places that it reads have to be known at compile time."""
    reads = [read for stage in dag.stages for read in access.reads(stage)]
    return next(filter(None, map(_place, reads)), "")


def _place(read: Read) -> str:
    name, where = read.tensor.name, f"[{', '.join(map(str, read.indices))}]"
    found = next((node for index in read.indices for node in walk(index) if isinstance(node, Read)), None)
    if found is not None:
        return f"it reads {name} at indices from {found.tensor.name}; a VTA core reads regions that are known at compile time: do this on the host"
    if any(_is_backwards(node) for index in read.indices for node in walk(index)):
        return f"it reads {name}{where}, which is backwards; a VTA core reads forwards: reverse {name} on the host"
    axes = [id(index) for index in read.indices if isinstance(index, Axis)]
    if len(set(axes)) < len(axes):
        return f"it reads {name}{where}, a diagonal; a VTA core reads regions of neighbours: pass the diagonal as a tensor of its own"
    return ""


def _is_backwards(index: Expr) -> bool:
    if not isinstance(index, Binary):
        return False
    by = [side.value for side in (index.left, index.right) if isinstance(side, Const)]
    return index.op == "sub" and any(isinstance(node, Axis) for node in walk(index.right)) or index.op == "mul" and any(number < 0 for number in by)


def _reductions(dag: Dag) -> str:
    sums = [one.name for one in dag.stages if access.has_reduction(one)]
    if len(sums) > 1 or dag.outputs[0].name in sums:
        said = f"it reduces in {' and '.join(sums)}; an operator of VTA has one reduction, which cannot be its result"
        if len(sums) == 1 and _combiner(dag.outputs[0]) in ("max", "min"):
            return f"{said}: reduce x[...].astype('int32'), and convert the result with .astype('int8')"
        return f"{said}: declare the arithmetic on the sums as a stage after it"
    return ""


def _body(stage: Tensor) -> Expr | None:
    return None if stage.compute is None else stage.compute.body


def _combiner(stage: Tensor) -> str:
    body = _body(stage)
    return body.combiner if isinstance(body, Reduce) else ""


def _sums(dag: Dag) -> str:
    """A sum has to read tensors unchanged, except for zeros around them, and products have to be of int8."""
    total = next((stage for stage in dag.stages if access.has_reduction(stage)), None)
    if total is None:
        return ""
    if _combiner(total) == "sum" and total.dtype != "int32":
        return f"it sums {total.name} in {total.dtype}; a VTA core sums in int32: convert what is summed with .astype('int32'), or out_dtype='int32' of te.nn"
    sides = product_of(total)
    if sides is not None and sides[0].tensor is sides[1].tensor and [id(one) for one in sides[0].indices] != [id(one) for one in sides[1].indices]:
        name = sides[0].tensor.name
        what = f"{total.name} multiplies {name} with other parts of {name}, and a VTA core has a memory for each factor"
        return f"{what}: declare it as two tensors, and pass it twice"
    computed = [tensor for tensor in access.producers(total) if tensor.compute is not None]
    made = " and ".join(tensor.name for tensor in computed)
    if product_of(total) is None and _is_product(total) and computed:
        cure = "convert inside the sum, x[...].astype('int32') * w[...].astype('int32'), as out_dtype='int32' of te.nn does, and put a zero point into the bias"
        return f"{total.name} multiplies {made}, computed before it; a VTA core multiplies int8 as it reads them: {cure}"
    if any(_is_changed(tensor) for tensor in computed):
        cure = "pad what is read, convert where it is reduced, and do the rest after the reduction or in an operator of its own"
        return f"{total.name} reads {made}, computed before it; a VTA core reduces what it reads: {cure}"
    return ""


def _sources(dag: Dag) -> str:
    """A reduction has to run over a tensor that it reads, or a product of two; products with a result for each pair of channels have to be of int8."""
    total = next((stage for stage in dag.stages if access.has_reduction(stage)), None)
    if total is None:
        return ""
    factors = [_converted(side) for side in _sides(access.value_of(total))]
    if not all(isinstance(one, Read) for one in factors):
        cure = "reduce one tensor at a time, and compute with the result"
        return f"{total.name} reduces what is computed from tensors; a VTA core reduces what it reads, and sums products of two: {cure}"
    channels = total.compute.axes[min(1, len(total.shape) - 1)] if total.compute is not None and total.shape else None
    wide = next((one.tensor for one in factors if isinstance(one, Read) and one.dtype != "int8"), None)
    if len(factors) == 2 and wide is not None and not all(any(node is channels for node in walk(one)) for one in factors):
        return f"{total.name} multiplies {wide.name} of {wide.dtype}; GEMM of a VTA core multiplies int8 with int8: pass {wide.name} as int8"
    return ""


def _sides(source: Expr) -> tuple[Expr, ...]:
    inner = _converted(source)
    return (inner.left, inner.right) if isinstance(inner, Binary) and inner.op == "mul" else (inner,)


def _converted(value: Expr) -> Expr:
    """The operand of a conversion to int32."""
    while isinstance(value, Cast) and value.dtype == "int32":
        value = value.value
    return value


def _behind(dag: Dag) -> str:
    """Sums have to be finished in place, element by element."""
    total = next((stage for stage in dag.stages if access.has_reduction(stage)), None)
    if total is None:
        return ""
    ahead = [stage for stage in access.producers(total) if stage.compute is not None]
    if product_of(total) is None and not _is_product(total) and _is_across(total):
        where = f"{total.name} reads {access.producers(total)[0].name} at other places along dimension 1, where a VTA core has channels"
        return f"{where} when nothing is multiplied: declare channels as dimension 1"
    for stage in (one for one in dag.stages if one.compute is not None and one is not total and one not in ahead):
        if total in access.producers(stage) and not access.is_elementwise_match(total, stage):
            what = f"{stage.name} reads {total.name} in another shape or order; a VTA core finishes sums where they are"
            return f"{what}: declare {stage.name} in the shape and order of {total.name}, and the rest as an operator of its own"
        if not access.is_simple_access(stage):
            names = " and ".join(tensor.name for tensor in access.producers(stage) if tensor is not total)
            what = f"{stage.name} reads {names} at places other than those of the result; after a reduction a VTA core reads element by element"
            return f"{what}: pass it in the shape of the result"
    return ""


def _is_across(total: Tensor) -> bool:
    """Whether a reduction reads anything at indices that involve its dimension of channels."""
    lanes = total.compute.axes[min(1, len(total.shape) - 1)] if total.compute is not None and total.shape else None
    return any(node is lanes for read in access.reads(total) for index in read.indices if index is not lanes for node in walk(index))


def _is_product(total: Tensor) -> bool:
    body = _body(total)
    return isinstance(body, Reduce) and isinstance(body.source, Binary) and body.source.op == "mul"


def _is_changed(tensor: Tensor) -> bool:
    """Whether a tensor is more than an argument, possibly converted to int32 and padded with a number."""
    body = _body(tensor)
    inner = body.then if isinstance(body, Select) else body
    read = inner.value if isinstance(inner, Cast) and inner.dtype == "int32" else inner
    return not isinstance(read, Read) or read.tensor.compute is not None


def _groups(dag: Dag, block: int) -> str:
    read = next((read for stage in dag.stages for read in divided_reads(stage)), None)
    if read is None:
        return ""
    grouping = grouping_of(dag)
    if grouping is None or not grouping.refusal(block) and in_groups(dag, block) is None:
        where = f"it reads {read.tensor.name} at a divided index; a VTA core supports this only for channels in groups"
        return f"{where}: upsample on the host, and declare other parts as operators of their own"
    return grouping.refusal(block)


def _channels(dag: Dag) -> str:
    """GEMM multiplies blocks of channels that both factors share, and adds along them."""
    found = next((sides for stage in dag.stages if (sides := product_of(stage)) is not None), None)
    if found is None or grouping_of(dag) is not None or single_channel(dag) is not None or any(_shared(stage, *found) for stage in dag.stages):
        return ""
    names = " and ".join(one.tensor.name for one in found)
    return f"{names} have one channel to add along; a VTA core adds along blocks of channels: declare two, the second with weights of 0"


def _shared(stage: Tensor, *reads: Read) -> bool:
    """Whether a sum runs along an axis that is itself an index of both tensors."""
    axes = stage.compute.reduce_axes if stage.compute is not None else ()
    return any(all(any(index is axis for index in read.indices) for read in reads) for axis in axes)


def _padding(dag: Dag) -> str:
    """GEMM reads what a LOAD pads with 0; only accumulators, which the ALU can write, can be padded with other numbers."""
    grouping = grouping_of(dag)
    read = next((read for stage in dag.stages for read in product_of(stage) or () if padding_of(read.tensor)), None)
    if read is None or grouping is not None and grouping.alone:
        return ""
    number = int(padding_of(read.tensor))
    what = f"{read.tensor.name}, which is multiplied by weights, has {number} around it; a LOAD of a VTA core pads with 0"
    return f"{what}: pad with 0, and add {number} times the weights outside the tensor to the bias of each place"


def _wide_padding(dag: Dag) -> str:
    """A LOAD has 4-bit fields for the padding before and after rows and columns."""
    widest, name = max(((_around(stage), stage.name) for stage in dag.stages), default=(0, ""))
    if widest <= MOST_ZEROS:
        return ""
    what = f"{name} has a border of {widest} rows or columns; a LOAD of a VTA core pads with up to {MOST_ZEROS}"
    return f"{what}: make the wide border on the host, before the operator"


def _around(stage: Tensor) -> int:
    """The widest border that a stage puts around a tensor."""
    body = _body(stage)
    read = body.then if isinstance(body, Select) else None
    if not isinstance(read, Read) or len(read.indices) != len(stage.shape):
        return 0
    before = [_subtracted(index) for index in read.indices]
    after = [whole - first - inner for whole, first, inner in zip(stage.shape, before, read.tensor.shape, strict=True)]
    return max(*before, *after)


def _subtracted(index: Expr) -> int:
    if access.shifted_axis(index) is None or not isinstance(index, Binary):
        return 0
    number = next(int(side.value) for side in (index.left, index.right) if isinstance(side, Const))
    return number if index.op == "sub" else -number


def _values(dag: Dag) -> str:
    """Every stage has to be something that the ALU can compute."""
    known: dict[str, Value] = {}
    reduced_from = {tensor.name for stage in dag.stages if access.has_reduction(stage) for tensor in access.producers(stage)}
    for stage in (one for one in dag.stages if one.compute is not None):
        try:
            known[stage.name] = _value(stage, known, stage.name in reduced_from)
        except AluError as error:
            return f"{stage.name} needs {error.why}"
    made = dag.outputs[0]
    return "" if access.reads(made) else f"{made.name} reads no tensor; a VTA core computes from what it loads: make it on the host"


def _value(stage: Tensor, known: Mapping[str, Value], may_pad: bool) -> Value:
    def leaf(node: Expr) -> Value | None:
        return known.get(node.tensor.name) if isinstance(node, Read) else None

    body = _body(stage)
    assert body is not None
    if isinstance(body, Reduce):
        return reduced(body.combiner, value_on_core(body.source, leaf))
    if may_pad and isinstance(body, Select) and isinstance(body.otherwise, Const):
        return either(value_on_core(body.then, leaf), value_on_core(body.otherwise))  # padding, which a LOAD writes
    return value_on_core(body, leaf)
