"""Named questions about how a declaration reads its inputs. Rules ask only these (reference section 2.1)."""

from __future__ import annotations

from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Reduce, Select
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor

KEPT = "kept"
"""The attribute of tensors that are worth storing although recomputing them is cheap."""

SPLIT_BEHIND = "split_behind"
"""The attribute of sums that a following stage combines into others for a third stage: both are computed for one tile of the third stage."""

WRITTEN_OUT = "written_out"
"""The attribute of stages around such sums that multiply by small constant matrices. It names the axes whose loops are unrolled, so that the compiler sees the
numbers."""

TILING_CORES = 16  # a tiled reduction is worth splitting only below this many spatial elements per core


def value_of(tensor: Tensor) -> Expr:
    """The body, without the reduction around it."""
    assert tensor.compute is not None
    body = tensor.compute.body
    return body.source if isinstance(body, Reduce) else body


def reads(tensor: Tensor) -> tuple[Read, ...]:
    """Every read of a computed tensor's body."""
    return () if tensor.compute is None else tensor.compute.reads


def widened_byte(side: Expr) -> Read | None:
    """The read of an int8 element that is converted to int32, as an operand of a product of bytes; None for anything else."""
    return side.value if isinstance(side, Cast) and side.dtype == "int32" and isinstance(side.value, Read) and side.value.dtype == "int8" else None


def producers(tensor: Tensor) -> list[Tensor]:
    """The tensors it reads, each once, in order of first use."""
    return list({id(read.tensor): read.tensor for read in reads(tensor)}.values())


def has_reduction(tensor: Tensor) -> bool:
    """True when the tensor is a reduction."""
    return tensor.compute is not None and bool(tensor.compute.reduce_axes)


def shifted_axis(index: Expr) -> Axis | None:
    """The axis of an index of the form `axis`, `axis + c` or `axis - c`."""
    if isinstance(index, Axis):
        return index
    if isinstance(index, Binary) and index.op in ("add", "sub"):
        if isinstance(index.left, Axis) and isinstance(index.right, Const):
            return index.left
        if index.op == "add" and isinstance(index.right, Axis) and isinstance(index.left, Const):
            return index.right
    return None


def is_simple_access(tensor: Tensor) -> bool:
    """Every index of every read is one output axis plus or minus a constant, or a constant."""
    assert tensor.compute is not None
    own = {id(axis) for axis in tensor.compute.axes}
    for read in reads(tensor):
        for index in read.indices:
            axis = shifted_axis(index)
            if not isinstance(index, Const) and (axis is None or id(axis) not in own):
                return False
    return True


def _axis_order(tensor: Tensor, read: Read) -> list[int]:
    """Positions of the output axes, in the order in which the read uses them."""
    assert tensor.compute is not None
    position = {id(axis): k for k, axis in enumerate(tensor.compute.axes)}
    found = (shifted_axis(index) for index in read.indices)
    return [position[id(axis)] for axis in found if axis is not None and id(axis) in position]


def is_ordered_access(tensor: Tensor) -> bool:
    """Every read uses the output axes in order, each at most once."""
    return all(all(a < b for a, b in zip(order, order[1:], strict=False)) for order in (_axis_order(tensor, read) for read in reads(tensor)))


def has_branch(tensor: Tensor) -> bool:
    """True when the body chooses between values."""
    return tensor.compute is not None and any(isinstance(node, Select) for node in walk(tensor.compute.body))


def has_expensive_call(tensor: Tensor) -> bool:
    """True when the body calls a function that is too expensive to recompute."""
    cheap = ("fabs", "floor", "ceil", "round", "round_half_away", "trunc", "sqrt", "rsqrt")
    return tensor.compute is not None and any(isinstance(node, Call) and node.name not in cheap for node in walk(tensor.compute.body))


def is_strictly_inlineable(tensor: Tensor) -> bool:
    """True when recomputing the tensor at each use costs next to nothing. A tensor that reads nothing always qualifies."""
    if tensor.compute is None or has_reduction(tensor) or KEPT in tensor.attrs:
        return False
    if not any(True for _ in reads(tensor)):
        return True
    return is_simple_access(tensor) and is_ordered_access(tensor) and not has_branch(tensor) and not has_expensive_call(tensor)


def needs_multi_level_tiling(tensor: Tensor) -> bool:
    """True when data is reused: two inputs, or one input of a reduction, each have an output axis that does not index them.

    Unlike the reference, this excludes an elementwise stage that also reads an input in full (a scale and shift per channel): that input decides its speed.
    """
    if tensor.compute is None or "auto_scheduler_simplify_const_tensor_indices" in tensor.attrs:
        return False
    missing, full = 0, 0
    for producer in producers(tensor):
        used = {id(node) for read in reads(tensor) if read.tensor is producer for index in read.indices for node in walk(index)}
        again = any(axis.extent > 1 and id(axis) not in used for axis in tensor.compute.axes)
        missing, full = missing + again, full + (not again)
    return missing >= 1 if has_reduction(tensor) else missing >= 2 and not full


def reduce_length(tensor: Tensor) -> int:
    """Elements combined into one output element; 1 without a reduction."""
    length = 1
    for axis in tensor.compute.reduce_axes if tensor.compute else ():
        length *= axis.extent
    return length


def needs_rfactor(tensor: Tensor, cores: int) -> bool:
    """True when the reduction offers parallel work that the output does not."""
    if not has_reduction(tensor):
        return False
    length = reduce_length(tensor)
    if needs_multi_level_tiling(tensor):
        return length >= tensor.size and tensor.size <= TILING_CORES * cores
    return length > cores


def is_elementwise_match(producer: Tensor, consumer: Tensor) -> bool:
    """`consumer` reads `producer` at its own axes: same shape, same order, no axis missing."""
    if consumer.compute is None or producer.shape != consumer.shape:
        return False
    every = list(range(len(consumer.compute.axes)))
    for read in reads(consumer):
        if read.tensor.name == producer.name:
            own = {id(axis) for axis in consumer.compute.axes}
            simple = all(shifted_axis(i) is not None and id(shifted_axis(i)) in own for i in read.indices)
            if not simple or _axis_order(consumer, read) != every:
                return False
    return True


def step_of(index: Expr, axis: Axis) -> int | None:
    """How far `index` moves when `axis` grows by one; None when the step is not constant."""
    if index is axis:
        return 1
    if isinstance(index, (Const, Axis)):
        return 0
    if not isinstance(index, Binary) or index.op not in ("add", "sub", "mul"):
        return None if any(node is axis for node in walk(index)) else 0
    left, right = step_of(index.left, axis), step_of(index.right, axis)
    if left is None or right is None:
        return None
    if index.op != "mul":
        return left + right if index.op == "add" else left - right
    if isinstance(index.right, Const):
        return left * int(index.right.value)
    if isinstance(index.left, Const):
        return right * int(index.left.value)
    return 0 if left == right == 0 else None


def memory_step(read: Read, axis: Axis) -> int | None:
    """How many elements a read moves in memory when `axis` grows by one: 0 = the same element, 1 = the next; None when the step is not constant."""
    total, stride = 0, 1
    for index, extent in zip(reversed(read.indices), reversed(read.tensor.shape), strict=True):
        step = step_of(index, axis)
        if step is None:
            return None
        total += step * stride
        stride *= extent
    return total
