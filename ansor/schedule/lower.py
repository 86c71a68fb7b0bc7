"""Lowering: from a state and its numbers to loop nests, for one program or for a whole population at once.

The passes, in order:

    1. frames      consumers first: the region each stage computes, its loop extents, its axes as sums of loop variables, its buffer
    2. values      bodies over buffers: inlined stages substituted, indices made relative to the region
    3. nests       loops around stores, stages computed inside others put into their loop

Nothing branches on a number, so lowering a matrix of rows equals lowering its rows one by one, and can be recorded before there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansor.errors import ScheduleError
from ansor.ir.columns import Flag, Int, anywhere, ceil_div, choose, larger, product, smaller, surely_somewhere
from ansor.ir.dag import c_identifier
from ansor.ir.linear import (
    Atom,
    Linear,
    Opaque,
    Quotient,
    Remainder,
    Var,
    atom_bounds,
    atom_variables,
    bounds,
    is_opaque,
    of,
    substituted,
)
from ansor.ir.loops import Access, Buffer, For, Guard, IndexValue, Loops, Node, Store
from ansor.schedule.index_arithmetic import affine, is_index_arithmetic, is_plain, signature
from ansor.schedule.state import Amount, At, FuseRelation, Inlined, SplitRelation, Stage, State
from ansor.te.expr import INDEX, Axis, Binary, Cast, Const, Expr, Reduce, Select, identity_of
from ansor.te.fold import postorder, transform
from ansor.te.tensor import Read, Tensor

Numbers = Mapping[str, tuple[Int, ...]]
Environment = dict[Axis, Linear]
MANY_INLINED = 32  # stages inlined into one from which on their values are made one after the other, as Python's calls do not go as deep as they may


@dataclass(frozen=True, eq=False)
class Place:
    """Where a body is computed: for which frame, and what its axes are there. A stage inlined into a frame has one for all reads at the same indices."""

    frame: str
    values: Environment


@dataclass(frozen=True, eq=False)
class Frame:
    """A stage with its numbers.

    path: variables of all loops around the stage's own, outermost first; loops: its own; values: axes in global coordinates;
    base: per stored dimension where the region starts; guards: conditions for leaving nothing outside.
    """

    stage: Stage
    path: tuple[Var, ...]
    loops: dict[str, Var]
    values: Environment
    buffer: Buffer
    base: tuple[Linear, ...]
    order: tuple[int, ...]
    kept: tuple[Linear, ...]
    guards: tuple[Guard, ...]

    def stored(self, index: Sequence[Linear]) -> tuple[Linear, ...]:
        """Where in the buffer the element at global `index` lies."""
        relative = [value - base for value, base in zip(index, self.base, strict=True)]
        return tuple(relative[k] for k in self.order)


def lower(state: State, numbers: Numbers, name: str = "kernel") -> Loops:
    """The loop nests of `state` with its choices set to `numbers`."""
    return _Lowering(state, numbers).loops(name)


class _Lowering:
    def __init__(self, state: State, numbers: Numbers) -> None:
        self.state = state
        self.numbers = numbers
        self.frames: dict[str, Frame] = {}
        self.places: dict[str, Place] = {}
        self.indices: dict[tuple[Place, int], tuple[Linear, ...]] = {}
        self.inlined: dict[str, dict[tuple[object, ...], tuple[Tensor, Place]]] = {}  # frame -> what is read at which indices
        self.entered: dict[tuple[Place, int], tuple[Tensor, Place]] = {}
        self.values: dict[Place, Expr] = {}
        self.readings: dict[str, list[tuple[str, tuple[Linear, ...]]]] = {}
        self.environments: dict[Opaque, Place] = {}
        self.arguments = {t.name: Buffer(t.name, t.shape, t.dtype, "constant" if t.constant else "input") for t in state.dag.inputs}
        self.packed: dict[str, Buffer] = {}
        self.copies: list[Node] = []
        self.workspaces: list[Buffer] = []
        self.taken = {tensor.name for tensor in state.dag.stages} | {stage.name for stage in state.stages}

    def loops(self, name: str) -> Loops:
        stages = [stage for stage in self.state.stages if not isinstance(stage.placement, Inlined)]
        for stage in reversed(stages):
            self.frames[stage.name] = self._frame(stage)
            self.places[stage.name] = Place(stage.name, self.frames[stage.name].values)
            self._note_reads(stage.tensor, self.places[stage.name])
        roots = [stage for stage in stages if not isinstance(stage.placement, At)]
        body = tuple(node for stage in roots for node in self._root_nest(stage))
        buffers = self.arguments | {n: f.buffer for n, f in self.frames.items()} | self.packed
        intermediates = (*(self.frames[s.name].buffer for s in roots if self.frames[s.name].buffer.scope == "workspace"), *self.workspaces)
        arguments = tuple(buffers[tensor.name] for tensor in self.state.dag.tensors)
        return Loops(name, arguments, intermediates, body, {tensor.name: tensor.shape for tensor in self.state.dag.tensors})

    # 1. frames ------------------------------------------------------------------------------------------------------------------------------------

    def _frame(self, stage: Stage) -> Frame:
        spatial = stage.tensor.compute.axes if stage.tensor.compute else ()
        path, region = self._region(stage)
        extents: dict[str, Int] = {axis.name: span for axis, (_, span) in zip(spatial, region, strict=True)}
        for axis in stage.axes[len(spatial) :]:
            extents[axis.name] = axis_extent(self.state, stage, axis, self.numbers)
        extents = loop_extents(stage, extents, self.numbers)
        loops = {loop: Var(self._fresh_name(f"{stage.name}_{loop}"), extents[loop]) for loop in stage.loops}
        local = _values(stage, loops, extents)
        kept = tuple(local[loop] for loop in stage.kept)
        values: Environment = {}
        guards: list[Guard] = []
        shape: list[Int] = []
        padded = _padded_axes(stage)
        for axis, (base, span) in zip(spatial, region, strict=True):
            values[axis] = base + local[axis.name]
            found = _guards(local[axis.name], base, span, axis.extent)
            if axis in padded:
                # Copies go on to the end of the tile: the last register tile is computed whole, and a whole tile without an element is left out.
                last = loops[_innermost_leaf(stage, axis.name)]
                found = [replace(guard, value=_without(guard.value, last)) for guard in found]
                span = _length(local[axis.name])
            guards += found
            shape.append(span)
        for axis in stage.axes[len(spatial) :]:
            values[axis] = local[axis.name] + axis.start
            guards += _guards(local[axis.name], Linear(), extents[axis.name], extents[axis.name])
        guards += _inner_guards(stage, local, extents)
        _check_partial(stage, local, loops)
        shape += [extents[loop] for loop in stage.kept]
        order = self._storage_order(stage)
        buffer = Buffer(stage.name, _aligned(stage, tuple(shape[k] for k in order)), stage.tensor.dtype, self._scope(stage))
        bases = tuple(start for start, _ in region) + tuple(Linear() for _ in stage.kept)
        return Frame(stage, path, loops, values, buffer, bases, order, kept, tuple(guards))

    def _fresh_name(self, name: str) -> str:
        """`name` as C allows it, or a longer one when a tensor or another loop has it."""
        name = c_identifier(name)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _scope(self, stage: Stage) -> str:
        if self.state.is_output(stage.name):
            return "output"
        return "local" if isinstance(stage.placement, At) else "workspace"

    def _storage_order(self, stage: Stage) -> tuple[int, ...]:
        """The dimension walked by the innermost spatial loop is stored innermost, in tiles whose layout nobody else sees."""
        rank = stage.tensor.ndim
        order = list(range(rank + len(stage.kept)))
        if not isinstance(stage.placement, At) or stage.tensor.compute is None:
            return tuple(order)
        innermost = next((loop for loop in reversed(stage.loops) if stage.kinds[loop] == "spatial"), None)
        for k, axis in enumerate(stage.tensor.compute.axes):
            if innermost is not None and innermost in _leaves(stage, axis.name):
                return tuple([j for j in order if j != k] + [k])
        return tuple(order)

    def _region(self, stage: Stage) -> tuple[tuple[Var, ...], list[tuple[Linear, Int]]]:
        """The loops around the stage, and per dimension where its region starts and how long it is."""
        if not isinstance(stage.placement, At):
            return (), [(Linear(), extent) for extent in stage.tensor.shape]
        target = self.frames[stage.placement.stage]
        depth = target.stage.loops.index(stage.placement.loop) + 1
        path = target.path + tuple(target.loops[loop] for loop in target.stage.loops[:depth])
        readings = [index for _, index in self.readings.get(stage.name, [])]
        if not readings:
            raise ScheduleError(f"asked to compute stage {stage.name} inside {stage.placement.stage}, but nothing reads it")
        outside = {id(var) for var in path}
        region = [_hull([_span(index[d], outside) for index in readings], extent) for d, extent in enumerate(stage.tensor.shape)]
        return path, region

    # 2. values ------------------------------------------------------------------------------------------------------------------------------------

    def _note_reads(self, tensor: Tensor, place: Place) -> None:
        """Remember at which global indices a stage reads every other, looking through inlined stages."""
        open_bodies = [(place, iter(_reads_in_order(tensor)))]
        while open_bodies:
            place, waiting = open_bodies[-1]
            read = next(waiting, None)
            if read is None:
                open_bodies.pop()
                continue
            index = self.indices[place, id(read)] = tuple(self._index(i, place) for i in read.indices)
            producer = self._producer(read.tensor.name)
            if producer is not None and isinstance(producer.placement, Inlined):
                known = self.inlined.setdefault(place.frame, {})
                key = (producer.name, *map(signature, index))
                if key not in known:
                    assert producer.tensor.compute is not None
                    inner = Place(place.frame, dict(zip(producer.tensor.compute.axes, index, strict=True)))
                    known[key] = producer.tensor, inner
                    open_bodies.append((inner, iter(_reads_in_order(producer.tensor))))
                self.entered[place, id(read)] = known[key]
            elif producer is not None:
                self.readings.setdefault(producer.name, []).append((place.frame, index))

    def _producer(self, name: str) -> Stage | None:
        return self.state[name] if name in self.state else None  # noqa: SIM401  # a State has no get

    def _index(self, expr: Expr, place: Place, known: dict[int, Linear] | None = None) -> Linear:
        """An integer expression as a sum of loop variables; what is not one becomes opaque. known: of parts, by id."""
        if isinstance(expr, Axis):
            return place.values[expr]
        known = {} if known is None else known
        for node in postorder(expr, lambda node: node.children if id(node) not in known and is_index_arithmetic(node) else ()):
            if id(node) not in known:
                known[id(node)] = self._index_of_node(node, place, known)
        return known[id(expr)]

    def _index_of_node(self, expr: Expr, place: Place, known: Mapping[int, Linear]) -> Linear:
        if isinstance(expr, Const):
            return Linear((), int(expr.value))
        if isinstance(expr, Axis):
            return place.values[expr]
        if is_index_arithmetic(expr):
            found = known[id(expr.value)] if isinstance(expr, Cast) else affine(expr, *(known[id(child)] for child in expr.children))
            if found is not None:
                return found
        atom = Opaque(expr)
        self.environments[atom] = place
        return of(atom)

    def _value(self, expr: Expr, place: Place) -> Expr:
        """The expression over buffers instead of tensors."""
        known: dict[int, Linear] = {}
        plain: dict[int, bool] = {}
        return transform(expr, lambda node: self._replaced(node, place, known, plain))

    def _replaced(self, node: Expr, place: Place, known: dict[int, Linear], plain: dict[int, bool]) -> Expr | None:
        """What stands for an axis, for a read, and for arithmetic of axes. known, plain: what was found out about other nodes of the body."""
        if isinstance(node, Const):
            return node
        if isinstance(node, Axis):
            return IndexValue(self._resolved(place.values[node]))
        if isinstance(node, Read):
            return self._access(node, place)
        if isinstance(node, Binary) and node.dtype == "int32" and is_plain(node, plain):
            index = self._index(node, place, known)
            return None if any(is_opaque(atom) for atom, _ in index.terms) else IndexValue(index)
        return None

    def _access(self, read: Read, place: Place) -> Expr:
        if (place, id(read)) in self.entered:
            return self._inlined_value(*self.entered[place, id(read)])
        index = tuple(self._resolved(i) for i in self.indices[place, id(read)])
        frame = place.frame
        if read.tensor.name in (*self.frames[frame].stage.packed, *self.frames[frame].stage.packed_inside):
            return self._packed_access(read, frame, index)
        return self._whole(read, index)

    def _inlined_value(self, tensor: Tensor, place: Place) -> Expr:
        """The value of a stage where it is inlined, one for all reads there."""
        if place not in self.values:
            assert tensor.compute is not None
            self.values[place] = self._value(tensor.compute.body, place)
        return self.values[place]

    def _whole(self, read: Read, index: tuple[Linear, ...]) -> Access:
        """A read of a tensor as it is stored."""
        if self._producer(read.tensor.name) is None:
            return Access(self.arguments[read.tensor.name], index, read.dtype)
        source = self.frames[read.tensor.name]
        return Access(source.buffer, source.stored(index), read.dtype)

    def _resolved(self, index: Linear) -> Linear:
        """Data-dependent parts over buffers."""
        if not any(is_opaque(atom) for atom, _ in index.terms):
            return index
        return substituted(index, {}, self._resolved_opaque)

    def _resolved_opaque(self, atom: Opaque) -> Linear:
        return of(Opaque(self._value(atom.value, self.environments[atom])))

    def _packed_access(self, read: Read, frame: str, index: tuple[Linear, ...]) -> Expr:
        owner = self.frames[frame]
        around = (*owner.path, *(owner.loops[loop] for loop in owner.stage.loops))
        used = {id(var) for one in index for atom, _ in one.terms for var in atom_variables(atom)}
        if not all(isinstance(atom, Var) for one in index for atom, _ in one.terms):
            raise ScheduleError(f"asked to pack {read.tensor.name}, which stage {frame} reads through fused loops; pack before fusing")
        walked = [var for var in around if id(var) in used]
        if read.tensor.name in owner.stage.packed_inside:
            return self._packed_inside(read, index, walked)
        pack = tuple(tuple(one.coefficient(var) for var in walked) for one in index)
        starts = tuple(one.const for one in index)
        buffer = Buffer(read.tensor.name, tuple(var.extent for var in walked), read.dtype, "constant", pack, starts)
        self.packed[read.tensor.name] = buffer
        return Access(buffer, tuple(of(var) for var in walked), read.dtype)

    def _packed_inside(self, read: Read, index: tuple[Linear, ...], walked: list[Var]) -> Expr:
        """A read of a copy in loop order; the nest that makes the copy is kept for the front of this root nest."""
        name = self._fresh_name(f"{read.tensor.name}_packed")
        buffer = Buffer(name, tuple(var.extent for var in walked), read.dtype, "workspace")
        own = {var: Var(self._fresh_name(f"{name}_{k}"), var.extent) for k, var in enumerate(walked)}
        source = tuple(substituted(one, {var: of(new) for var, new in own.items()}) for one in index)
        inside = [Binary("lt", IndexValue(one), Const(extent, INDEX), "bool") for one, extent in zip(source, read.tensor.shape, strict=True)]
        element: Expr = self._whole(read, source)
        zero = Const(0.0 if read.dtype.startswith("float") else 0, read.dtype)
        condition: Expr = inside[0]
        for test in inside[1:]:
            condition = Binary("and", condition, test, "bool")
        places = tuple(of(var) for var in own.values())
        nest: tuple[Node, ...] = (Store(name, buffer, places, Select(condition, element, zero, read.dtype)),)
        for k, var in reversed(list(enumerate(own.values()))):
            nest = (For(var, "spatial", name, nest, parallel=k < min(2, len(own) - 1), vectorized=k == len(own) - 1),)
        self.copies += nest
        self.workspaces.append(buffer)
        return Access(buffer, tuple(of(var) for var in walked), read.dtype)

    # 3. nests -------------------------------------------------------------------------------------------------------------------------------------

    def _amount(self, amount: Amount) -> Int:
        return self.numbers[amount][0] if isinstance(amount, str) else amount

    def _root_nest(self, stage: Stage) -> tuple[Node, ...]:
        """The nest of a stage at root, after the copies that it reads."""
        nest = self._nest(stage)
        copies, self.copies = tuple(self.copies), []
        return copies + nest

    def _nest(self, stage: Stage) -> tuple[Node, ...]:
        frame = self.frames[stage.name]
        body: tuple[Node, ...] = (self._store(frame),)
        for k in range(len(stage.loops) - 1, -1, -1):
            loop = stage.loops[k]
            inside = [s for s in self.state.stages if s.placement == At(stage.name, loop)]
            nested = tuple(node for s in inside for node in self._nest(s))
            body = (self._for(frame, k, nested + body, tuple(self.frames[s.name].buffer for s in inside)),)
        return body

    def _for(self, frame: Frame, k: int, body: tuple[Node, ...], local: tuple[Buffer, ...]) -> For:
        stage, loop = frame.stage, frame.stage.loops[k]
        notes = stage.annotations
        parallel = self._amount(notes.parallel)
        return For(
            frame.loops[loop],
            stage.kinds[loop],
            stage.name,
            body,
            parallel=_flag(parallel, k),
            vectorized=_flag(self._amount(notes.vectorize.get(loop, 0)), 0),
            unrolled=loop in notes.unroll,
            unroll_limit=self._amount(notes.unroll_limit),
            locals=local,
            intrinsic=notes.intrinsics.get(loop, ""),
        )

    def _store(self, frame: Frame) -> Store:
        stage = frame.stage
        assert stage.tensor.compute is not None
        body = stage.tensor.compute.body
        own = tuple(frame.values[axis] for axis in stage.tensor.compute.axes) + frame.kept
        index = frame.stored(own)
        inlined = list(self.inlined.get(stage.name, {}).values())
        if len(inlined) > MANY_INLINED:
            for tensor, inner in sorted(inlined, key=lambda one: self.state.position(one[0].name)):
                self._inlined_value(tensor, inner)
        if not isinstance(body, Reduce):
            return Store(stage.name, frame.buffer, index, self._value(body, self.places[stage.name]), guards=frame.guards)
        value = self._value(body.source, self.places[stage.name])
        reduce_vars = tuple(frame.loops[loop] for loop in stage.loops if stage.kinds[loop] == "reduce")
        identity = identity_of(body.combiner, body.dtype)
        return Store(stage.name, frame.buffer, index, value, body.combiner, identity, reduce_vars, frame.guards)


def axis_extent(state: State, stage: Stage, axis: Axis, numbers: Numbers) -> Int:
    """Iterations of an axis of a stage: as declared, or of the loop whose partial results the stage combines."""
    if axis.name not in stage.borrowed:
        return axis.extent
    owner, loop = stage.borrowed[axis.name]
    partial = state[owner]
    # The kept loop's extent depends on nothing but the numbers: a reduction is never cut down to a region.
    return loop_extents(partial, {one.name: one.extent for one in partial.axes}, numbers)[loop]


def loop_extents(stage: Stage, axes: Mapping[str, Int], numbers: Numbers) -> dict[str, Int]:
    """Iterations of every loop that a stage has or had, from those of its axes."""
    extents = dict(axes)
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            extents[relation.fused] = product(extents[parent] for parent in relation.parents)
            continue
        rest = extents[relation.parent]
        given = list(zip(relation.parts[:-1] if relation.outer else relation.parts[1:], _lengths(relation, numbers), strict=True))
        for part, length in given if relation.outer else reversed(given):
            extents[part] = smaller(length, rest)
            rest = ceil_div(rest, extents[part])
        extents[relation.parts[-1 if relation.outer else 0]] = rest
    return extents


def _lengths(relation: SplitRelation, numbers: Numbers) -> tuple[Int, ...]:
    lengths: tuple[Int, ...] = numbers[relation.lengths] if isinstance(relation.lengths, str) else relation.lengths
    if relation.follow:
        lengths = (*lengths[: relation.follow - 1], product(lengths[relation.follow - 1 :]))
    return lengths


def _flag(amount: Int, position: int) -> Flag:
    return amount > position


def _aligned(stage: Stage, shape: tuple[Int, ...]) -> tuple[Int, ...]:
    if stage.align is None or not shape:
        return shape
    factor, offset = stage.align
    last = shape[-1]
    return (*shape[:-1], last + (offset - last) % factor)


def _reads_in_order(tensor: Tensor) -> list[Read]:
    """Reads of the body, each once, those inside the indices of a read before it."""
    assert tensor.compute is not None
    return [node for node in postorder(tensor.compute.body) if isinstance(node, Read)]


def _leaves(stage: Stage, loop: str) -> set[str]:
    """The loops that `loop` was turned into."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            return set().union(*(_leaves(stage, part) for part in relation.parts))
        if isinstance(relation, FuseRelation) and loop in relation.parents:
            return _leaves(stage, relation.fused)
    return {loop}


