"""The third pass of lowering: bodies over buffers. Inlined stages are substituted, indices made relative to regions, packed operands copied ahead.

The writer caches values: all reads of an inlined stage at the same indices share one value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ansor.errors import ScheduleError
from ansor.ir.linear import Linear, Opaque, Var, atom_variables, is_opaque, of, substituted
from ansor.ir.loops import Access, Buffer, For, IndexValue, Node, Runs, Store
from ansor.schedule.index_arithmetic import is_plain
from ansor.schedule.reads import Place, Reads, index_of, producer_of
from ansor.schedule.regions import Frame, Regions, fresh_name
from ansor.schedule.scopes import Scopes
from ansor.schedule.state import At, Inlined, Stage, State
from ansor.te.expr import INDEX, Axis, Binary, Const, Expr, Reduce, Select, identity_of, is_float
from ansor.te.fold import transform
from ansor.te.tensor import Read, Tensor

MANY_INLINED = 32  # beyond this many stages inlined into one, their values are built one by one, since recursion would go too deep


Inside = Mapping[tuple[str, str], list[Stage]]
"""(stage, loop) -> stages computed inside that loop."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """stores: the store of every stage that is not inlined. copies: by root stage, nests that copy what it reads into its loop order; workspaces: the buffers
    they write. packed: constants in loop order. inside: which stages are computed inside which loops.
    """

    stores: Mapping[str, Store]
    copies: Mapping[str, tuple[Node, ...]]
    workspaces: tuple[Buffer, ...]
    packed: Mapping[str, Buffer]
    inside: Inside


def bodies_of(state: State, regions: Regions, buffers: Mapping[str, Buffer], scopes: Scopes, known: Collection[str] = ()) -> Bodies:
    """The statement of every stage. known: root stages whose nests are already built."""
    write = _BodyBuilder(state, regions.frames, regions.reads, buffers, scopes, set(regions.names))
    stores: dict[str, Store] = {}
    copies: dict[str, tuple[Node, ...]] = {}
    inside = inside_of(state)
    for root in state.stages:
        if isinstance(root.placement, At | Inlined) or root.name in known:
            continue
        for stage in _nest_order(root, inside):
            stores[stage.name] = write.store(regions.frames[stage.name])
        copies[root.name] = tuple(write.made.copies)
        write.made.copies.clear()
    return Bodies(stores, copies, tuple(write.made.workspaces), write.made.packed, inside)


def inside_of(state: State) -> Inside:
    """Which stages are computed inside which loops."""
    found: dict[tuple[str, str], list[Stage]] = {}
    for stage in state.stages:
        if isinstance(stage.placement, At):
            found.setdefault((stage.placement.stage, stage.placement.loop), []).append(stage)
    return found


def _nest_order(stage: Stage, inside: Inside) -> Iterator[Stage]:
    """A stage, then the stages computed inside its loops, innermost loop first."""
    yield stage
    for loop in reversed(stage.loops):
        for inner in inside.get((stage.name, loop), ()):
            yield from _nest_order(inner, inside)


@dataclass(frozen=True, eq=False)
class _PackedOperands:
    """What was built for packed operands so far, as in `Bodies`; copies: only those of the current root nest."""

    packed: dict[str, Buffer]
    copies: list[Node]
    workspaces: list[Buffer]


@dataclass(frozen=True, eq=False)
class _BodyBuilder:
    state: State
    frames: Mapping[str, Frame]
    reads: Reads
    buffers: Mapping[str, Buffer]
    scopes: Scopes
    names: set[str]
    values: dict[Place, Expr] = field(default_factory=dict)
    made: _PackedOperands = field(default_factory=lambda: _PackedOperands({}, [], []))

    def store(self, frame: Frame) -> Store:
        stage = frame.stage
        assert stage.tensor.compute is not None
        body, buffer = stage.tensor.compute.body, self.buffers[stage.name]
        own = tuple(frame.place.values[axis] for axis in stage.tensor.compute.axes) + frame.kept
        index = frame.region.stored(own)
        inlined = list(self.reads.inlined.get(stage.name, {}).values())
        if len(inlined) > MANY_INLINED:
            for tensor, inner in sorted(inlined, key=lambda one: self.state.position(one[0].name)):
                self.inlined_value(tensor, inner)
        if not isinstance(body, Reduce):
            return Store(stage.name, buffer, index, self.value(body, frame.place), guards=frame.guards)
        value = self.value(body.source, frame.place)
        kinds = stage.kinds
        reduce_vars = tuple(frame.loops[loop] for loop in stage.loops if kinds[loop] == "reduce")
        identity = identity_of(body.combiner, body.dtype)
        return Store(stage.name, buffer, index, value, body.combiner, identity, reduce_vars, frame.guards)

    # values ---------------------------------------------------------------------------------------------------------------------------------------

    def value(self, expr: Expr, place: Place) -> Expr:
        """The expression over buffers instead of tensors."""
        known: dict[int, Linear] = {}
        plain: dict[int, bool] = {}
        return transform(expr, lambda node: self._replaced(node, place, known, plain))

    def inlined_value(self, tensor: Tensor, place: Place) -> Expr:
        """The value of an inlined stage at a place, shared by all reads there."""
        if place not in self.values:
            assert tensor.compute is not None
            self.values[place] = self.value(tensor.compute.body, place)
        return self.values[place]

    def _replaced(self, node: Expr, place: Place, known: dict[int, Linear], plain: dict[int, bool]) -> Expr | None:
        """The replacement of an axis, a read, or arithmetic of axes. known, plain: caches for the nodes of the body."""
        if isinstance(node, Const):
            return node
        if isinstance(node, Axis):
            return IndexValue(self._resolved(place.values[node]))
        if isinstance(node, Read):
            return self._access(node, place)
        if isinstance(node, Binary) and node.dtype == "int32" and is_plain(node, plain):
            index = index_of(node, place, self.reads.environments, known)
            return None if any(is_opaque(atom) for atom, _ in index.terms) else IndexValue(index)
        return None

    def _access(self, read: Read, place: Place) -> Expr:
        entered = self.reads.entered.get((place, id(read)))
        if entered is not None:
            return self.inlined_value(*entered)
        index = tuple(self._resolved(i) for i in self.reads.indices[place, id(read)])
        stage = self.frames[place.stage].stage
        if read.tensor.name in stage.packed.ahead or read.tensor.name in stage.packed.inside:
            return self._packed_access(read, place.stage, index)
        return self._whole(read, index)

    def _whole(self, read: Read, index: tuple[Linear, ...]) -> Access:
        """A read of a tensor as it is stored."""
        name = read.tensor.name
        if producer_of(self.state, name) is not None:
            index = self.frames[name].region.stored(index)
        return Access(self.buffers[name], index, read.dtype)

    def _resolved(self, index: Linear) -> Linear:
        """The index with its data-dependent parts rewritten over buffers."""
        if not any(is_opaque(atom) for atom, _ in index.terms):
            return index
        return substituted(index, {}, self._resolved_opaque)

    def _resolved_opaque(self, atom: Opaque) -> Linear:
        return of(Opaque(self.value(atom.value, self.reads.environments[atom])))

    # packed operands ------------------------------------------------------------------------------------------------------------------------------

    def _packed_access(self, read: Read, name: str, index: tuple[Linear, ...]) -> Expr:
        owner = self.frames[name]
        around = (*owner.path, *(owner.loops[loop] for loop in owner.stage.loops))
        used = {id(var) for one in index for atom, _ in one.terms for var in atom_variables(atom)}
        if not all(isinstance(atom, Var) for one in index for atom, _ in one.terms):
            raise ScheduleError(f"asked to pack {read.tensor.name}, which stage {name} reads through fused loops; pack before fusing")
        walked = [var for var in around if id(var) in used]
        if read.tensor.name in owner.stage.packed.inside:
            return self._packed_inside(read, index, walked)
        pack = tuple(tuple(one.coefficient(var) for var in walked) for one in index)
        starts = tuple(one.const for one in index)
        buffer = Buffer(read.tensor.name, tuple(var.extent for var in walked), read.dtype, "constant", pack, starts)
        self.made.packed[read.tensor.name] = buffer
        return Access(buffer, tuple(of(var) for var in walked), read.dtype)

    def _packed_inside(self, read: Read, index: tuple[Linear, ...], walked: list[Var]) -> Expr:
        """A read of a copy in loop order; the nest that makes the copy will run before this root nest."""
        name = fresh_name(f"{read.tensor.name}_packed", self.names)
        buffer = Buffer(name, tuple(var.extent for var in walked), read.dtype, self.scopes.whole)
        own = {var: Var(fresh_name(f"{name}_{k}", self.names), var.extent) for k, var in enumerate(walked)}
        source = tuple(substituted(one, {var: of(new) for var, new in own.items()}) for one in index)
        value = _or_zero(read, source, self._whole(read, source))
        places = tuple(of(var) for var in own.values())
        nest: tuple[Node, ...] = (Store(name, buffer, places, value),)
        for k, var in reversed(list(enumerate(own.values()))):
            nest = (For(var, "spatial", name, nest, Runs(parallel=k < min(2, len(own) - 1), vectorized=k == len(own) - 1)),)
        self.made.copies.extend(nest)
        self.made.workspaces.append(buffer)
        return Access(buffer, tuple(of(var) for var in walked), read.dtype)


def _or_zero(read: Read, index: tuple[Linear, ...], element: Expr) -> Expr:
    """An element of a tensor, 0 out of bounds."""
    inside = [Binary("lt", IndexValue(one), Const(extent, INDEX), "bool") for one, extent in zip(index, read.tensor.shape, strict=True)]
    inside += [Binary("ge", IndexValue(one), Const(0, INDEX), "bool") for one, own in zip(index, read.indices, strict=True) if not isinstance(own, Axis)]
    condition: Expr = inside[0]
    for test in inside[1:]:
        condition = Binary("and", condition, test, "bool")
    return Select(condition, element, Const(0.0 if is_float(read.dtype) else 0, read.dtype), read.dtype)
