"""One translation unit: its beginning, functions and entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.codegen.dialect import C_TYPES, HALF, Dialect
from ansor.codegen.functions import Function, calls, pointer
from ansor.codegen.source import Argument, Pack
from ansor.codegen.tree import Code, block, lines
from ansor.ir.loops import Buffer, Loops


@dataclass(frozen=True)
class Unit:
    """heading: information for callers, as a comment. definitions: typedefs, macros and small functions that the functions use."""

    heading: tuple[str, ...]
    prelude: str
    definitions: str
    functions: tuple[Code, ...]
    entry: tuple[Code, ...]

    @property
    def text(self) -> str:
        """The C text."""
        rest = "\n".join([self.definitions, "", "\n".join(lines(self.functions)), *lines(self.entry), ""])
        return "\n".join([*self.heading, self.prelude, *([HALF] if C_TYPES["float16"] in rest else []), rest])

    def __str__(self) -> str:
        return "\n".join([*self.heading, *lines(self.functions), *lines(self.entry)])


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
    told = "{}" if dialect.hosted else f"__builtin_assume_aligned({{}}, {dialect.alignment})"  # reading two words at once needs known alignment
    body: list[Code] = [f"{pointer(buffer, restrict=False)} = {told.format(place)};" for buffer, place in (places | inside).items()]
    body += [call for function in functions for call in calls(function)]
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
