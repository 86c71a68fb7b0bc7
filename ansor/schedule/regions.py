"""The first pass of lowering, consumers first: the region that each stage computes, its loops, its axes as sums of loop variables, and where it is stored.

    for j_0 in 4: c[j_0 * 8 .. j_0 * 8 + 7] reads p[j - 1 .. j + 1]      ->      p, inside j_0: starts at j_0 * 8 - 1, 10 long
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ansor.errors import ScheduleError
from ansor.ir.columns import Int
from ansor.ir.dag import c_identifier
from ansor.ir.linear import Linear, Var, bounds
from ansor.ir.loops import Guard
from ansor.schedule.extents import Numbers, axis_extent, axis_values, innermost_leaf, leaves, loop_extents
from ansor.schedule.guards import axis_guards, check_partial, inner_guards, without
from ansor.schedule.hull import hull, span_of
from ansor.schedule.reads import Environment, Place, Reads
from ansor.schedule.state import At, Inlined, Stage, State
from ansor.te.expr import Axis, Expr
from ansor.te.fold import postorder
from ansor.te.tensor import Read


@dataclass(frozen=True, eq=False)
class Region:
    """base, shape: the start and length of a stage's region per dimension, kept loops last; order: the order of the dimensions in memory."""

    base: tuple[Linear, ...]
    shape: tuple[Int, ...]
    order: tuple[int, ...]

    def stored(self, index: Sequence[Linear]) -> tuple[Linear, ...]:
        """The position in the buffer of the element at global `index`."""
        relative = [value - base for value, base in zip(index, self.base, strict=True)]
        return tuple(relative[k] for k in self.order)


@dataclass(frozen=True, eq=False)
class Frame:
    """A stage with its numbers.

    path: variables of the loops around the stage, outermost first; loops: those of its own loops. place: axes in global coordinates. region: what it computes;
    guards: conditions that keep it inside.
    """

    stage: Stage
    path: tuple[Var, ...]
    loops: dict[str, Var]
    place: Place
    region: Region
    kept: tuple[Linear, ...]
    guards: tuple[Guard, ...]


@dataclass(frozen=True, eq=False)
class Regions:
    """Every stage that is not inlined, all reads between stages with their indices, and all names in use."""

    frames: Mapping[str, Frame]
    reads: Reads
    names: frozenset[str]


def regions_of(state: State, numbers: Numbers, known: Mapping[str, Frame] = MappingProxyType({})) -> Regions:
    """The frames of a state with its choices set to `numbers`. known: frames of whole nests that are already known."""
    names = {tensor.name for tensor in state.dag.stages} | {stage.name for stage in state.stages}
    frames: dict[str, Frame] = {}
    reads = Reads()
    for stage in reversed(state.stages):
        if isinstance(stage.placement, Inlined):
            continue
        if stage.name in known:
            frames[stage.name] = known[stage.name]
            names.update(var.name for var in known[stage.name].loops.values())
            continue
        path, region = _region(stage, frames, reads)
        frame = frames[stage.name] = _frame(state, stage, numbers, path, region, names)
        reads.note(state, stage.tensor, frame.place)
    return Regions(frames, reads, frozenset(names))


def fresh_name(name: str, taken: set[str]) -> str:
    """`name` as a C identifier, made longer when a tensor or another loop has it; adds the result to `taken`."""
    name = c_identifier(name)
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _region(stage: Stage, frames: Mapping[str, Frame], reads: Reads) -> tuple[tuple[Var, ...], list[tuple[Linear, Int]]]:
    """The loops around the stage, and the start and length of its region per dimension."""
    if not isinstance(stage.placement, At):
        return (), [(Linear(), extent) for extent in stage.tensor.shape]
    target = frames[stage.placement.stage]
    depth = target.stage.loops.index(stage.placement.loop) + 1
    path = target.path + tuple(target.loops[loop] for loop in target.stage.loops[:depth])
    readings = [index for _, index in reads.readings.get(stage.name, [])]
    if not readings:
        raise ScheduleError(f"asked to compute stage {stage.name} inside {stage.placement.stage}, but nothing reads it")
    outside = {id(var) for var in path}
    return path, [hull([span_of(index[d], outside) for index in readings], extent) for d, extent in enumerate(stage.tensor.shape)]


