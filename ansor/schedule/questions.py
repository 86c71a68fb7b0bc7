"""Named questions about a state. Rules, location variants and annotation ask only these and those of `ansor.ir.access`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ansor.ir import access
from ansor.schedule.state import Inlined, Root, SplitRelation, Stage, State
from ansor.schedule.steps import packable, packable_inside
from ansor.te.expr import Axis, Binary, Const, Expr
from ansor.te.fold import walk
from ansor.te.tensor import Tensor

CONST_INDICES = "auto_scheduler_simplify_const_tensor_indices"
NO_SPLIT_AT_INNER = "auto_scheduler_no_split_at_inner"
ALWAYS_UNROLL_INNER = "auto_scheduler_always_unroll_inner"
SAME_RUN = 8  # vectors pay from this many neighbours that read the same element
MIN_RFACTOR = 16  # partial results of a shorter reduction cost more than they gain


def attribute_names(tensor: Tensor, attribute: str) -> tuple[str, ...]:
    """The axis names listed in an attribute of a declaration; empty without it."""
    value = tensor.attrs.get(attribute, ())
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value) if isinstance(value, (list, tuple)) else ()


def is_untouched(stage: Stage) -> bool:
    """True when the loops are as declared: nothing is split, fused, cached or factored."""
    return not stage.relations and not stage.role and isinstance(stage.placement, Root)


def needs_tiling(state: State, name: str) -> bool:
    """True when data is reused and the loops are not split yet."""
    stage = state[name]
    return access.needs_multi_level_tiling(stage.tensor) and not stage.relations and not isinstance(stage.placement, Inlined)


def needs_rfactor(state: State, name: str, cores: int) -> bool:
    """True when the reduction offers parallel or vector work that the output does not. False for stages made by a step or with packed inputs."""
    stage = state[name]
    if not is_untouched(stage) or stage.packed.names or access.reduce_length(stage.tensor) < MIN_RFACTOR:
        return False
    return access.needs_rfactor(stage.tensor, cores)


def matched_consumer(state: State, name: str) -> Stage | None:
    """The only stage that finally reads `name`, element by element, so that its loops can write the results out.

    Inlined stages in between have to match too. None when there is no such stage, when both have reductions, when `name` is an output (which is
    kept whole), or when another stage was already fused into that stage.
    """
    found = _matched_through(state, name)
    if found is None or state.is_output(name):
        return None
    consumer = state[found]
    if access.has_reduction(consumer.tensor) and access.has_reduction(state[name].tensor):
        return None
    return consumer if not consumer.relations and not state.attached(found) and isinstance(consumer.placement, Root) else None


def _matched_through(state: State, name: str) -> str | None:
    ends: set[str | None] = set()
    for reader in state.readers(name):
        if not access.is_elementwise_match(state[name].tensor, reader.tensor):
            return None
        ends.add(_matched_through(state, reader.name) if isinstance(reader.placement, Inlined) else reader.name)
    return ends.pop() if len(ends) == 1 else None


def is_free_to_inline(state: State, name: str) -> bool:
    """True when inlining repeats no work: there is one reader, which reads every element once."""
    readers = state.readers(name)
    if len(readers) != 1 or access.has_reduction(readers[0].tensor):
        return False
    count = sum(read.tensor.name == name for read in access.reads(readers[0].tensor))
    return count == 1 and access.is_elementwise_match(state[name].tensor, readers[0].tensor)


def packable_constants(state: State, name: str) -> list[str]:
    """The constants that may be stored in this stage's loop order."""
    stage = state[name]
    return [tensor.name for tensor in access.producers(stage.tensor) if packable(state, stage, tensor.name)]


def packable_operands(state: State, name: str, reuse: int) -> tuple[list[str], list[str]]:
    """The inputs that may be copied into this stage's loop order and whose elements are each read at least `reuse` times: first those indexed by the
    innermost output axis, then the others.
    """
    stage = state[name]
    assert stage.tensor.compute is not None
    axes = stage.tensor.compute.axes
    found: tuple[list[str], list[str]] = ([], [])
    for tensor in access.producers(stage.tensor):
        used = {id(node) for read in access.reads(stage.tensor) if read.tensor is tensor for index in read.indices for node in walk(index)}
        again = prod(axis.extent for axis in axes if id(axis) not in used)
        if again >= reuse and packable_inside(state, stage, tensor.name):
            found[id(axes[-1]) not in used].append(tensor.name)
    return found


