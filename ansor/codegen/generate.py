"""Loops of one program to C.

    perfect nest around a reducing store   -> register tile: accumulators in local vectors, fully written out, held across the reduction loops
    the same, reducing along vectors       -> vectors of partial results, combined at the end
    perfect nest around a plain store      -> vectors along the innermost loop, whole vectors first, then halves of them for the tail
    the same, reading across memory        -> square blocks, transposed in registers
    parallel loops of a nest               -> one function over [begin, end), called through the thread pool
    anything else                          -> plain loops
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ansor.codegen.dialect import BYTES, C_TYPES, HALF, PRELUDE, Helpers, literal
from ansor.codegen.edges import ANY_LENGTH, Edge, edges, guards_by
from ansor.codegen.interleaved import interleaving
from ansor.codegen.partition import Partition, partition
from ansor.codegen.pieces import pieces
from ansor.codegen.source import Argument, CSource, Pack
from ansor.codegen.sums import with_sums
from ansor.codegen.tensorized import InnerProduct, TileText, inner_product, tile_text
from ansor.codegen.transposed import Plane, Strips, plane_text, strips, transposed_plane
from ansor.codegen.values import Lanes, Writer, combined, depends, vectorizable
from ansor.codegen.vector_reduction import VectorReduction, Width, vector_reduction
from ansor.errors import DeclarationError
from ansor.ir.columns import product
from ansor.ir.linear import Linear, Opaque, Var, of
from ansor.ir.loops import Access, Buffer, For, Guard, IndexValue, Loops, Node, Store, stores
from ansor.ir.simplify import chain, simplified
from ansor.te.expr import Expr, walk

MAX_TILE = 96  # accumulators of a register tile that are still written out
MAX_LARGE_TILE = 4  # the same where each takes a value in pieces
MAX_CHUNKS = 8  # vectors of an elementwise loop that are written out instead of looped over
ALIGNMENT = 64


@dataclass(frozen=True)
class Machine:
    """What generated code depends on: width of a vector in bytes, and number of threads."""

    vector_bytes: int = 32
    threads: int = 1


def generate(loops: Loops, machine: Machine, entry: str | None = None) -> CSource:
    """C for one program (extents are ints). `entry` is the exported symbol, the program's name by default; one that math.h declares gets longer."""
    program = simplified(loops)
    _check_sizes(program)
    symbol = entry or loops.name
    return _Generator(program, machine, f"{symbol}_kernel" if _DECLARED.fullmatch(symbol) else symbol).source()


def _check_sizes(program: Loops) -> None:
    """DeclarationError for a buffer with more bytes than a pointer can reach."""
    for buffer in (*program.arguments, *program.intermediates):
        if int(buffer.size) * BYTES[buffer.dtype] >= 2**63:
            raise DeclarationError(f"asked for C of a program with {buffer.name} of shape {buffer.shape} ({buffer.dtype}), which is 2^63 bytes or more; "
                                   "no memory holds it: make it smaller")


# What math.h declares, or defines as a macro: a global function cannot have such a name.
_DECLARED = re.compile(
    "(a?(sin|cos|tan)h?|atan2|exp2?|expm1|exp10|pow10|frexp|ilogb|llogb|ldexp|log(10|1p|2|b)?|modf|scalb(n|ln)?|cbrt|fabs|hypot|pow|sqrt|erfc?|[lt]?gamma|"
    "ceil|floor|nearbyint|l?l?r(int|ound)|roundeven|trunc|fmod|remainder|remquo|drem|copysign|nan|next(after|toward|up|down)|fdim|fmax|fmin|fma|significand|"
    "[jy][01n]|sincos|finite|isinf|isnan|f?u?fromfpx?|canonicalize|fmaxmag|fminmag|totalorder(mag)?|[gs]etpayload(sig)?)(_r)?[fl]?|"
    "is(finite|normal|subnormal|canonical|signaling|zero|unordered|eqsig|(greater|less)(equal)?|lessgreater)|signbit|fpclassify"
)


def chunks(extent: int, widest: int) -> list[tuple[int, int]]:
    """`extent` as (offset, lanes): as many vectors of `widest` lanes as fit, then halves, then single elements (lanes 1)."""
    found, offset, lanes = [], 0, widest
    while offset < extent:
        while lanes > extent - offset:
            lanes //= 2
        found.append((offset, max(lanes, 1)))
        offset += max(lanes, 1)
    return found


@dataclass(frozen=True, eq=False)
class Tile:
    """The spatial loops of a register tile; `counts`: iterations of those that are cut."""

    loops: tuple[For, ...]
    counts: Mapping[Var, int]

    def count(self, loop: For) -> int:
        """Iterations of a loop of this tile."""
        return self.counts.get(loop.var, int(loop.var.extent))


