"""One translation unit: its beginning, functions and entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.codegen.dialect import C_TYPES, HALF, Dialect, Helpers, definitions
from ansor.codegen.functions import Function, aligned, apart_call, apart_name, calls, parameters, pointer
from ansor.codegen.source import Argument, Pack
from ansor.codegen.text_parts import Nest, Parts
from ansor.codegen.tree import Block, Code, block, lines
from ansor.ir.loops import Buffer, Loops

INNER = "ansor_nest"
"""The name of a function in a unit of its own."""


@dataclass(frozen=True, eq=False)
class FunctionCode:
    """A function as C: `code`, and the helpers that it uses."""

    function: Function
    helpers: Helpers
    code: tuple[Code, ...]


@dataclass(frozen=True, eq=False)
class Unit:
    """heading: information for callers, as a comment. prelude: the beginning of every unit of the dialect."""

    heading: tuple[str, ...]
    prelude: str
    written: tuple[FunctionCode, ...]
    entry: tuple[Code, ...]

    @property
    def functions(self) -> tuple[Code, ...]:
        """The code of all functions but the entry point."""
        return tuple(one for written in self.written for one in written.code)

    @property
    def text(self) -> str:
        """The C text."""
        helpers = definitions([one.helpers for one in self.written])
        rest = "\n".join([helpers, "", "\n".join(lines(self.functions)), *lines(self.entry), ""])
        return "\n".join([*self.heading, *_beginning(self.prelude, rest), rest])

    def parts(self, whole: str, dialect: Dialect) -> Parts:
        """Its parts that compile on their own, if it is of a dialect whose nests are apart. whole: its text."""
        nests = tuple(self._nest(one, dialect) for one in self.written)
        declared = [f"void {one.name}{one.parameters};" for one in nests]
        return Parts(whole, nests, "\n".join([*declared, *lines(self.entry), ""]))

    def _nest(self, one: FunctionCode, dialect: Dialect) -> Nest:
        function, found = one.function, one.code[0]
        assert isinstance(found, Block)
        inner = "\n".join([definitions([one.helpers]), "", *lines([found._replace(head=f"static void {INNER}{parameters(function)}")]), ""])
        before = "\n".join([*_beginning(self.prelude, inner), inner])
        return Nest(apart_name(function), before, parameters(function, restrict=False), f"{{ {apart_call(INNER, function, dialect)} }}")

    def __str__(self) -> str:
        return "\n".join([*self.heading, *lines(self.functions), *lines(self.entry)])


def _beginning(prelude: str, rest: str) -> list[str]:
    """What is in front of a text."""
    return [prelude, *([HALF] if C_TYPES["float16"] in rest else [])]


def heading(entry: str, program: Loops, workspace_bytes: int, dialect: Dialect) -> tuple[str, ...]:
    """Arguments and workspace of the entry point, as a comment."""
    found = [f"/* {entry}(args, workspace{', parallel_for, pool' if dialect.pool else ''})"]
    for number, buffer in enumerate(program.arguments):
        shape = ", ".join(map(str, program.logical_shapes[buffer.name]))
        stored = f", stored as [{', '.join(map(str, buffer.shape))}]" if buffer.pack else ""
        found.append(f" *   args[{number}]  {buffer.scope:8s} {buffer.name}: {buffer.dtype}[{shape}]{stored}")
    return (*found, f" *   workspace: {workspace_bytes} bytes; every buffer is aligned to {dialect.alignment} bytes", " */")


def entry_code(entry: str, program: Loops, offsets: Mapping[Buffer, int], functions: Sequence[Function], dialect: Dialect) -> Code:
    """The entry point: it locates the used buffers, and calls the functions in turn."""
    pool = ", ansor_parallel_for_t parallel_for, void *pool" if dialect.pool else ""
    used = {buffer for function in functions for buffer in function.buffers}
    places = {buffer: f"args[{number}]" for number, buffer in enumerate(program.arguments) if buffer in used}
    inside = {buffer: f"(void *)(workspace + {offset})" for buffer, offset in offsets.items() if buffer in used}
    located = places | inside
    if not dialect.hosted and not dialect.apart:
        located = {buffer: aligned(place, buffer.dtype, dialect) for buffer, place in located.items()}
    body: list[Code] = [f"{pointer(buffer, restrict=False)} = {place};" for buffer, place in located.items()]
    body += [call for function in functions for call in calls(function, apart=dialect.apart)]
    parallel = any(function.parallel for function in functions)
    named = [("args", bool(places)), ("workspace", bool(inside)), *([("parallel_for", parallel), ("pool", parallel)] if dialect.pool else [])]
    body += [f"(void){name};" for name, needed in named if not needed]
    return block(f"void {entry}(void *const *args, unsigned char *workspace{pool})", body)


def argument(buffer: Buffer, shape: tuple[int, ...]) -> Argument:
    """An argument as callers see it, with its logical shape."""
    pack = None
    if buffer.pack:
        strides = tuple(tuple(int(s) for s in row) for row in buffer.pack)
        pack = Pack(tuple(int(e) for e in buffer.shape), strides, tuple(int(s) for s in buffer.starts))
    return Argument(buffer.name, shape, buffer.dtype, buffer.scope, pack)
