"""Tile a computation around scratchpads: operands are copied in, and sums stay there until they are complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ansor.ir import access
from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.choice import Choice, level_choice
from ansor.schedule.questions import is_untouched
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Stage, State
from ansor.schedule.steps import Buffered, CacheRead, ComputeAt, ComputeInline, Reorder, SetScope, Split, Step
from ansor.targets.base import Target
from ansor.te.expr import DIVISIONS, Axis, Binary, Reduce
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor

COPIES = (1, 2)
"""Copies of what a memory holds: with two, one is filled while the other is read."""


@dataclass(frozen=True)
class Product:
    """A sum of products: its two operands, the output axis that only the weights have, and the reduction axis that both traverse."""

    data: Tensor
    weights: Tensor
    lanes: Axis
    group: Axis


@dataclass(frozen=True)
class Plan:
    """An output, the reduction it is computed from element by element, the padding of its data, and the stages in between."""

    output: str
    total: str = ""
    padding: str = ""
    between: tuple[str, ...] = ()
    product: Product | None = None


@register("scratchpad_tiling")
@dataclass(frozen=True)
class ScratchpadTiling:
    """Split the loops of an output into tiles of whole blocks, and compute what a tile needs next to it, in separate memories.

    before   for i, j, k:  c[i, j] += a[i, k] * b[j, k]
             for i, j:     d[i, j] = max(c[i, j], 0)
    after    for j_0, i_0:
                 for k_0:
                     a_inp (inp), b_wgt (wgt), each in one copy or two
                     for k_1, i, j:  c[...] += a_inp[...] * b_wgt[...]            (acc)
                 for i_1, j_1:  d[...] = max(c[...], 0)

    block: elements that the machine multiplies at once along two axes; rows: along the third. data, weights, sums: the memories of operands and results.
    """

    block: int = 16
    rows: int = 1
    data: str = "inp"
    weights: str = "wgt"
    sums: str = "acc"
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        plan = plan_of(sketch.state, stage)
        if plan is None:
            return
        ready = sketch.then(*self._copies(sketch.state, plan), *(ComputeInline(name) for name in plan.between))
        for last in (False, True):
            tiled, outer = self._tiled(ready, plan, lanes_last=last)
            for places in self._attachments(plan):
                yield Derived(self._placed(tiled, plan, outer, places))
            if len(outer) < 2:
                return

    def _copies(self, state: State, plan: Plan) -> Iterator[Step]:
        """Steps that copy what is read."""
        if plan.total:
            for tensor in access.producers(state[plan.total].tensor):
                if tensor.name != plan.padding:
                    yield CacheRead(tensor.name, (plan.total,), self._memory(plan, tensor.name))
        readers: dict[str, list[str]] = {}
        for name in (*plan.between, plan.output):
            for tensor in access.producers(state[name].tensor):
                if tensor.name not in state:
                    readers.setdefault(tensor.name, []).append(name)
        yield from (CacheRead(name, tuple(reading), self.sums) for name, reading in readers.items())

    def _memory(self, plan: Plan, name: str) -> str:
        """The memory of a tensor that the reduction reads."""
        if plan.product is None:
            return self.sums
        return self.weights if name == plan.product.weights.name else self.data

    def _tiled(self, sketch: Sketch, plan: Plan, *, lanes_last: bool) -> tuple[Sketch, tuple[str, ...]]:
        """The sketch with the output and the reduction split, and the outer loops of the output."""
        stage = sketch.state[plan.output]
        axes = stage.axes
        lanes = self._lanes(sketch.state, plan)
        rows = next((axis for axis in axes if axis is not lanes), None)
        units = {axis.name: self.block if axis is lanes else self.rows if axis is rows else 1 for axis in axes}
        cut = [axis for axis in axes if axis is lanes or axis.extent > units[axis.name]]
        choices = [_tiles(f"{plan.output}.{axis.name}", axis.extent, units[axis.name]) for axis in cut]
        steps: list[Step] = [Split(plan.output, axis.name, choice.name, 2) for axis, choice in zip(cut, choices, strict=True)]
        outer = tuple(f"{axis.name}_0" for axis in sorted(cut, key=lambda axis: (axis is lanes) == lanes_last))
        inner = tuple(f"{axis.name}_1" if any(one is axis for one in cut) else axis.name for axis in axes)
        steps.append(Reorder(plan.output, (*outer, *inner)))
        if plan.product is not None:
            made, choice = self._cut_sum(sketch.state[plan.total], plan.product)
            steps, choices = [*steps, *made], [*choices, choice]
        return sketch.then(*steps, choices=choices), outer

    def _cut_sum(self, stage: Stage, product: Product) -> tuple[list[Step], Choice]:
        """Split the reduction into blocks: its outer loop first, the work of a tile inside."""
        group = product.group.name
        choice = _tiles(f"{stage.name}.{group}", product.group.extent, self.block)
        rest = [loop for loop in stage.loops if stage.kinds[loop] == "reduce" and loop != group]
        spatial = [loop for loop in stage.loops if stage.kinds[loop] == "spatial"]
        return [Split(stage.name, group, choice.name, 2), Reorder(stage.name, (f"{group}_0", f"{group}_1", *rest, *spatial))], choice

    def _lanes(self, state: State, plan: Plan) -> Axis:
        """The output axis that blocks run along: the second one if nothing is multiplied."""
        axes = state[plan.output].axes
        if plan.product is None:
            return axes[min(1, len(axes) - 1)]
        place = [axis.name for axis in state[plan.total].axes].index(plan.product.lanes.name)
        return axes[place]

    def _attachments(self, plan: Plan) -> Sequence[tuple[bool, bool]]:
        """Whether data and weights are copied inside the reduction loop, or before it."""
        if plan.product is None or plan.product.group.extent <= self.block:
            return ((False, False),)
        return ((True, True), (True, False), (False, True))

    def _placed(self, sketch: Sketch, plan: Plan, outer: tuple[str, ...], inside: tuple[bool, bool]) -> Sketch:
        """Place everything next to the tile: where it is computed, in which memory, in how many copies."""
        steps: list[Step] = []
        used: dict[str, None] = {}
        if plan.total:
            steps += self._kept(plan.total, (plan.output, outer[-1]), self.sums, used)
        for stage in sketch.state.stages:
            if stage.role != "cache_read" and stage.name != plan.padding:
                continue
            memory = self._memory_of(sketch.state, plan, stage)
            deep = plan.product is not None and memory != self.sums and inside[memory == self.weights]
            steps += self._kept(stage.name, (plan.total, f"{plan.product.group.name}_0") if deep and plan.product else (plan.output, outer[-1]), memory, used)
        return sketch.then(*steps, choices=[level_choice(_copies_name(memory), COPIES) for memory in used])

    def _memory_of(self, state: State, plan: Plan, stage: Stage) -> str:
        if not any(reader.name == plan.total for reader in state.readers(stage.name)):
            return self.sums
        return self._memory(plan, plan.padding if stage.name == plan.padding else access.producers(stage.tensor)[0].name)

    def _kept(self, stage: str, at: tuple[str, str], memory: str, used: dict[str, None]) -> list[Step]:
        used[memory] = None
        return [ComputeAt(stage, *at), SetScope(stage, memory), Buffered(stage, _copies_name(memory))]


def plan_of(state: State, output: str) -> Plan | None:
    """The plan for an output; None if the rule does not apply, for example with several reductions, or one that is not read element by element."""
    if not state.is_output(output) or not is_untouched(state[output]) or len(state.dag.outputs) > 1 or access.has_reduction(state[output].tensor):
        return None
    if not state[output].axes or any(not is_untouched(stage) for stage in state.stages):
        return None
    totals = [stage.name for stage in state.stages if access.has_reduction(stage.tensor)]
    others = [stage.name for stage in state.stages if stage.name not in (output, *totals)]
    if len(totals) > 1:
        return None
    if any(_is_divided(stage.tensor) for stage in state.stages):
        return None
    if not totals:
        return Plan(output, between=tuple(reversed(others)))
    (total,) = totals
    padding = [name for name in others if [reader.name for reader in state.readers(name)] == [total]]
    between = tuple(name for name in reversed(others) if name not in padding)
    chain = [stage.name for stage in state.readers(total)]
    if len(padding) > 1 or not all(access.is_elementwise_match(state[total].tensor, state[name].tensor) for name in chain):
        return None
    if any(not access.is_simple_access(state[name].tensor) for name in (*between, output)):
        return None
    product = product_of(state[total].tensor)
    if product is None and _is_across(state[total].tensor):
        return None
    return Plan(output, total, padding[0] if padding else "", between, product)


def product_of(tensor: Tensor) -> Product | None:
    """The sum of products that a tensor computes; None if it computes something else, or if no axis belongs to the weights alone."""
    body = tensor.compute.body if tensor.compute else None
    if tensor.compute is None or not isinstance(body, Reduce) or body.combiner != "sum" or not isinstance(body.source, Binary) or body.source.op != "mul":
        return None
    left, right = access.widened_byte(body.source.left), access.widened_byte(body.source.right)
    if left is None or right is None:
        return None
    found = [one for one in (_product(tensor, left, right), _product(tensor, right, left)) if one is not None]
    # If both operands could be the weights, take the constant one, else the one with the later output axis.
    places = {id(axis): place for place, axis in enumerate(tensor.compute.axes)}
    return max(found, key=lambda one: (one.weights.constant, places[id(one.lanes)]), default=None)


def _product(tensor: Tensor, data: Read, weights: Read) -> Product | None:
    assert tensor.compute is not None
    spatial = [axis for axis in tensor.compute.axes if _bare(weights, axis) and not _uses(data, axis)]
    shared = [axis for axis in tensor.compute.axes if _bare(weights, axis) and _bare(data, axis)]
    if len(spatial) != 1 or any(_uses(weights, axis) for axis in tensor.compute.axes if axis is not spatial[0] and not any(axis is one for one in shared)):
        return None
    group = next((axis for axis in tensor.compute.reduce_axes if _bare(data, axis) and _bare(weights, axis)), None)
    return None if group is None else Product(data.tensor, weights.tensor, spatial[0], group)


def _is_divided(tensor: Tensor) -> bool:
    """Whether it reads at an index with a division, as grouped channels do: such a read does not touch a box of elements."""
    return any(isinstance(node, Binary) and node.op in DIVISIONS for read in access.reads(tensor) for index in read.indices for node in walk(index))


def _is_across(tensor: Tensor) -> bool:
    """Whether it reads across the axis that blocks run along, as groups with one result each do."""
    axes = tensor.compute.axes if tensor.compute is not None else ()
    lanes = axes[min(1, len(axes) - 1)] if axes else None
    used = (index for read in access.reads(tensor) for index in read.indices if index is not lanes)
    return any(node is lanes for index in used for node in walk(index))


def _bare(read: Read, axis: Axis) -> bool:
    """Whether the axis is an index by itself."""
    return any(index is axis for index in read.indices)


def _uses(read: Read, axis: Axis) -> bool:
    return any(node is axis for index in read.indices for node in walk(index))


def _tiles(name: str, extent: int, unit: int) -> Choice:
    """Tile lengths in whole units: for each number of tiles, the shortest length."""
    units = -(-extent // unit)
    table = sorted({-(-units // count) * unit for count in range(1, units + 1)})
    return Choice(name, np.asarray(table, np.int64).reshape(-1, 1), "tile", None, extent)


def _copies_name(memory: str) -> str:
    return f"{memory} copies"