class _Generator:
    def __init__(self, program: Loops, machine: Machine, entry: str) -> None:
        self.program, self.sums = with_sums(program)
        self.machine = machine
        self.entry = entry
        self.helpers = Helpers()
        self.writer = Writer(self.helpers)
        self.lines: list[str] = []
        self.depth = 0
        self.names = itertools.count()
        self.taken = _names(self.program)

    # the translation unit -------------------------------------------------------------------------------------------------------------------------

    def source(self) -> CSource:
        offsets, total = self._workspace()
        calls = []
        for number, node in enumerate(self.program.body):
            calls += self._function(self._own(f"{self.entry}_nest{number}"), node)
        body = "\n".join(self.lines)
        rest = "\n".join([self.helpers.text(), "", body, self._entry(offsets, calls), ""])
        text = "\n".join([self._heading(total), PRELUDE, *([HALF] if C_TYPES["float16"] in rest else []), rest])
        uses_pool = "parallel_for(pool" in text
        return CSource(text, self.entry, tuple(map(self._argument, self.program.arguments)), total, self.machine.threads if uses_pool else 1)

    def _heading(self, workspace_bytes: int) -> str:
        """What a caller has to know, as a comment."""
        lines = [f"/* {self.entry}(args, workspace, parallel_for, pool)"]
        for number, buffer in enumerate(self.program.arguments):
            shape = ", ".join(map(str, self.program.logical_shapes[buffer.name]))
            stored = f", stored as [{', '.join(map(str, buffer.shape))}]" if buffer.pack else ""
            lines.append(f" *   args[{number}]  {buffer.scope:8s} {buffer.name}: {buffer.dtype}[{shape}]{stored}")
        return "\n".join([*lines, f" *   workspace: {workspace_bytes} bytes; every buffer is aligned to {ALIGNMENT} bytes", " */"])

    def _workspace(self) -> tuple[dict[Buffer, int], int]:
        offsets, total = {}, 0
        for buffer in self.program.intermediates:
            offsets[buffer] = total
            total += -(-int(buffer.size) * BYTES[buffer.dtype] // ALIGNMENT) * ALIGNMENT
        return offsets, total

    def _argument(self, buffer: Buffer) -> Argument:
        pack = None
        if buffer.pack:
            strides = tuple(tuple(int(s) for s in row) for row in buffer.pack)
            pack = Pack(tuple(int(e) for e in buffer.shape), strides, tuple(int(s) for s in buffer.starts))
        return Argument(buffer.name, self.program.logical_shapes[buffer.name], buffer.dtype, buffer.scope, pack)

    def _entry(self, offsets: dict[Buffer, int], calls: list[str]) -> str:
        lines = [f"void {self.entry}(void *const *args, unsigned char *workspace, ansor_parallel_for_t parallel_for, void *pool) {{"]
        for number, buffer in enumerate(self.program.arguments):
            lines.append(f"  {_pointer(buffer, restrict=False)} = args[{number}];")
        for buffer, offset in offsets.items():
            lines.append(f"  {_pointer(buffer, restrict=False)} = (void *)(workspace + {offset});")
        lines += [f"  {call}" for call in calls]
        parallel = any(call.startswith("parallel_for(") for call in calls)
        lines += [f"  (void){name};" for name, used in (("workspace", offsets), ("parallel_for", parallel), ("pool", parallel)) if not used]
        return "\n".join([*lines, "}"])

    # one function per nest ------------------------------------------------------------------------------------------------------------------------

    def _function(self, name: str, node: Node) -> list[str]:
        """Writes the function of a nest; gives the statements that call it."""
        used = _used(node) | {self.sums[store].buffer for _, store in stores((node,)) if store in self.sums}
        buffers = [b for b in (*self.program.arguments, *self.program.intermediates) if b in used]
        parallel, body = self._parallel_loops(node)
        shared = strips(parallel[0], self.writer, self._widest, self.machine.threads) if len(parallel) == 1 else None
        total = shared.count if shared is not None else int(product(loop.var.extent for loop in parallel))
        bounds = ", long begin, long end" if parallel else ""
        self._line(f"static void {name}({', '.join(_pointer(b, restrict=True) for b in buffers)}{bounds}) {{")
        self.depth += 1
        if shared is not None:
            self._strip_body(shared)
        elif parallel:
            self._parallel_body(parallel, body)
        else:
            self._node(node)
        self.depth -= 1
        self._line("}")
        self._line("")
        arguments = ", ".join(b.name for b in buffers)
        if not parallel:
            return [f"{name}({arguments});"]
        self._task(name, buffers)
        fields = ", ".join(b.name for b in buffers)
        return [f"struct {name}_task {name}_task = {{{fields}}};", f"parallel_for(pool, {name}_body, &{name}_task, {total});"]

    def _parallel_loops(self, node: Node) -> tuple[list[For], tuple[Node, ...]]:
        found: list[For] = []
        body: tuple[Node, ...] = (node,)
        while self.machine.threads > 1 and len(body) == 1 and isinstance(body[0], For) and body[0].parallel and not (found and found[-1].locals):
            found.append(body[0])
            body = body[0].body
        return found, body

    def _parallel_body(self, loops: list[For], body: tuple[Node, ...]) -> None:
        self._line("for (long task = begin; task < end; ++task) {")
        self.depth += 1
        inner = int(product(loop.var.extent for loop in loops))
        for loop in loops:
            inner //= int(loop.var.extent)
            outermost = loop is loops[0]
            quotient = "task" if inner == 1 else f"task / {inner}"
            self._line(f"const long {loop.var.name} = {quotient if outermost or len(loops) == 1 else f'({quotient}) % {loop.var.extent}'};")
        self._locals(loops[-1])
        for node in body:
            self._node(node)
        self.depth -= 1
        self._line("}")

    def _strip_body(self, found: Strips) -> None:
        """Each task transposes a strip."""
        plane = found.plane
        first = Var(self._own(f"{plane.across.var.name}_first"), plane.across.var.extent)
        self._open("for (long task = begin; task < end; ++task)")
        self._line(f"const long {first.name} = task * {found.length};")
        for loop in plane.outer:
            self._open_loop(loop)
        if plane.conditions:
            self._open(f"if ({self._conditions(plane.conditions)})")
        bare = replace(found.store, guards=())
        self._lines(plane_text(plane, {plane.across.var: found.length}, self.writer, bare, self._numbered, of(first)))
        for _ in range(len(plane.outer) + bool(plane.conditions) + 1):
            self._close()

    def _task(self, name: str, buffers: list[Buffer]) -> None:
        fields = " ".join(f"{_pointer(b, restrict=False)};" for b in buffers)
        arguments = ", ".join(f"t->{b.name}" for b in buffers)
        self._line(f"struct {name}_task {{ {fields} }};")
        self._line(f"static void {name}_body(void *ctx, long begin, long end) {{")
        self._line(f"  const struct {name}_task *t = ctx;")
        self._line(f"  {name}({arguments}, begin, end);")
        self._line("}")
        self._line("")

    def _own(self, name: str) -> str:
        """A name for something of ours: no tensor and no loop has it."""
        while name in self.taken:
            name += "_"
        return name

    def _numbered(self, name: str) -> str:
        """A name like `name` that nothing else has."""
        return self._own(f"{name}{next(self.names)}")

    # nodes ----------------------------------------------------------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text if text else "")

    def _lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._line(text)

    def _open(self, head: str) -> None:
        self._line(head + " {")
        self.depth += 1

    def _close(self) -> None:
        self.depth -= 1
        self._line("}")

    def _open_loop(self, loop: For, end: int | str | None = None) -> None:
        """`end`: where the loop ends earlier than its extent."""
        name = loop.var.name
        if loop.unrolled:
            self._line(f"ANSOR_UNROLL({loop.var.extent})")
        self._open(f"for (long {name} = 0; {name} < {loop.var.extent if end is None else end}; ++{name})")

    def _locals(self, loop: For) -> None:
        for buffer in loop.locals:
            self._line(f"{C_TYPES[buffer.dtype]} {buffer.name}[{buffer.size}] __attribute__((aligned({ALIGNMENT})));")

    def _node(self, node: Node) -> None:
        loops, store = chain(node)
        if store is not None:
            self._perfect(list(loops), store)
            return
        assert isinstance(node, For)
        self._open_loop(node)
        self._locals(node)
        for inner in node.body:
            self._node(inner)
        self._close()

    def _perfect(self, loops: list[For], store: Store) -> None:
        """A perfect nest: outer loops as they are, then the part that has a form of its own."""
        inner = inner_product(loops, store)
        if inner is not None:
            inner = replace(inner, sums=self.sums.get(store))
            loops = loops[:-1]
        elif self._interleaved(loops, store):
            return
        plane = transposed_plane(loops, store, self.writer, self._widest(store))
        if plane is not None:
            self._plane(plane, store)
            return
        count = _tile_start(loops, store) if store.combiner else _vector_start(loops)
        for loop in loops[:count]:
            self._open_loop(loop)
        if store.combiner:
            self._tile(loops[count:], store, inner)
        else:
            self._elementwise(loops[count:], store)
        for _ in loops[:count]:
            self._close()

    def _interleaved(self, loops: list[For], store: Store) -> bool:
        """A copy that puts bytes into groups, if this is one."""
        copy = interleaving(loops, store, self.writer, self.machine.vector_bytes)
        if copy is None:
            return False
        for loop in loops[:-2]:
            self._open_loop(loop)
        if copy.condition:
            self._open(f"if ({copy.condition})")
        self._lines(copy.lines)
        if copy.condition:
            self._close()
            self._open("else")
            self._open_loop(loops[-2])
            self._elementwise(loops[-1:], store)
            self._close()
            self._close()
        for _ in loops[:-2]:
            self._close()
        return True

    # plain stores ---------------------------------------------------------------------------------------------------------------------------------

    def _elementwise(self, loops: list[For], store: Store) -> None:
        if not loops:
            self._scalar_store(store)
            return
        loop = loops[0]
        outer, inner = guards_by(store.guards, [loop.var])
        if outer:
            self._open(f"if ({self._conditions(outer)})")
        bare = replace(store, guards=())
        ends, any_ends = edges(inner, [loop], []), edges(inner, [loop], [], ANY_LENGTH)
        if ends is not None:
            self._at_edges(ends, {}, lambda counts: self._row(loop, counts.get(loop.var, int(loop.var.extent)), bare))
        elif any_ends is not None:
            self._row_of_any_length(loop, any_ends, bare)
        else:
            self._open_loop(loop)
            self._scalar_store(replace(store, guards=inner))
            self._close()
        if outer:
            self._close()

    def _plane(self, plane: Plane, store: Store) -> None:
        """Loops around a copy that is transposed in registers."""
        bare = replace(store, guards=())
        for loop in plane.outer:
            self._open_loop(loop)
        if plane.conditions:
            self._open(f"if ({self._conditions(plane.conditions)})")
        self._at_edges(list(plane.ends), {}, lambda counts: self._cut_plane(plane, counts, bare))
        if plane.conditions:
            self._close()
        for _ in plane.outer:
            self._close()

    def _cut_plane(self, plane: Plane, counts: dict[Var, int], store: Store) -> None:
        """A plane with all its guards checked."""
        if plane.blocked(counts):
            self._lines(plane_text(plane, counts, self.writer, store, self._numbered))
            return
        across, along = plane.loops
        self._open_loop(across, counts.get(across.var))
        self._row(along, counts.get(along.var, int(along.var.extent)), store)
        self._close()

    def _row(self, loop: For, count: int, store: Store) -> None:
        """The first `count` iterations of the innermost loop around a plain store without guards."""
        ranges = partition(store.value, loop.var)
        if self.writer.contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var):
            self._vector_loop(loop, count, store)
        elif ranges is not None:
            self._partitioned(loop, count, store, ranges)
        else:
            self._counted_loop(loop, count, store)

    def _row_of_any_length(self, loop: For, ends: list[Edge], store: Store) -> None:
        """A whole row as vectors, a shorter one by a loop that ends where it ends."""
        extent = int(loop.var.extent)
        self._open(f"if ({' && '.join(f'{self.writer.index(end.rest)} < {end.high - end.step * (extent - 1)}' for end in ends)})")
        self._row(loop, extent, store)
        self._close()
        self._open("else")
        self._open_loop(loop, self._end(loop, ends))
        self._scalar_store(store)
        self._close()
        self._close()

    def _counted_loop(self, loop: For, count: int, store: Store) -> None:
        self._open_loop(loop, count)
        self._scalar_store(store)
        self._close()

    def _at_edges(self, ends: list[Edge], counts: dict[Var, int], emit: Callable[[dict[Var, int]], None]) -> None:
        """The code for whole tiles, and again for the shorter one at each end: `emit` gets how many iterations are left of the loops that are cut."""
        if not ends:
            emit(counts)
            return
        end, *others = ends
        extent = counts.get(end.var, int(end.var.extent))
        rest = self.writer.index(end.rest)
        self._open(f"if ({rest} < {end.high - end.step * (extent - 1)})")
        self._at_edges(others, counts, emit)
        self._close()
        for count in end.partial(extent):
            self._open(f"else if ({rest} < {end.high - end.step * (count - 1)})")
            self._at_edges(others, {**counts, end.var: count}, emit)
            self._close()

    def _partitioned_there(self, loop: For, extent: int, store: Store, found: Partition) -> None:
        """A padding whose place along the innermost loop is known: vectors inside, single elements around them."""
        low = min(max([0, *(int(bound.const) for bound in found.lows)]), extent)
        high = max(min([extent, *(int(bound.const) for bound in found.highs)]), low)
        inside, outside = replace(store, value=found.then), replace(store, value=found.otherwise)
        if found.conditions:
            self._open(f"if ({' && '.join(self.writer.scalar(condition) for condition in found.conditions)})")
        for begin, end, part in ((0, low, outside), (low, high, inside), (high, extent, outside)):
            self._part_of_row(loop, begin, end, part)
        if found.conditions:
            self._close()
            self._open("else")
            self._part_of_row(loop, 0, extent, outside)
            self._close()

    def _part_of_row(self, loop: For, begin: int, end: int, store: Store) -> None:
        if self.writer.contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var):
            self._vector_loop(loop, end, store, begin)
            return
        name = loop.var.name
        self._open(f"for (long {name} = {begin}; {name} < {end}; ++{name})")
        self._scalar_store(store)
        self._close()

    def _vector_loop(self, loop: For, end: int, store: Store, begin: int = 0) -> None:
        widest, large = self._widest(store), bool(pieces(store.value))
        whole = (end - begin) // widest
        if whole > (0 if large else MAX_CHUNKS) and widest > 1:
            name = loop.var.name
            self._open(f"for (long {name} = {begin}; {name} < {begin + whole * widest}; {name} += {widest})")
            self._store_lanes(store, Lanes(loop.var, widest, of(loop.var)), {})
            self._close()
            begin += whole * widest
        rest = chunks(end - begin, widest)
        if large and rest:
            name = loop.var.name
            self._open(f"for (long {name} = {begin}; {name} < {end}; ++{name})")
            self._scalar_store(store)
            self._close()
            return
        for offset, lanes in rest:
            self._store_lanes(store, Lanes(loop.var, lanes, Linear((), begin + offset)), {})

    def _store_lanes(self, store: Store, lanes: Lanes, fixed: dict[Var, int]) -> None:
        if lanes.count == 1:
            one = {**fixed, lanes.var: int(lanes.start.const)}
            writer = self.writer.at(one, None)
            value = self._value(writer, store.value)
        else:
            writer = self.writer.at(fixed, lanes)
            value = self._value(writer, store.value)
        self._line(f"{writer.place(store.buffer, store.index)} = {value};")

    def _value(self, writer: Writer, value: Expr) -> str:
        """A value as C text, after the variables that its parts become where it is large: a vector where the writer has lanes."""
        parts = pieces(value)
        if parts:
            named: dict[Expr, tuple[str, bool]] = {}
            writer, number = replace(writer, named=named, safe=True), next(self.names)
            for k, part in enumerate(parts):
                text, is_vector = writer.value(part)
                named[part] = self._own(f"part{number}_{k}"), is_vector
                self._line(f"const {writer.kind(part.dtype, is_vector)} {named[part][0]} = {text};")
        return writer.scalar(value) if writer.lanes is None else writer.vector(value)

    def _partitioned(self, loop: For, extent: int, store: Store, found: Partition) -> None:
        """A padding along the innermost loop: the part before, the part inside, the part after. All of it inside is the usual case, and runs as vectors."""
        if not any(bound.terms for bound in (*found.lows, *found.highs)):
            self._partitioned_there(loop, extent, store, found)
            return
        name = loop.var.name
        low, high = (self._own(f"{name}_{end}{next(self.names)}") for end in ("low", "high"))
        lows = [self.writer.index(bound) for bound in found.lows]
        highs = [self.writer.index(bound) for bound in found.highs]
        self._line(f"long {low} = 0, {high} = {extent};")
        for bound in lows:
            self._line(f"if ({bound} > {low}) {low} = {bound};")
        for bound in highs:
            self._line(f"if ({bound} < {high}) {high} = {bound};")
        conditions = [self.writer.scalar(condition) for condition in found.conditions]
        empty = " || ".join([f"{high} < {low}", *(f"!({condition})" for condition in conditions)])
        self._line(f"if ({low} > {extent}) {low} = {extent};")
        self._line(f"if ({empty}) {high} = {low};")
        inside = replace(store, value=found.then)
        vectors = self.writer.contiguous(inside.buffer, inside.index, loop.var) and vectorizable(found.then, loop.var)
        if vectors:
            self._open(f"if ({low} == 0 && {high} == {extent})")
            self._vector_loop(loop, extent, inside)
            self._close()
            self._open("else")
        for begin, end, value in (("0", low, found.otherwise), (low, high, found.then), (high, str(extent), found.otherwise)):
            self._open(f"for (long {name} = {begin}; {name} < {end}; ++{name})")
            self._scalar_store(replace(store, value=value))
            self._close()
        if vectors:
            self._close()

    def _combined(self, store: Store, lanes: int, old: str, new: str) -> str:
        """C text of one step of the store's reduction."""
        assert store.combiner is not None
        return combined(self.helpers, store.combiner, store.buffer.dtype, lanes, old, new, self.helpers.ranges.reduction_may_wrap(store))

    def _scalar_store(self, store: Store) -> None:
        if store.guards:
            self._open(f"if ({self._conditions(store.guards)})")
        value = self._value(self.writer, store.value)
        place = self.writer.place(store.buffer, store.index)
        if store.combiner is None:
            self._line(f"{place} = {value};")
        else:
            old = self._old_value(store, store.reduce_vars, place)
            self._line(f"{place} = {self._combined(store, 1, old, value)};")
        if store.guards:
            self._close()

    # register tiles -------------------------------------------------------------------------------------------------------------------------------

    def _tile(self, loops: list[For], store: Store, inner: InnerProduct | None) -> None:
        """`loops`: reduction loops, then the spatial loops of the tile; `inner`: the instruction inside them."""
        reductions = [loop for loop in loops if loop.kind == "reduce"]
        spatial = [loop for loop in loops if loop.kind != "reduce"]
        outer, rest = guards_by(store.guards, [loop.var for loop in loops])
        within, cut = guards_by(rest, [loop.var for loop in spatial])
        ends = edges(cut, spatial, reductions)
        if ends is None and len(spatial) > 1:
            # Two loops of one axis, for example: without the outer one the tile is smaller, but still held in registers.
            self._open_loop(spatial[0])
            self._tile([*reductions, *spatial[1:]], store, inner)
            self._close()
            return
        if ends is None:
            plain = [*loops, inner.loop] if inner is not None else loops
            for loop in plain:
                self._open_loop(loop)
            self._scalar_store(store)
            for _ in plain:
                self._close()
            return
        if outer:
            self._open(f"if ({self._conditions(outer)})")
        self._at_edges(ends, {}, lambda counts: self._cut_tile(reductions, Tile(tuple(spatial), counts), store, within, inner))
        if outer:
            self._close()

    def _cut_tile(self, reductions: list[For], tile: Tile, store: Store, within: tuple[Guard, ...], inner: InnerProduct | None) -> None:
        """A tile with all its guards checked."""
        if inner is None and self._reduces_lanes(reductions, store, within):
            self._vector_reduction(reductions, tile, store, within)
        elif tile.loops and len(self._places(tile, store, inner)) > _most(store):
            # Too many accumulators: fewer are held, and only across one step of the reduction.
            for loop in reductions:
                self._open_loop(loop)
            self._held_tile([], tile, store, within, inner)
            for _ in reductions:
                self._close()
        else:
            self._held_tile(reductions, tile, store, within, inner)

    def _reduces_lanes(self, reductions: list[For], store: Store, within: tuple[Guard, ...]) -> bool:
        """The innermost reduction runs as vectors: asked for, as long as one at least, and nothing cuts it short."""
        if not reductions or not reductions[-1].vectorized:
            return False
        var, widest = reductions[-1].var, self._widest(store)
        along = widest > 1 and int(var.extent) > 1 and not pieces(store.value) and vectorizable(store.value, var) and depends(store.value, var)
        return along and not guards_by(within, [var])[1]

    def _vector_reduction(self, reductions: list[For], tile: Tile, store: Store, within: tuple[Guard, ...]) -> None:
        """The elements of a tile reduced in vectors."""
        *outer, loop = reductions
        widest, var, number = self._widest(store), loop.var, next(self.names)
        elements = [dict(zip((one.var for one in tile.loops), at, strict=True)) for at in itertools.product(*(range(tile.count(one)) for one in tile.loops))]
        made = vector_reduction(store, var, elements, chunks, widest, number, self._own)
        self._line("{")
        self.depth += 1
        for name, writer in made.starts(self.writer):
            self._accumulator(name, writer, store, ())
        for around in outer:
            self._open_loop(around)
        if within:
            self._open(f"if ({self._conditions(within)})")
        if made.looped:
            self._open(f"for (long {var.name} = 0; {var.name} < {made.looped * widest}; {var.name} += {made.running * widest})")
            self._reduce(made, made.steps_of_loop())
            self._close()
        self._reduce(made, made.steps_after())
        if within:
            self._close()
        for _ in outer:
            self._close()
        before = tuple(one for one in store.reduce_vars if all(one is not loop.var for loop in reductions))
        for e, fixed in enumerate(elements):
            lines, result = made.folded(e, self.writer, self._own)
            self._lines(lines)
            self._reduced(store, fixed, result, before)
        self._close()

    def _reduce(self, made: VectorReduction, steps: Iterable[tuple[Width, Lanes]]) -> None:
        """Steps of a reduction, each line after the loads it asks for."""
        for which, lanes in steps:
            self._lines(made.step(which, lanes, replace(self.writer, load=self._shared(next(self.names)))))

    def _reduced(self, store: Store, fixed: dict[Var, int], result: str, before: tuple[Var, ...]) -> None:
        """Stores an element, combined with what earlier iterations of loops outside made of it."""
        assert store.combiner is not None
        place = self.writer.at(fixed, None).place(store.buffer, store.index)
        if before:
            result = self._combined(store, 1, self._old_value(store, before, place), result)
        self._line(f"{place} = {result};")

    def _shared(self, number: int) -> Callable[[str, str], str]:
        """Gives what is read from memory a name, the same read the same name."""
        loaded: dict[str, str] = {}

        def load(text: str, kind: str) -> str:
            if text not in loaded:
                loaded[text] = self._own(f"in{number}_{len(loaded)}")
                self._line(f"const {kind} {loaded[text]} = {text};")
            return loaded[text]

        return load

    def _lane_loop(self, tile: Tile, store: Store) -> For | None:
        if not tile.loops or not tile.loops[-1].vectorized:
            return None
        loop = tile.loops[-1]
        return loop if self.writer.contiguous(store.buffer, store.index, loop.var) and vectorizable(store.value, loop.var) else None

    def _places(self, tile: Tile, store: Store, inner: InnerProduct | None) -> list[tuple[dict[Var, int], Lanes | None]]:
        """Every accumulator of a tile: the numbers of its variables, and its lanes."""
        lanes = self._lane_loop(tile, store)
        plain = [loop for loop in tile.loops if loop is not lanes]
        widest = self._widest(store) if inner is None else min(self._widest(store), max(inner.intrinsic.lanes))
        least = int(product(tile.count(loop) for loop in plain)) * (1 if lanes is None else tile.count(lanes) // widest)
        if least > MAX_TILE:
            return [({}, None)] * (MAX_TILE + 1)  # too many to be written out, whichever they are
        pieces = chunks(tile.count(lanes), widest) if lanes is not None else [(0, 1)]
        found: list[tuple[dict[Var, int], Lanes | None]] = []
        for values in itertools.product(*(range(tile.count(loop)) for loop in plain)):
            fixed = {loop.var: value for loop, value in zip(plain, values, strict=True)}
            for offset, count in pieces:
                if lanes is None:
                    found.append((fixed, None))
                elif count == 1:
                    found.append(({**fixed, lanes.var: offset}, None))
                else:
                    found.append((fixed, Lanes(lanes.var, count, Linear((), offset))))
        return found

    def _held_tile(self, reductions: list[For], tile: Tile, store: Store, within: tuple[Guard, ...], inner: InnerProduct | None) -> None:
        places = self._places(tile, store, inner)
        if tile.loops and len(places) > _most(store):
            self._open_loop(tile.loops[0], tile.count(tile.loops[0]))
            self._held_tile([], Tile(tile.loops[1:], tile.counts), store, within, inner)
            self._close()
            return
        held = {loop.var for loop in reductions} | ({inner.group} if inner is not None else set())
        before = tuple(var for var in store.reduce_vars if var not in held)
        number = next(self.names)
        self._line("{")
        self.depth += 1
        names = [self._own(f"acc{number}_{k}") for k in range(len(places))]
        for name, (fixed, lane) in zip(names, places, strict=True):
            self._accumulator(name, self.writer.at(fixed, lane), store, before)
        text = tile_text(inner, places, names, self.writer, store, before) if inner is not None else TileText()
        self._lines(text.before)
        within = self._open_reductions(reductions, len(places) * (1 + len(pieces(store.value))), within)
        if within:
            self._open(f"if ({self._conditions(within)})")
        if inner is not None:
            self._lines(text.inside)
        else:
            self._accumulate(number, names, places, store)
        if within:
            self._close()
        for _ in reductions:
            self._close()
        self._lines(text.after)
        for name, (fixed, lane) in zip(names, places, strict=True):
            self._line(f"{self.writer.at(fixed, lane).place(store.buffer, store.index)} = {name};")
        self._close()

    def _accumulate(self, number: int, names: list[str], places: list[tuple[dict[Var, int], Lanes | None]], store: Store) -> None:
        """One step of the reduction in every accumulator of tile `number`; what they share is loaded once."""
        assert store.combiner is not None
        load = self._shared(number)
        for name, (fixed, lane) in zip(names, places, strict=True):
            writer = replace(self.writer.at(fixed, lane), load=load)
            count = lane.count if lane is not None else 1
            value = self._value(writer, store.value)
            self._line(f"{name} = {self._combined(store, count, name, value)};")

    def _accumulator(self, name: str, writer: Writer, store: Store, before: tuple[Var, ...]) -> None:
        dtype, lanes = store.buffer.dtype, writer.lanes
        kind = self.helpers.vector(dtype, lanes.count) if lanes is not None else C_TYPES[dtype]
        identity = literal(store.identity, dtype)
        start = writer.broadcast(identity, dtype) if lanes is not None else identity
        if not before:
            self._line(f"{kind} {name} = {start};")
            return
        # A conditional expression on vectors is not C for every compiler; an if statement is.
        self._line(f"{kind} {name} = {start};")
        first = " || ".join(f"{var.name} != 0" for var in before)
        self._line(f"if ({first}) {name} = {writer.place(store.buffer, store.index)};")

    def _open_reductions(self, reductions: list[For], statements: int, within: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """The reduction loops of a tile, the inner ones unrolled while the body stays below the limit. A guard becomes the end of the innermost loop that it
        mentions; the guards that cannot are given back.
        """
        factors = []
        budget = max((int(loop.unroll_limit) for loop in reductions), default=0) // max(statements, 1)
        for loop in reversed(reductions):
            extent = int(loop.var.extent)
            factors.append(1 if loop.unrolled else min(extent, max(budget, 1)))
            budget = budget // extent if budget >= extent else 0
        for k, (loop, factor) in enumerate(zip(reductions, reversed(factors), strict=True)):
            own, others = guards_by(within, [inner.var for inner in reductions[k + 1 :]])
            ends = edges(guards_by(own, [loop.var])[1], [loop], [], ANY_LENGTH)
            end = self._end(loop, ends) if ends else None
            if end is not None:
                within = (*guards_by(own, [loop.var])[0], *others)
            if factor > 1:
                self._line(f"ANSOR_UNROLL({factor})")
            self._open_loop(loop, end)
        return within

    def _end(self, loop: For, ends: list[Edge]) -> str:
        """The name of where a loop ends that must not run into what is not there."""
        name = self._own(f"{loop.var.name}_end{next(self.names)}")
        self._line(f"long {name} = {loop.var.extent};")
        for end in ends:
            bound = f"{end.high} - ({self.writer.index(end.rest)})"
            text = bound if end.step == 1 else f"({bound} + {end.step - 1}) / {end.step}"
            self._line(f"if ({text} < {name}) {name} = {text};")
        return name

    # small questions ------------------------------------------------------------------------------------------------------------------------------

    def _widest(self, store: Store) -> int:
        """Lanes of the widest vector that fits every value of the statement."""
        sizes = [BYTES[node.dtype] for node in walk(store.value) if isinstance(node, Access)]
        return max(1, self.machine.vector_bytes // max([BYTES[store.buffer.dtype], *sizes]))

    def _old_value(self, store: Store, variables: tuple[Var, ...], place: str) -> str:
        identity = literal(store.identity, store.buffer.dtype)
        if not variables:
            return identity
        first = " && ".join(f"{var.name} == 0" for var in variables)
        return f"(({first}) ? {identity} : {place})"

    def _conditions(self, guards: tuple[Guard, ...]) -> str:
        tests = []
        for guard in guards:
            text = self.writer.index(guard.value)
            if guard.low is not None:
                tests.append(f"{text} >= {guard.low}")
            if guard.high is not None:
                tests.append(f"{text} < {guard.high}")
        return " && ".join(tests)


def _most(store: Store) -> int:
    """Accumulators of a register tile that are still written out."""
    return MAX_LARGE_TILE if pieces(store.value) else MAX_TILE


def _pointer(buffer: Buffer, restrict: bool) -> str:
    const = "const " if buffer.scope in ("input", "constant") else ""
    return f"{const}{C_TYPES[buffer.dtype]} *{'restrict ' if restrict else ''}{buffer.name}"


def _names(program: Loops) -> frozenset[str]:
    """Names of all tensors and loops."""
    found = {buffer.name for buffer in (*program.arguments, *program.intermediates)}
    for path, store in stores(program.body):
        found.add(store.buffer.name)
        found.update(loop.var.name for loop in path)
    return frozenset(found)


def _used(node: Node) -> set[Buffer]:
    """Every buffer a nest touches, indices included."""
    found: set[Buffer] = set()
    for _, store in stores((node,)):
        found.add(store.buffer)
        found.update(_read(store.value))
        for linear in (*store.index, *(guard.value for guard in store.guards)):
            found.update(_read_by_index(linear))
    return found


def _read(expr: Expr) -> Iterator[Buffer]:
    for node in walk(expr):
        if isinstance(node, Access):
            yield node.buffer
        indices = node.index if isinstance(node, Access) else (node.value,) if isinstance(node, IndexValue) else ()
        for linear in indices:
            yield from _read_by_index(linear)


def _read_by_index(linear: Linear) -> Iterator[Buffer]:
    for atom, _ in linear.terms:
        if isinstance(atom, Opaque):
            yield from _read(atom.value)
        elif not isinstance(atom, Var):
            yield from _read_by_index(atom.value)


def _tile_start(loops: list[For], store: Store) -> int:
    """Where the register tile begins: the spatial loops at the end and the reduction loops directly around them, or a reduction in vectors at the end and
    the spatial loops directly around it that are written out.
    """
    k = len(loops)
    while k > 0 and loops[k - 1].kind != "reduce":
        k -= 1
    while k > 0 and loops[k - 1].kind == "reduce":
        k -= 1
    if loops and loops[-1].kind == "reduce" and loops[-1].vectorized:
        while k > 0 and loops[k - 1].kind != "reduce" and loops[k - 1].unrolled:
            k -= 1
    # Without a reduction loop in this nest only the innermost loop belongs to the tile.
    return k if any(loop.kind == "reduce" for loop in loops[k:]) else max(len(loops) - 1, 0)


def _vector_start(loops: list[For]) -> int:
    return len(loops) - 1 if loops and loops[-1].vectorized else len(loops)