def _values(stage: Stage, loops: dict[str, Var], extents: dict[str, Int]) -> dict[str, Linear]:
    """Every loop and axis as a sum of the stage's loop variables."""
    values: dict[str, Linear] = {loop: of(var) for loop, var in loops.items()}
    for relation in reversed(stage.relations):
        if isinstance(relation, SplitRelation):
            value, stride = Linear(), 1
            terms = []
            for part in reversed(relation.parts):
                terms.append(values[part] * stride)
                stride = stride * extents[part]  # type: ignore[assignment]  # an int or an array
            for term in reversed(terms):
                value = value + term
            values[relation.parent] = value
            continue
        rest = values[relation.fused]
        for k, parent in enumerate(relation.parents):
            inner = product(extents[p] for p in relation.parents[k + 1 :])
            outer = of(Quotient(rest, inner)) if k + 1 < len(relation.parents) else rest
            values[parent] = of(Remainder(outer, extents[parent])) if k > 0 else outer
    return values


def _padded_axes(stage: Stage) -> set[Axis]:
    """Axes of a private tile that are read through packed tensors only: a copy goes on beyond the end, and nobody reads what is made of that."""
    if not isinstance(stage.placement, At) or stage.kept or not (stage.packed or stage.packed_inside):
        return set()
    assert stage.tensor.compute is not None
    packed = {*stage.packed, *stage.packed_inside}
    elsewhere = {id(node) for node in _outside(stage.tensor.compute.body, packed)}
    return {axis for axis in stage.tensor.compute.axes if id(axis) not in elsewhere}


