"""One function per nest of a program: which loops form its tasks, and which pattern writes each perfect nest inside.

    parallel loops of a nest     one function over [begin, end), called through the thread pool
    a transposed copy            tasks are strips of it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansor.codegen.dialect import C_TYPES, Dialect
from ansor.codegen.emitter import Emitter
from ansor.codegen.machine import Machine
from ansor.codegen.patterns.base import Form, Nest, Pattern
from ansor.codegen.patterns.transposed_copy import Strips, strips
from ansor.codegen.tree import Code, block
from ansor.ir.columns import product
from ansor.ir.linear import Linear, Opaque, Var
from ansor.ir.loops import Access, Buffer, For, IndexValue, Node, Store, stores
from ansor.ir.simplify import chain
from ansor.te.dtypes import BYTES
from ansor.te.expr import Expr
from ansor.te.fold import walk


@dataclass(frozen=True, eq=False)
class OuterLoop:
    """A loop around several nests, or around local arrays."""

    loop: For
    body: tuple[WrittenNest, ...]


@dataclass(frozen=True, eq=False)
class PatternNest:
    """A perfect nest with its pattern and form."""

    pattern: Pattern
    form: Form


WrittenNest = OuterLoop | PatternNest


@dataclass(frozen=True, eq=False)
class Function:
    """A nest. names: those of its tensors and loops.

    parallel: the loops whose iterations are its `tasks` tasks, none if it is not split; strips: what a task is instead.
    """

    name: str
    buffers: tuple[Buffer, ...]
    parallel: tuple[For, ...]
    tasks: int
    body: tuple[WrittenNest, ...]
    strips: Strips | None = None
    names: frozenset[str] = frozenset()

    def __str__(self) -> str:
        shared = f", {self.tasks} tasks of {', '.join(loop.var.name for loop in self.parallel)}" if self.parallel else ""
        lines = [f"{self.name}({', '.join(buffer.name for buffer in self.buffers)}){shared}"]
        if self.strips is not None:
            return f"{lines[0]}\n  transposed copy  {self.strips}"
        return "\n".join([*lines, *_text(self.body, "  ")])


def _text(body: Sequence[WrittenNest], indent: str) -> Iterator[str]:
    for one in body:
        if isinstance(one, OuterLoop):
            yield f"{indent}for {one.loop.var.name} in {one.loop.var.extent}"
            yield from _text(one.body, indent + "  ")
            continue
        inner = indent
        for loop in one.form.around:
            yield f"{inner}for {loop.var.name} in {loop.var.extent}"
            inner += "  "
        yield f"{inner}{one.pattern.name}  {one.form}"


def function_of(name: str, node: Node, buffers: Sequence[Buffer], machine: Machine, patterns: Sequence[Pattern], sums: Mapping[Store, Access]) -> Function:
    """The function of a nest. buffers: all of the program, in order; sums: what stores must subtract, if computed ahead."""
    used = used_by(node) | {sums[store].buffer for _, store in stores((node,)) if store in sums}
    own = tuple(buffer for buffer in buffers if buffer in used)
    parallel, body = _parallel_loops(node, machine)
    found = strips(parallel[0], machine.vector_bytes, machine.threads) if len(parallel) == 1 else None
    names = names_in((node,), own)
    if found is not None:
        return Function(name, own, parallel, found.count, (), found, names)
    tasks = int(product(loop.var.extent for loop in parallel))
    return Function(name, own, parallel, tasks, tuple(_written(one, parallel, machine, patterns, sums) for one in body), names=names)


def names_in(nodes: tuple[Node, ...], buffers: Iterable[Buffer]) -> frozenset[str]:
    """The names of tensors and loops."""
    found = {buffer.name for buffer in buffers}
    for path, store in stores(nodes):
        found.add(store.buffer.name)
        found.update(loop.var.name for loop in path)
    return frozenset(found)


def _parallel_loops(node: Node, machine: Machine) -> tuple[tuple[For, ...], tuple[Node, ...]]:
    found: list[For] = []
    body: tuple[Node, ...] = (node,)
    while machine.parallel and len(body) == 1 and isinstance(body[0], For) and body[0].parallel and not (found and found[-1].locals):
        found.append(body[0])
        body = body[0].body
    return tuple(found), body


def _written(node: Node, enclosing: tuple[For, ...], machine: Machine, patterns: Sequence[Pattern], sums: Mapping[Store, Access]) -> WrittenNest:
    loops, store = chain(node)
    if store is None:
        assert isinstance(node, For)
        return OuterLoop(node, tuple(_written(one, (*enclosing, node), machine, patterns, sums) for one in node.body))
    nest = Nest(loops, store, machine.vector_bytes, sums.get(store), enclosing)
    for pattern in patterns:
        form = pattern.match(nest)
        if form is not None:
            return PatternNest(pattern, form)
    raise AssertionError("plain loops are the last pattern")


# the tree -------------------------------------------------------------------------------------------------------------------------------------------------


def function_code(function: Function, body: Iterable[Code], dialect: Dialect) -> list[Code]:
    """The function with its body, and the wrapper for the pool, or for compiling it alone."""
    found: list[Code] = [block(f"static void {function.name}{parameters(function)}", body), ""]
    if dialect.apart:
        head = f"static ANSOR_APART void {apart_name(function)}{parameters(function, restrict=False)}"
        found += [block(head, [apart_call(function.name, function, dialect)]), ""]
    return [*found, *_task(function)] if function.parallel else found


def parameters(function: Function, *, restrict: bool = True) -> str:
    """Its parameters, in parentheses."""
    bounds = ", long begin, long end" if function.parallel else ""
    return f"({', '.join(pointer(buffer, restrict=restrict) for buffer in function.buffers)}{bounds})"


def apart_name(function: Function) -> str:
    """The name of the wrapper that is compiled alone. The function itself is inlined there: LLVM simplifies what it inlines once before and once after."""
    return f"{function.name}_apart"


def apart_call(name: str, function: Function, dialect: Dialect) -> str:
    """The only statement of the wrapper. name: of the function."""
    return f"{name}({', '.join(aligned(buffer.name, buffer.dtype, dialect) for buffer in function.buffers)});"


def aligned(place: str, dtype: str, dialect: Dialect) -> str:
    """A place in memory, with its alignment where its type has less: reading two words at once needs a known one."""
    return place if BYTES[dtype] >= dialect.alignment else f"__builtin_assume_aligned({place}, {dialect.alignment})"


def body_code(function: Function, emit: Emitter) -> list[Code]:
    """The statements of a function."""
    return emit.registers.around(_loops(function, emit))


def _loops(function: Function, emit: Emitter) -> list[Code]:
    if not function.parallel:
        return nest_code(function.body, emit)
    if function.strips is not None:
        inside = function.strips.code(emit)
    else:
        inside = [*_task_indices(function), *_arrays(function.parallel[-1], emit), *nest_code(function.body, emit)]
    return [block("for (long task = begin; task < end; ++task)", inside)]


def _task_indices(function: Function) -> Iterator[Code]:
    """The loop variables of a task."""
    inner, loops = int(product(loop.var.extent for loop in function.parallel)), function.parallel
    for loop in loops:
        inner //= int(loop.var.extent)
        quotient = "task" if inner == 1 else f"task / {inner}"
        yield f"const long {loop.var.name} = {quotient if loop is loops[0] else f'({quotient}) % {loop.var.extent}'};"


def nest_code(body: Sequence[WrittenNest], emit: Emitter) -> list[Code]:
    """The statements of written nests."""
    found: list[Code] = []
    for one in body:
        if isinstance(one, OuterLoop):
            found += emit.loop(one.loop, [*_arrays(one.loop, emit), *nest_code(one.body, emit)])
        else:
            found += emit.loops(one.form.around, one.form.code(emit))
    return found


def _arrays(loop: For, emit: Emitter) -> list[Code]:
    """The arrays that live inside a loop. An array whose reads were all simplified away is mentioned once: compilers warn about unused ones."""
    read = {buffer for _, store in stores((loop,)) for buffer in _read_by(store) if buffer is not store.buffer} if loop.locals else set()
    return [*emit.locals(loop.locals), *(f"(void){buffer.name};" for buffer in loop.locals if buffer not in read)]


def _task(function: Function) -> list[Code]:
    """A struct of a function's buffers, and the wrapper that calls it with them."""
    name, fields = function.name, " ".join(f"{pointer(buffer, restrict=False)};" for buffer in function.buffers)
    arguments = ", ".join(f"t->{buffer.name}" for buffer in function.buffers)
    called: list[Code] = [f"const struct {name}_task *t = ctx;", f"{name}({arguments}, begin, end);"]
    return [f"struct {name}_task {{ {fields} }};", block(f"static void {name}_body(void *ctx, long begin, long end)", called), ""]


def calls(function: Function, *, apart: bool = False) -> list[str]:
    """The statements that call it. apart: by its wrapper."""
    name, buffers = function.name, ", ".join(buffer.name for buffer in function.buffers)
    if not function.parallel:
        return [f"{apart_name(function) if apart else name}({buffers});"]
    return [f"struct {name}_task {name}_task = {{{buffers}}};", f"parallel_for(pool, {name}_body, &{name}_task, {function.tasks});"]


def pointer(buffer: Buffer, restrict: bool) -> str:
    """The declaration of a buffer."""
    const = "const " if buffer.scope in ("input", "constant") else ""
    return f"{const}{C_TYPES[buffer.dtype]} *{'restrict ' if restrict else ''}{buffer.name}"


# buffers --------------------------------------------------------------------------------------------------------------------------------------------------


def used_by(node: Node) -> set[Buffer]:
    """All buffers a nest touches, including those in indices."""
    return {buffer for _, store in stores((node,)) for buffer in (store.buffer, *_read_by(store))}


def _read_by(store: Store) -> Iterator[Buffer]:
    """All buffers that a store reads."""
    yield from _read(store.value)
    for linear in (*store.index, *(guard.value for guard in store.guards)):
        yield from _read_by_index(linear)


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