def _frame(state: State, stage: Stage, numbers: Numbers, path: tuple[Var, ...], region: list[tuple[Linear, Int]], names: set[str]) -> Frame:
    spatial = stage.tensor.compute.axes if stage.tensor.compute else ()
    extents: dict[str, Int] = {axis.name: span for axis, (_, span) in zip(spatial, region, strict=True)}
    for axis in stage.axes[len(spatial) :]:
        extents[axis.name] = axis_extent(state, stage, axis, numbers)
    extents = loop_extents(stage, extents, numbers)
    loops = {loop: Var(fresh_name(f"{stage.name}_{loop}", names), extents[loop]) for loop in stage.loops}
    local = axis_values(stage, loops, extents)
    kept = tuple(local[loop] for loop in stage.storage.kept)
    values: Environment = {}
    guards: list[Guard] = []
    shape: list[Int] = []
    padded = _padded_axes(stage)
    for axis, (base, span) in zip(spatial, region, strict=True):
        values[axis] = base + local[axis.name]
        found = axis_guards(local[axis.name], base, span, axis.extent)
        if axis in padded:
            # Copies extend to the end of the tile: the last register tile is computed whole, and tiles without any element are skipped.
            found, span = without(found, loops[innermost_leaf(stage, axis.name)]), _length(local[axis.name])
        guards += found
        shape.append(span)
    for axis in stage.axes[len(spatial) :]:
        values[axis] = local[axis.name] + axis.start
        guards += axis_guards(local[axis.name], Linear(), extents[axis.name], extents[axis.name])
    guards += inner_guards(stage, local, extents)
    check_partial(stage, local, loops)
    shape += [extents[loop] for loop in stage.storage.kept]
    starts = tuple(start for start, _ in region) + tuple(Linear() for _ in stage.storage.kept)
    stored = Region(starts, tuple(shape), _storage_order(stage))
    return Frame(stage, path, loops, Place(stage.name, values), stored, kept, tuple(guards))


def _storage_order(stage: Stage) -> tuple[int, ...]:
    """The order of dimensions in memory. Private tiles store the dimension of the innermost spatial loop innermost."""
    rank = stage.tensor.ndim
    order = list(range(rank + len(stage.storage.kept)))
    if not isinstance(stage.placement, At) or stage.tensor.compute is None:
        return tuple(order)
    kinds = stage.kinds
    innermost = next((loop for loop in reversed(stage.loops) if kinds[loop] == "spatial"), None)
    for k, axis in enumerate(stage.tensor.compute.axes):
        if innermost is not None and innermost in leaves(stage, axis.name):
            return tuple([j for j in order if j != k] + [k])
    return tuple(order)


def _padded_axes(stage: Stage) -> set[Axis]:
    """Axes of a private tile that index only packed tensors: the copy extends beyond the end, and what is computed from that is never read."""
    if not isinstance(stage.placement, At) or stage.storage.kept or not stage.packed.names:
        return set()
    assert stage.tensor.compute is not None
    packed = set(stage.packed.names)
    below: set[int] = set()
    for node in postorder(stage.tensor.compute.body, lambda node: _children_outside(node, packed)):
        below.add(id(node))
    return {axis for axis in stage.tensor.compute.axes if id(axis) not in below}


def _children_outside(node: Expr, packed: set[str]) -> Sequence[Expr]:
    """The children of a node; none where it reads one of these tensors."""
    return () if isinstance(node, Read) and node.tensor.name in packed else node.children


def _length(local: Linear) -> Int:
    """The largest number of values that an index starting at 0 takes."""
    found = bounds(local)
    assert found is not None
    return found[1] + 1