def _outside(expr: Expr, packed: set[str]) -> Iterator[Expr]:
    """Every node that is not below a read of one of these tensors."""
    return postorder(expr, lambda node: () if isinstance(node, Read) and node.tensor.name in packed else node.children)


def _innermost_leaf(stage: Stage, axis: str) -> str:
    """The innermost loop that an axis was turned into."""
    leaves = _leaves(stage, axis)
    return next(loop for loop in reversed(stage.loops) if loop in leaves)


def _without(linear: Linear, var: Var) -> Linear:
    return Linear(tuple((atom, coefficient) for atom, coefficient in linear.terms if atom is not var), linear.const)


def _length(local: Linear) -> Int:
    """How many values an index from 0 on takes at most."""
    found = bounds(local)
    assert found is not None
    return found[1] + 1


def _guards(local: Linear, base: Linear, span: Int, extent: Int) -> list[Guard]:
    """Conditions that keep an axis inside its region and its tensor; each says for which rows it is needed."""
    found = bounds(local)
    assert found is not None
    guards = []
    overshoot = found[1] >= span
    if anywhere(overshoot):
        guards.append(Guard(local, None, span, overshoot))
    whole = bounds(base + local)
    if base.terms or not _is_zero(base.const):
        assert whole is not None
        outside = (whole[0] < 0) | (whole[1] >= extent)
        if anywhere(outside):
            guards.append(Guard(base + local, 0, extent, outside))
    return guards


