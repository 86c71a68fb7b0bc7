"""Steps that store what a stage reads in its loop order, ahead of time or in a nest before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.schedule.state import Packed, Root, Stage, State
from ansor.schedule.step import Step, register
from ansor.te.expr import Axis, Binary, Const
from ansor.te.fold import walk
from ansor.te.tensor import Tensor


@register
@dataclass(frozen=True)
class Pack(Step):
    """Store a constant input ahead of time, in the order in which this stage's loops traverse it.

    before   for j_0, k, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:  ... b_packed[j_0, k, j_1]
    """

    code = "PK"
    tensor: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not packable(state, stage, self.tensor):
            raise ScheduleError(
                f"asked to pack {self.tensor} for stage {self.stage}; it has to be a constant that only this stage reads, once, at an index that moves evenly "
                "with the stage's axes, so that a copy in their order is no larger than the constant"
            )
        return state.updated(replace(stage, packed=Packed((*stage.packed.ahead, self.tensor), stage.packed.inside)))


@register
@dataclass(frozen=True)
class PackInside(Step):
    """Copy a tensor that is read repeatedly into the order in which this stage's loops traverse it, in a nest before this one, with zeros past its end.

    before   for i_0, j_0, k, i_1, j_1:  ... b[k, j_0 * 16 + j_1]
    after    for j_0, k, j_1:            b_packed[j_0, k, j_1] = b[k, j_0 * 16 + j_1]
             for i_0, j_0, k, i_1, j_1:  ... b_packed[j_0, k, j_1]
    """

    code = "PI"
    tensor: str

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if not packable_inside(state, stage, self.tensor):
            raise ScheduleError(
                f"asked to pack {self.tensor} inside the kernel for stage {self.stage}; it has to be an input, or a stage at root, that this stage reads once, "
                "at one own axis per dimension"
            )
        return state.updated(replace(stage, packed=Packed(stage.packed.ahead, (*stage.packed.inside, self.tensor))))


def packable(state: State, stage: Stage, name: str) -> bool:
    """True when `name` is a constant that only `stage` reads, once, at an index that moves evenly with the axes, and a copy would not be larger."""
    tensor = next((t for t in state.dag.inputs if t.name == name), None)
    if tensor is None or not tensor.constant or name in stage.packed.ahead:
        return False
    return [reader.name for reader in state.readers(name)] == [stage.name] and _reads_evenly(stage, tensor)


def _reads_evenly(stage: Stage, tensor: Tensor) -> bool:
    found = list({id(read): read for read in access.reads(stage.tensor) if read.tensor is tensor}.values())  # a read object that is used twice counts once
    if len(found) != 1 or tensor.ndim == 0:
        return False
    nodes = [node for index in found[0].indices for node in walk(index)]
    if not all(isinstance(node, Axis | Const) or (isinstance(node, Binary) and node.op in ("add", "sub", "mul")) for node in nodes):
        return False
    axes = list({id(node): node for node in nodes if isinstance(node, Axis)}.values())
    even = all(access.step_of(index, axis) is not None for index in found[0].indices for axis in axes)
    return even and len(axes) > 0 and all(axis.start == 0 for axis in axes) and prod(axis.extent for axis in axes) <= tensor.size


def packable_inside(state: State, stage: Stage, name: str) -> bool:
    """True when `name` is an input, or a stage at root, that `stage` reads once, at an index that moves evenly with the axes; a copy would not be larger."""
    whole = any(tensor.name == name for tensor in state.dag.inputs) or any(other.name == name and isinstance(other.placement, Root) for other in state.stages)
    if not whole or name in stage.packed.names:
        return False
    return _reads_at_axes(stage, name) or any(_reads_evenly(stage, tensor) for tensor in access.producers(stage.tensor) if tensor.name == name)


def _reads_at_axes(stage: Stage, name: str) -> bool:
    found = [read for read in access.reads(stage.tensor) if read.tensor.name == name]
    if len(found) != 1:
        return False
    read = found[0]
    # A dimension of one element needs no loop, as in a 1x1 kernel.
    walked = [index for index, extent in zip(read.indices, read.tensor.shape, strict=True) if not (extent == 1 and isinstance(index, Const))]
    axes = [index for index in walked if isinstance(index, Axis) and index.start == 0]
    return len(axes) == len(walked) > 0 and len({id(axis) for axis in axes}) == len(axes)
