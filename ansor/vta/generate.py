"""The code generator of VTA: compiles loops to an operator.

Loops around more than one statement are unrolled. Statements become instructions: a copy into a memory of the core becomes LOADs, a sum of products GEMMs,
arithmetic on accumulators ALUs, and results STOREs. Data that a copy of a buffer already holds is not loaded again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ansor.errors import ScheduleError
from ansor.ir.linear import Var
from ansor.ir.loops import Access, Buffer, For, Loops, Node, Store
from ansor.te.expr import Expr, Select
from ansor.vta.arithmetic import TENSOR, Step, steps_of
from ansor.vta.assembler import assemble, encode_uops
from ansor.vta.buffers import MEMORIES, Place, places_of
from ansor.vta.compiled import NO_TENSOR, Operator, OperatorTensor
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Uop, UopRange
from ansor.vta.kernels import Kernel, StridedLoop, kernels_of
from ansor.vta.lanes import Lanes, lanes_of, product_of
from ansor.vta.nests import ARGUMENTS, Nest, leaf_store, multiplied, nest_of, plain
from ansor.vta.pieces import pieces_of
from ansor.vta.regions import Span, borders, check_padding, is_whole, padding_of, region_of, sizes_of, strides_in
from ansor.vta.stream import Stream
from ansor.vta.tensors import TensorLayout
from ansor.vta.transfers import Extent, loads, stores

Thing = tuple[Memory, int]
"""The key of a copy of a buffer: instructions list what they use by such keys."""

Moves = tuple[int, dict[Var, int]]
"""The first element, and its stride in each loop."""

_IDENTITIES = {"max": (AluOp.MIN, -(1 << 15)), "min": (AluOp.MAX, (1 << 15) - 1)}
"""The operation that turns zero into the identity of a reduction, which leaves every int8 unchanged."""


def is_for_core(loops: Loops) -> bool:
    """Whether the loops keep anything in memories of the core."""
    return any(leaf.buffer.scope in MEMORIES for leaf in _leaves(loops.body))


def compile_operator(loops: Loops, configuration: Configuration) -> Operator:
    """The operator that the loops of one program compute. Raises ScheduleError for what the core cannot do, or has no space for."""
    return _Generator(loops, configuration).operator()


def _leaves(nodes: Sequence[Node]) -> list[Store]:
    found: list[Store] = []
    for node in nodes:
        found += [node] if isinstance(node, Store) else _leaves(node.body)
    return found


def _part_of(place: Place, piece: int) -> Thing:
    """The key of a piece of the current copy. There are fewer pieces than elements, so it differs from the key of any other copy."""
    return place.memory, place.start + piece


def _fills_sums(node: Node) -> bool:
    """Whether it copies into the accumulators. The compute module does that itself, ideally while it waits for the first operands."""
    store = leaf_store(node)
    return store is not None and store.buffer.scope == "acc" and store.combiner is None


class _Generator:
    def __init__(self, loops: Loops, configuration: Configuration) -> None:
        self._loops, self._configuration = loops, configuration
        if any(buffer.scope not in MEMORIES for buffer in loops.intermediates):
            raise ScheduleError("asked for a VTA program with a whole intermediate in DRAM: compute it inside a loop of its reader, in a memory of the core")
        self._lanes: Lanes = lanes_of(loops, configuration)
        self._places = places_of(loops, self._lanes.blocks, self._lanes.orders, configuration)
        self._layouts: dict[Buffer, TensorLayout] = {}
        self._stream = Stream()
        self._tensor_of: list[int] = []
        self._uops: list[Uop] = []
        self._kernels: dict[tuple[Uop, ...], UopRange] = {}
        self._ranges: dict[Kernel, UopRange] = {}
        self._values: dict[Var, int] = {}
        self._bodies: dict[int, list[Node]] = {}

    def operator(self) -> Operator:
        """The whole operator."""
        self._run(self._loops.body)
        if len(self._uops) > self._configuration.depth(Memory.UOP):
            room = self._configuration.depth(Memory.UOP)
            raise ScheduleError(f"asked for a VTA program with {len(self._uops)} micro-ops; UOP holds {room}: use fewer tile shapes")
        roles = {one: (one.scope, self._layouts[one]) for one in self._loops.arguments if one in self._layouts}
        missing = next((one.name for one in self._loops.arguments if one not in roles), None)
        if missing is not None:
            raise ScheduleError(f"asked for a VTA program that never touches its argument {missing}: leave it out")
        tensors = tuple(OperatorTensor(one.name, *roles[one][:1], one.dtype, roles[one][1]) for one in self._loops.arguments)
        words = assemble(self._stream.with_tokens(), self._configuration)
        return Operator(self._configuration, words, encode_uops(self._uops, self._configuration), tensors, np.asarray(self._tensor_of, np.int64))

    def _run(self, nodes: Sequence[Node]) -> None:
        for node in self._bodies.setdefault(id(nodes), sorted(nodes, key=_fills_sums, reverse=True)):
            if leaf_store(node) is not None:
                self._leaf(node)
            elif isinstance(node, For):
                for at in range(int(node.var.extent)):
                    self._values[node.var] = at
                    self._run(node.body)
                del self._values[node.var]

    def _leaf(self, node: Node) -> None:
        nest = nest_of(node, self._values, self._lanes.blocks)
        if nest.empty():
            return
        store, value = nest.store, plain(nest.store.value)
        if store.buffer.scope == "output":
            self._results(nest)
        elif store.buffer.scope not in MEMORIES:
            raise ScheduleError(f"asked for a VTA program that keeps {store.buffer.name} in {store.buffer.scope}: name a memory of the core")
        elif store.combiner is not None:
            self._reduction(nest)
        elif isinstance(value, Access | Select):
            self._copy(nest, value)
        else:
            raise ScheduleError(f"asked for a VTA program that computes {store.buffer.name} on its way into {store.buffer.scope}: copy it, and compute there")

    # copies ---------------------------------------------------------------------------------------------------------------------------------------

    def _copy(self, nest: Nest, value: Expr) -> None:
        access = value.then if isinstance(value, Select) else value
        access = plain(access)
        if not isinstance(access, Access) or access.buffer.scope not in ARGUMENTS:
            raise ScheduleError(f"asked for a VTA program that loads {value}: loads copy arguments, with zeros around them")
        place, padded = self._places[nest.store.buffer], isinstance(value, Select)
        if isinstance(value, Select):
            check_padding(value, access, nest)
        memory = Memory.ACC8 if place.memory == Memory.ACC and access.buffer.dtype == "int8" else place.memory
        region = region_of(nest, access, self._layout(access.buffer, memory), padded)
        key = (access.buffer, region)
        if place.find(key):
            return
        place.turn(sizes_of(nest, nest.store.index, place), key)
        extents = self._extents(nest, access, Access(nest.store.buffer, nest.store.index, nest.store.buffer.dtype), region)
        for one in loads(memory, place.start, sum(span.start * span.stride for span in region), extents):
            self._add(one, access.buffer, (), (place.thing,))
        number = padding_of(value)
        if number:
            self._fill(place, region, [extent.sram for extent in extents], number, access)

    def _fill(self, place: Place, region: Sequence[Span], strides: Sequence[int], number: int, access: Access) -> None:
        """Write a number over the zeros around a region. Only the ALU can, and only in the accumulators."""
        if place.memory != Memory.ACC:
            raise ScheduleError(f"asked for a VTA program that pads {access.buffer.name} in {place.memory.name} with {number}: a LOAD pads with 0")
        for start, sides in borders(place.start, region, strides):
            for kernel in kernels_of((start, 0, 0), tuple(StridedLoop(count, stride) for count, stride in sides)):
                self._add(Alu(AluOp.ADD, self._range(kernel), number, kernel.outer, kernel.inner), None, (), (place.thing,))

    def _extents(self, nest: Nest, outside: Access, inside: Access, region: Sequence[Span]) -> list[Extent]:
        """A region of an argument, with its strides in a buffer."""
        strides = strides_in(nest, outside, inside, self._places[inside.buffer])
        return [Extent(span.count, span.stride, stride, span.before, span.after) for span, stride in zip(region, strides, strict=True)]

    def _layout(self, buffer: Buffer, memory: Memory) -> TensorLayout:
        """The layout of an argument in DRAM."""
        if buffer not in self._layouts:
            blocks = self._lanes.blocks[buffer]
            channels = sorted(blocks, key=lambda dimension: (memory != Memory.WGT and blocks[dimension] == 1 << self._configuration.block, dimension))
            if memory == Memory.WGT:
                channels = list(blocks)  # rows of a block are output channels: `lanes_of` has them first
            cut = tuple(blocks[one] for one in channels)
            wide = 1 << (self._configuration.block if memory == Memory.WGT else self._configuration.batch)  # rows of an element
            repeats = (wide << self._configuration.block) // prod(cut)
            self._layouts[buffer] = TensorLayout(memory, tuple(map(int, buffer.shape)), tuple(channels), cut, repeats=repeats)
        return self._layouts[buffer]

    # sums -----------------------------------------------------------------------------------------------------------------------------------------

    def _reduction(self, nest: Nest) -> None:
        store = nest.store
        place, operands = self._places[store.buffer], product_of(store)
        if all(self._values.get(var, 0) == 0 for var in store.reduce_vars):
            self._begin(nest, place)
        target = Access(store.buffer, store.index, store.buffer.dtype)
        if operands is None:
            self._combine(nest, target)
            return
        data, weights = operands
        self._gemm(nest, target, data, weights)
        place.held.key = None

    def _begin(self, nest: Nest, place: Place) -> None:
        """Begin a new copy, which holds the identity."""
        counts = nest.counts()
        place.turn(sizes_of(nest, nest.store.index, place))
        spatial = {var: count for var, count in counts.items() if var not in nest.store.reduce_vars}
        target = Access(nest.store.buffer, nest.store.index, nest.store.buffer.dtype)
        self._reset(nest, target, spatial)
        if nest.store.combiner in _IDENTITIES:
            operation, number = _IDENTITIES[nest.store.combiner]
            self._alu(nest, Step(operation, target, number), spatial)

    def _reset(self, nest: Nest, target: Access, counts: dict[Var, int]) -> None:
        start, steps = self._places[target.buffer].element(target, nest)
        for kernel in kernels_of((start, 0, 0), tuple(StridedLoop(count, steps.get(var, 0)) for var, count in counts.items())):
            self._add(Gemm(self._range(kernel), kernel.outer, kernel.inner, reset=True), None, (), (self._places[target.buffer].thing,))

    def _gemm(self, nest: Nest, target: Access, data: Access, weights: Access) -> None:
        sides = [self._places[one.buffer].element(one, nest) for one in (target, data, weights)]
        lanes = {var for var in nest.along if var not in sides[0][1] and var not in sides[1][1] and var not in sides[2][1]}
        walks = [StridedLoop(count, *(steps.get(var, 0) for _, steps in sides)) for var, count in nest.counts().items() if var not in lanes]
        things = [self._places[one.buffer].thing for one in (data, weights)]
        for kernel in kernels_of((sides[0][0], sides[1][0], sides[2][0]), tuple(walks)):
            self._add(Gemm(self._range(kernel), kernel.outer, kernel.inner), None, things, (self._places[target.buffer].thing,))

    def _combine(self, nest: Nest, target: Access) -> None:
        """A reduction on the ALU."""
        counts, store = nest.counts(), nest.store
        assert store.combiner is not None
        factors = multiplied(store)
        if factors is not None:
            self._products(nest, target, *factors)
            return
        operation = TENSOR.get({"sum": "add", "prod": "mul"}.get(store.combiner, store.combiner))
        source = plain(store.value)
        if operation is None or store.combiner == "prod" or not isinstance(source, Access) or source.buffer.scope != "acc":
            raise ScheduleError(f"asked the ALU of a VTA core for {store.combiner} of {store.value}: it reduces what its accumulators hold, by +, min and max")
        self._alu(nest, Step(operation, target, None, source), counts)
        self._places[target.buffer].held.key = None

    def _products(self, nest: Nest, target: Access, left: Access, right: Access) -> None:
        """A sum of products on the ALU, for one index of the reduction at a time: spare = 0 + left, spare *= right, sums += spare."""
        place, reduced = self._places[target.buffer], [var for var in nest.store.reduce_vars if var in nest.extents]
        spatial = {var: extent for var, extent in nest.extents.items() if var not in reduced}
        spare = (place.memory, place.spare)
        for at in itertools.product(*(range(nest.extents[var]) for var in reduced)):
            one = replace(nest, extents=spatial, values={**nest.values, **dict(zip(reduced, at, strict=True))})
            start, steps = place.element(target, one)
            room = (start - place.start + place.spare, steps)
            self._visit(one, None, room, None, (), spare)
            for operation, factor in ((AluOp.ADD, left), (AluOp.MUL, right)):
                self._visit(one, operation, room, self._places[factor.buffer].element(factor, one), (self._places[factor.buffer].thing,), spare)
            self._visit(one, AluOp.ADD, (start, steps), room, (spare,), place.thing)
        place.held.key = None

    def _visit(self, nest: Nest, operation: AluOp | None, target: Moves, source: Moves | None, reads: Sequence[Thing], writes: Thing) -> None:
        """Apply an operation to elements with those of `source`; None writes zeros."""
        start, others = (0, {}) if source is None else source
        walks = tuple(StridedLoop(count, target[1].get(var, 0), others.get(var, 0)) for var, count in nest.counts().items())
        for kernel in kernels_of((target[0], start, 0), walks):
            uops = self._range(kernel)
            one = Gemm(uops, kernel.outer, kernel.inner, reset=True) if operation is None else Alu(operation, uops, None, kernel.outer, kernel.inner)
            self._add(one, None, reads, (writes,))

    # arithmetic -----------------------------------------------------------------------------------------------------------------------------------

    def _alu(self, nest: Nest, step: Step, counts: dict[Var, int], piece: int = 0) -> None:
        place = self._places[step.target.buffer]
        start, moves = place.element(step.target, nest)
        other, others = self._places[step.source.buffer].element(step.source, nest) if step.source is not None else (0, {})
        reads = () if step.source is None else (self._places[step.source.buffer].thing,)
        place.held.key = None
        for kernel in kernels_of((start, other, 0), tuple(StridedLoop(count, moves.get(var, 0), others.get(var, 0)) for var, count in counts.items())):
            self._add(Alu(step.operation, self._range(kernel), step.immediate, kernel.outer, kernel.inner), None, reads, (_part_of(place, piece),))

    def _results(self, nest: Nest) -> None:
        store = nest.store
        if store.combiner is not None or store.buffer.dtype != "int8":
            raise ScheduleError(f"asked for a VTA program that stores {store.buffer.name} of {store.buffer.dtype}: it stores int8, from its accumulators")
        if all(at == int(var.extent) - 1 for var, at in self._values.items()):
            for number, piece in enumerate(pieces_of(nest)):
                self._piece(piece, number)
        else:
            self._piece(nest)

    def _piece(self, nest: Nest, number: int = 0) -> None:
        """The arithmetic on sums, and a STORE. number: number of the piece; pieces share no elements."""
        store = nest.store
        final, steps = steps_of(store.value, lambda access: is_whole(nest, access, self._places[access.buffer].blocks))
        for step in steps or (Step(AluOp.ADD, final, 0),):
            self._alu(nest, step, nest.counts(), number)
        place, layout = self._places[final.buffer], self._layout(store.buffer, Memory.OUT)
        output = Access(store.buffer, store.index, store.buffer.dtype)
        region = region_of(nest, output, layout, False)
        extents = self._extents(nest, output, final, region)
        start = place.element(final, nest)[0]
        for one in stores(start, sum(span.start * span.stride for span in region), extents):
            self._add(one, store.buffer, (_part_of(place, number),), ())

    # instructions ---------------------------------------------------------------------------------------------------------------------------------

    def _range(self, kernel: Kernel) -> UopRange:
        """The range of a kernel's micro-ops in UOP; equal micro-ops are stored once."""
        if kernel not in self._ranges:
            if kernel.uops not in self._kernels:
                begin = len(self._uops)
                self._uops += kernel.uops
                self._kernels[kernel.uops] = UopRange(begin, len(self._uops))
            self._ranges[kernel] = self._kernels[kernel.uops]
        return self._ranges[kernel]

    def _add(self, one: Instruction, buffer: Buffer | None, reads: Sequence[Thing], writes: Sequence[Thing]) -> None:
        self._stream.add(one, reads, writes)
        self._tensor_of.append(NO_TENSOR if buffer is None else self._loops.arguments.index(buffer))