def _check_partial(stage: Stage, local: dict[str, Linear], loops: Mapping[str, Var]) -> None:
    """Every partial result of an rfactor has to hold something: its first element, with the loops that reduce into it at 0, lies inside the axis."""
    reduced = {id(loops[loop]) for loop in stage.loops if stage.kinds[loop] == "reduce"}
    for axis in stage.axes if stage.kept else ():
        first = Linear(tuple((atom, coefficient) for atom, coefficient in local[axis.name].terms if id(atom) not in reduced), local[axis.name].const)
        found = bounds(first)
        if axis.kind == "reduce" and found is not None and surely_somewhere(found[1] >= axis.extent):
            raise ScheduleError(
                f"asked to rfactor stage {stage.name} along axis {axis.name} ({axis.extent}), which is cut so unevenly that some partial results would "
                "hold nothing; give lengths that divide"
            )


def _inner_guards(stage: Stage, local: dict[str, Linear], extents: dict[str, Int]) -> list[Guard]:
    """A part that was split again, without dividing, must not run into the next iteration of the part outside it."""
    axes = {axis.name for axis in stage.axes}
    guards = []
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation) or relation.parent in axes:
            continue
        found = bounds(local[relation.parent])
        assert found is not None
        overshoot = found[1] >= extents[relation.parent]
        if anywhere(overshoot):
            guards.append(Guard(local[relation.parent], None, extents[relation.parent], overshoot))
    return guards


