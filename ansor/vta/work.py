"""Counts the work of programs on a core from their loops, with the same arithmetic for one program and for a population.

Each nest that becomes instructions is counted on its own: how often it runs, and what it moves or computes each time. Every tile counts as a full one;
`Work.filling` corrects the total for the parts of tiles beyond the ends of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir.columns import Flag, Int, Row, ceil_div, choose, product, row, smaller
from ansor.ir.linear import Linear, Var, variables
from ansor.ir.loops import Access, Buffer, For, Loops, Node, Store, stores
from ansor.ir.simplify import conjuncts
from ansor.te.expr import Binary, Expr, Select
from ansor.te.fold import walk
from ansor.vta.buffers import MEMORIES, doubled_in, scoped
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.lanes import lanes_of, product_of
from ansor.vta.nests import Blocks, accesses, leaf_store, loops_of, multiplied, plain
from ansor.vta.regions import padding_of, runs_of
from ansor.vta.shared import anywhere, needed_twice, signature
from ansor.vta.uop_counts import instructions_of, uops_of
from ansor.vta.windows import movable, padded_in


@dataclass(frozen=True, eq=False)
class Transfer:
    """A transfer between DRAM and a memory. times: how often it runs; elements, pieces, rows: its elements, instructions and contiguous runs in DRAM."""

    buffer: Buffer
    memory: Memory
    times: Int
    elements: Int
    pieces: Int
    rows: Int


@dataclass(frozen=True, eq=False)
class ComputeWork:
    """Work of the compute module. times: how often it runs; begins: how many of these runs start from the identity; elements: elements visited each time;
    spatial, reduced: extents of its loops; steps: ALU operations, with an immediate and with two tensors; kernels: the most distinct sets of micro-ops."""

    store: Store
    times: Int
    begins: Int
    elements: Int
    spatial: tuple[Int, ...]
    reduced: tuple[Int, ...]
    steps: tuple[int, int]
    kernels: Int

    @property
    def results(self) -> Int:
        """The number of elements that are written each time."""
        return product(self.spatial)

    @property
    def parts(self) -> Int:
        """The number of instructions for each operation."""
        return instructions_of(self.results, self.elements)

    @property
    def gemm(self) -> bool:
        """Whether GEMM computes it: a sum of products."""
        return product_of(self.store) is not None


@dataclass(frozen=True, eq=False)
class Border:
    """Padding around copies that the ALU writes. times: how often; sides: padded sides of a copy; copies: copies of the buffer. Its cost is nearly the same
    in all programs, so the estimate leaves it out."""

    times: Int
    sides: int
    copies: Int


@dataclass(frozen=True, eq=False)
class Work:
    """All work of a program. held: elements that its buffers take in each memory; filling: share of the tiles that is inside the tensors; movable: whether
    LOADs can do all copies with padding."""

    transfers: tuple[Transfer, ...]
    computing: tuple[ComputeWork, ...]
    held: Mapping[Memory, Int]
    copies: Mapping[Memory, Int]
    filling: Row
    borders: tuple[Border, ...] = ()
    movable: Flag = True


def work_of(loops: Loops, configuration: Configuration) -> Work:
    """The work of a program. Raises ScheduleError if the loops are not a program for a core."""
    count = _Counter(loops, configuration)
    for path, node in _leaves(loops.body, ()):
        count.nest(path, node)
    held: dict[Memory, Int] = dict.fromkeys((Memory.INP, Memory.WGT, Memory.ACC), 0)
    copies: dict[Memory, Int] = dict.fromkeys(held, 2)
    doubled = doubled_in(loops)
    for buffer in scoped(loops):
        memory = MEMORIES[buffer.scope]
        size = product(_blocks_of(extent, count.lanes[buffer].get(dimension, 1)) for dimension, extent in enumerate(buffer.shape))
        held[memory] = held[memory] + size * (buffer.copies + (1 if buffer in doubled else 0))
        copies[memory] = smaller(copies[memory], buffer.copies)
    return Work(tuple(count.transfers), tuple(count.computing), held, copies, count.filling, tuple(count.borders), count.movable)


def work_on_core(loops: Loops, configuration: Configuration) -> Work | None:
    """The same; None for loops that are not a program for a core."""
    if any(buffer.scope not in MEMORIES for buffer in loops.intermediates) or not any(store.buffer.scope in MEMORIES for _, store in stores(loops.body)):
        return None
    try:
        return work_of(loops, configuration)
    except ScheduleError:
        return None


def _leaves(nodes: Sequence[Node], path: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Node]]:
    for node in nodes:
        if leaf_store(node) is not None:
            yield path, node
        elif isinstance(node, For):
            yield from _leaves(node.body, (*path, node))


class _Counter:
    def __init__(self, loops: Loops, configuration: Configuration) -> None:
        self.lanes: Mapping[Buffer, Blocks] = lanes_of(loops, configuration).blocks
        self.transfers: list[Transfer] = []
        self.computing: list[ComputeWork] = []
        self.borders: list[Border] = []
        self.filling: Row = 1.0
        self.movable: Flag = True

    def nest(self, path: tuple[For, ...], node: Node) -> None:
        """Count a nest."""
        store = leaf_store(node)
        assert store is not None
        own = list(loops_of(node))
        value = plain(store.value)
        if store.buffer.scope == "output":
            self._computes(path, own, store)
            self._moves(path, own, store, Access(store.buffer, store.index, store.buffer.dtype), Memory.OUT)
            self.filling = row(product(store.buffer.shape)) / row(product(loop.var.extent for loop in (*path, *own)))
        elif store.combiner is not None:
            self._computes(path, own, store)
        else:
            access = next(iter(accesses(value.then if isinstance(value, Select) else value)))
            memory = MEMORIES[store.buffer.scope]
            narrow = memory == Memory.ACC and access.buffer.dtype == "int8"
            self._moves(path, own, store, access, Memory.ACC8 if narrow else memory)
            if isinstance(value, Select):
                self._pads(store, value, memory)
                self.movable = self.movable & movable(store, access, padded_in(value, access), path, *self._region(own, access))

    def _pads(self, store: Store, value: Select, memory: Memory) -> None:
        number = padding_of(value)
        if number and memory != Memory.ACC:
            raise ScheduleError(f"asked for a VTA program that pads {store.buffer.name} in {memory.name} with {number}: a LOAD pads with 0")
        if number:
            self.borders.append(Border(self.transfers[-1].times, len(list(conjuncts(value.condition))), store.buffer.copies))

    def _region(self, own: list[For], access: Access) -> tuple[list[Int], list[Int]]:
        """Elements of each dimension that a nest touches, and of the whole tensor."""
        blocks, inner = self.lanes[access.buffer], {loop.var for loop in own}
        shape = [_blocks_of(extent, blocks.get(dimension, 1)) for dimension, extent in enumerate(access.buffer.shape)]
        return [_along(index, inner, blocks.get(dimension, 1)) for dimension, index in enumerate(access.index)], shape

    def _moves(self, path: tuple[For, ...], own: list[For], store: Store, access: Access, memory: Memory) -> None:
        region, shape = self._region(own, access)
        elements = product(region)
        times = product(loop.var.extent for loop in path) if memory == Memory.OUT else _times(path, access, store.buffer.copies)
        together, second = runs_of(region, shape)
        self.transfers.append(Transfer(store.buffer, memory, times, elements, elements // (together * second), elements // together))

    def _computes(self, path: tuple[For, ...], own: list[For], store: Store) -> None:
        sides = [Access(store.buffer, store.index, store.buffer.dtype), *accesses(store.value)]
        blocks = {var: size for side in sides for dimension, size in self.lanes[side.buffer].items() for var in variables(side.index[dimension])}
        extents = [(loop.kind == "reduce", _blocks_of(loop.var.extent, blocks.get(loop.var, 1))) for loop in own if not _is_one(loop.var.extent)]
        spatial, reduced = (tuple(extent for reduces, extent in extents if reduces == wanted) for wanted in (False, True))
        turns = product(side.buffer.copies for side in sides if side.buffer.scope in MEMORIES)
        shapes = product(choose(guard.needed, 2, 1) for guard in store.guards)
        times = product(loop.var.extent for loop in path)
        begins = product(loop.var.extent for loop in path if loop.kind != "reduce" or loop.stage != store.stage)
        self.computing.append(ComputeWork(store, times, begins, product((*spatial, *reduced)), spatial, reduced, _steps(store), turns * shapes))


def _is_one(extent: Int) -> bool:
    return isinstance(extent, int) and extent == 1


def _blocks_of(extent: Int, block: int) -> Int:
    return extent if block == 1 else ceil_div(extent, block)


def _along(index: Linear, inner: set[Var], block: int) -> Int:
    """Elements of a dimension that the loops of a nest traverse."""
    return _blocks_of(product(var.extent for var in variables(index) if var in inner), block)


def _times(path: tuple[For, ...], access: Access, copies: Int) -> Int:
    """How often a region has to be moved because no copy holds it. The regions that inner loops traverse are reused if the copies can hold them."""
    used = {atom: coefficient for index in access.index for atom, coefficient in index.terms if isinstance(atom, Var)}
    times: Int = 1
    regions: Int = 1
    for loop in reversed(path):
        moves: Flag = used[loop.var] != 0 if loop.var in used else False
        times = choose(moves | (regions > copies), times * loop.var.extent, times)
        regions = choose(moves, regions * loop.var.extent, regions)
    return times


def _steps(store: Store) -> tuple[int, int]:
    """ALU operations of a statement: with an immediate, and with two tensors."""
    if product_of(store) is not None:
        return 0, 0
    operations = list({signature(node, anywhere): node for node in walk(store.value) if isinstance(node, Binary)}.values())
    tensors = sum(all(_reads(side) for side in (node.left, node.right)) for node in operations)
    turned = sum(node.op == "sub" and _reads(node.right) for node in operations)
    if multiplied(store) is not None:
        return 0, 3
    if store.combiner is not None:
        return len(operations) - tensors + turned + (store.combiner != "sum"), tensors + 1
    copied = needed_twice(store.value) is not None
    return max(1 if not tensors else 0, len(operations) - tensors + turned) + copied, tensors + copied


def _reads(value: Expr) -> bool:
    return next(accesses(value), None) is not None


_OF_BORDERS = 8 * 15
"""The most micro-ops of the borders of a copy: four sides, each in tiles of two lengths, each of up to 15 rows or columns."""


def instructions(work: Work) -> Int:
    """The approximate number of instructions of a program."""
    moved = sum((one.times * one.pieces for one in work.transfers), start=0) + sum((one.times * one.sides for one in work.borders), start=0)
    for one in work.computing:
        each = 1 + (one.store.combiner is not None) + sum(one.steps)
        # Products are computed for one index of the reduction at a time.
        moved = moved + one.times * (each + one.parts if multiplied(one.store) is None else (1 + each) * one.elements // one.results)
    return moved


def micro_ops(work: Work) -> Int:
    """The most micro-ops that all kernels together have."""
    total: Int = sum((_OF_BORDERS * one.copies for one in work.borders), start=0)
    for one in work.computing:
        spatial = uops_of(one.spatial, ())
        kernel = uops_of(one.spatial, one.reduced) if multiplied(one.store) is None else spatial * one.steps[1]
        total = total + (kernel + (spatial if one.store.combiner is not None else spatial * one.steps[1])) * one.kernels
    return total