def reads_in_rows(state: State, stage: str, name: str) -> bool:
    """Whether a stage reads a tensor directly at its own axes, without strides or windows."""
    found = [read for read in access.reads(state[stage].tensor) if read.tensor.name == name]
    return all(isinstance(index, Axis | Const) for read in found for index in read.indices)


def _along(stage: Stage) -> set[str]:
    """The tensors that the innermost output axis indexes."""
    assert stage.tensor.compute is not None
    last = stage.tensor.compute.axes[-1]
    return {read.tensor.name for read in access.reads(stage.tensor) for index in read.indices if any(node is last for node in walk(index))}


def axes_of_packed_only(state: State, name: str) -> list[Axis]:
    """Output axes that index the largest packed operand and no other input: the output channels of a convolution, also of a grouped one, where many
    neighbours in a row read the same data. Packed operands are constants; or, if the innermost output axis (for vectors) indexes operands only in strides or
    windows, those packed inside.
    """
    stage = state[name]
    if stage.tensor.compute is None:
        return []
    packed = [tensor for tensor in access.producers(stage.tensor) if tensor.name in stage.packed.ahead]
    if not packed and not any(reads_in_rows(state, name, along) for along in _along(stage)):
        packed = [tensor for tensor in access.producers(stage.tensor) if tensor.name in stage.packed.inside and tensor.name not in _along(stage)]
    if not packed:
        return []
    largest = max(packed, key=lambda tensor: tensor.size)
    users: dict[int, set[str]] = {}
    for read in access.reads(stage.tensor):
        for index in read.indices:
            for node in _moving(index):
                users.setdefault(id(node), set()).add(read.tensor.name)
    return [axis for axis in stage.tensor.compute.axes if users.get(id(axis)) == {largest.name}]


def _moving(index: Expr) -> Iterator[Expr]:
    """The parts of an index that change between neighbouring elements: not those below a division by SAME_RUN or more."""
    if isinstance(index, Binary) and index.op == "floordiv" and isinstance(index.right, Const) and index.right.value >= SAME_RUN:
        return
    yield index
    for child in index.children:
        yield from _moving(child)


def levels(stage: Stage) -> tuple[tuple[str, ...], ...]:
    """The loops grouped into tiling levels: neighbours of one kind and one position among the parts of their splits.

    i_0 j_0 i_1 j_1 k_0 i_2 j_2 k_1 i_3 j_3   ->   (i_0 j_0) (i_1 j_1) (k_0) (i_2 j_2) (k_1) (i_3 j_3)
    """
    position = {part: k for relation in stage.relations if isinstance(relation, SplitRelation) for k, part in enumerate(relation.parts)}
    groups: list[list[str]] = []
    last: tuple[str, int] | None = None
    for loop in stage.loops:
        here = (stage.kinds[loop], position.get(loop, -1))
        if here != last:
            groups.append([])
        groups[-1].append(loop)
        last = here
    return tuple(tuple(group) for group in groups)


def is_follower(stage: Stage) -> bool:
    """True when its loops are split like those of a stage computed inside it."""
    return any(isinstance(relation, SplitRelation) and relation.follow for relation in stage.relations)


def leading_spatial(stage: Stage) -> tuple[str, ...]:
    """The spatial loops before the first reduction loop."""
    first = next((k for k, loop in enumerate(stage.loops) if stage.kinds[loop] != "spatial"), len(stage.loops))
    return stage.loops[:first]


def reduces_neighbours(stage: Stage) -> bool:
    """True when the innermost loop is a reduction along which every read moves by one element or not at all, so that it can be reduced in vectors."""
    return stage.kinds[stage.loops[-1]] == "reduce" and reduced_in_memory_order(stage, 2)


def reduced_in_memory_order(stage: Stage, least: int) -> bool:
    """True when the last reduction axis has at least `least` elements, and every read moves along it by one element or not at all, one of them by one."""
    assert stage.tensor.compute is not None
    if not stage.tensor.compute.reduce_axes:
        return False
    axis = stage.tensor.compute.reduce_axes[-1]
    steps = {access.memory_step(read, axis) for read in access.reads(stage.tensor)}
    return axis.extent >= least and 1 in steps and steps <= {0, 1}