def _is_zero(value: Int) -> bool:
    return isinstance(value, int) and value == 0


Span = tuple[Linear, Int, Int] | None


def _span(index: Linear, outside: set[int]) -> Span:
    """The part of an index fixed by the loops outside, and the least and greatest of the rest; None when it depends on data."""
    fixed: list[tuple[Atom, Int]] = []
    low: Int = index.const
    high: Int = index.const
    for atom, coefficient in index.terms:
        inner = list(atom_variables(atom))
        if not is_opaque(atom) and inner and all(id(var) in outside for var in inner):
            fixed.append((atom, coefficient))
            continue
        found = atom_bounds(atom)
        if found is None:
            return None
        a, b = found[0] * coefficient, found[1] * coefficient
        low, high = low + smaller(a, b), high + larger(a, b)
    return Linear(tuple(fixed)), low, high


def _hull(spans: list[Span], extent: int) -> tuple[Linear, Int]:
    """One region that covers all reads of a dimension: its start, and its length (never more than the dimension)."""
    first = spans[0]
    if first is None:
        return Linear(), extent
    base, low, high = first
    together: Flag = True
    for other in spans[1:]:
        if other is None or not _same_atoms(base, other[0]):
            return Linear(), extent
        for (_, a), (_, b) in zip(base.terms, other[0].terms, strict=True):
            together = together & (a == b)
        low, high = smaller(low, other[1]), larger(high, other[2])
    span = high - low + 1
    part = together & (span < extent)
    keep = choose(part, 1, 0)
    return (base + low) * keep, choose(part, span, extent)


def _same_atoms(a: Linear, b: Linear) -> bool:
    """Both are sums over the same loops; their coefficients may differ, in some rows or all."""
    return len(a.terms) == len(b.terms) and all(x is y for (x, _), (y, _) in zip(a.terms, b.terms, strict=True))
