"""Steps that add stages: private tiles, copies of what is read, partial results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.schedule.place_steps import placed
from ansor.schedule.state import Root, Stage, State, initial_stage, redirected
from ansor.schedule.step import Step, register
from ansor.te.expr import Axis, Expr, Reduce
from ansor.te.tensor import Compute, Read, Tensor


def _copy_of(tensor: Tensor, name: str) -> Tensor:
    """A tensor `name` of the same shape that copies `tensor`."""
    labels = [axis.name for axis in tensor.compute.axes] if tensor.compute else [f"i{k}" for k in range(tensor.ndim)]
    axes = tuple(Axis(label, extent) for label, extent in zip(labels, tensor.shape, strict=True))
    return Tensor(name, tensor.shape, tensor.dtype, Compute(axes, (), Read(tensor, axes, tensor.dtype)))


def _new_name(state: State, name: str) -> str:
    taken = {tensor.name for tensor in state.dag.stages} | {stage.name for stage in state.stages}
    count, candidate = 1, name
    while candidate in taken:
        candidate, count = f"{name}_{count}", count + 1
    return candidate


@register
@dataclass(frozen=True)
class CacheWrite(Step):
    """Accumulate in a private tile and copy it out once. The new stage is called `<stage>_local`.

    before   for i, j, k:  c[i, j] += a[i, k] * b[k, j]
    after    for i, j, k:  c_local[i, j] += a[i, k] * b[k, j]
             for i, j:     c[i, j] = c_local[i, j]
    """

    code = "CHW"

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        if stage.relations or stage.role or not isinstance(stage.placement, Root) or state.attached(self.stage):
            raise ScheduleError(f"asked to cache-write stage {self.stage}, which was changed or moved already; do this first")
        local = replace(stage.tensor, name=_new_name(state, f"{self.stage}_local"))
        cached = replace(initial_stage(local), packed=stage.packed, role="cache_write")
        copy = replace(_copy_of(local, self.stage), attrs=stage.tensor.attrs, tag=stage.tensor.tag)
        return state.inserted(self.stage, cached).updated(initial_stage(copy))


@register
@dataclass(frozen=True)
class CacheRead(Step):
    """Copy a tensor for some of its readers. The new stage is called `<tensor>_<suffix>`; `stage` is the tensor copied.

    before   for i, j:  c[i, j] = a[j]
    after    for j:     a_local[j] = a[j]
             for i, j:  c[i, j] = a_local[j]
    """

    code = "CHR"
    readers: tuple[str, ...]
    suffix: str = "local"

    def apply(self, state: State) -> State:
        tensor = state[self.stage].tensor if self.stage in state else state.dag.stage(self.stage)
        if self.stage in state and state[self.stage].storage.kept:
            raise ScheduleError(f"asked to copy {self.stage}, which holds partial results of an rfactor; compute it at a loop of its reader instead")
        for reader in self.readers:
            if not any(read.tensor.name == self.stage for read in access.reads(state[reader].tensor)):
                raise ScheduleError(f"asked to copy {self.stage} for stage {reader}, which does not read it; name stages that do")
            if self.stage in state[reader].packed.names:
                raise ScheduleError(f"asked to copy {self.stage} for stage {reader}, which reads it packed already; copy it first, and pack the copy")
        if not self.readers:
            raise ScheduleError(f"asked to copy {self.stage} for no stage; name at least one reader")
        copy = _copy_of(tensor, _new_name(state, f"{self.stage}_{self.suffix}"))
        first = min(self.readers, key=state.position)
        moved = state.inserted(first, replace(initial_stage(copy), role="cache_read"))
        for reader in self.readers:
            stage = moved[reader]
            moved = moved.updated(replace(stage, tensor=redirected(stage.tensor, self.stage, copy)))
        return placed(moved, moved[copy.name])


@register
@dataclass(frozen=True)
class Rfactor(Step):
    """Store partial results of one reduction loop and combine them in a second stage. The new stage is called `<stage>_rf`.

    before   for i:  for k_0:  for k_1:  c[i] += a[i, k]
    after    for i:  for k_1:  for k_0:  c_rf[i, k_1] += a[i, k]
             for i:  for k_1:  c[i] += c_rf[i, k_1]
    """

    code = "RF"
    loop: str
    position: int

    def apply(self, state: State) -> State:
        stage = state[self.stage]
        stage.check_loop(self.loop, "rfactor")
        body = stage.tensor.compute.body if stage.tensor.compute else None
        if not isinstance(body, Reduce) or stage.kinds[self.loop] != "reduce":
            raise ScheduleError(f"asked to rfactor loop {self.loop} of stage {self.stage}, which is not a reduction loop; name one")
        if stage.role or not isinstance(stage.placement, Root) or state.attached(self.stage):
            raise ScheduleError(f"asked to rfactor stage {self.stage}, which was cached, factored or moved already, or has stages inside; do this first")
        if not 0 <= self.position <= len(stage.tensor.shape):
            raise ScheduleError(f"asked to rfactor stage {self.stage} to position {self.position}; it takes 0..{len(stage.tensor.shape)}")
        rest = [loop for loop in stage.loops if loop != self.loop]
        name = _new_name(state, f"{self.stage}_rf")
        partial = replace(
            stage,
            tensor=replace(stage.tensor, name=name),
            loops=(*rest[: self.position], self.loop, *rest[self.position :]),
            origins=replace(stage.origins, kinds=dict(stage.kinds) | {self.loop: "spatial"}),
            storage=replace(stage.storage, kept=(self.loop,)),
            role="rfactor",
        )
        return state.inserted(self.stage, partial).updated(_combining(stage, partial, self.loop, body))


def _combining(stage: Stage, partial: Stage, loop: str, body: Reduce) -> Stage:
    """The second half of rfactor: the stage that reduces over the kept loop."""
    assert stage.tensor.compute is not None
    axes = tuple(Axis(axis.name, axis.extent) for axis in stage.tensor.compute.axes)
    kept = Axis(loop, 1, "reduce")
    source = Tensor(partial.name, (*stage.tensor.shape, 1), stage.tensor.dtype, partial.tensor.compute)
    read: Expr = Read(source, (*axes, kept), stage.tensor.dtype)
    compute = Compute(axes, (kept,), Reduce(body.combiner, read, (kept,), body.dtype))
    fresh = initial_stage(replace(stage.tensor, compute=compute))
    return replace(fresh, origins=replace(fresh.origins, borrowed={loop: (partial.name, loop)}), role="rfactor_final")
