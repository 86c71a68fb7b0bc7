"""Tools for patterns to write C: unique names, helpers recorded on use, and shared constructs.

Every method returns pieces of the C tree. Names and helpers are numbered in order of request, so text is made from the outside in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansor.codegen.dialect import C_TYPES, Helpers, literal
from ansor.codegen.edges import Edge
from ansor.codegen.machine import Machine
from ansor.codegen.matrix_registers import Registers
from ansor.codegen.pieces import pieces
from ansor.codegen.tree import Block, Code, block
from ansor.codegen.values import Writer, combined
from ansor.ir.linear import Var
from ansor.ir.loops import Buffer, For, Guard, Store
from ansor.te.expr import Expr

Counts = Mapping[Var, int]
"""Iterations of cut loops."""


@dataclass(frozen=True, eq=False)
class Emitter:
    """Writes one function of a translation unit. taken: names of tensors and loops; registers: the matrix registers that it uses."""

    machine: Machine
    writer: Writer
    taken: frozenset[str]
    numbers: Iterator[int] = field(default_factory=itertools.count)
    registers: Registers = field(default_factory=Registers)

    @property
    def helpers(self) -> Helpers:
        """The unit's helpers so far."""
        return self.writer.helpers

    @property
    def index(self) -> str:
        """The C type of loop variables."""
        return self.machine.dialect.index

    # names ----------------------------------------------------------------------------------------------------------------------------------------

    def own(self, name: str) -> str:
        """A name of our own that no tensor or loop has."""
        while name in self.taken:
            name += "_"
        return name

    def numbered(self, name: str) -> str:
        """A unique name based on `name`."""
        return self.own(f"{name}{next(self.numbers)}")

    # loops ----------------------------------------------------------------------------------------------------------------------------------------

    def counting(self, name: str, begin: int | str, end: int | str, step: int = 0) -> str:
        """The head of a loop; `step` 0: increment by one."""
        return f"for ({self.index} {name} = {begin}; {name} < {end}; {f'{name} += {step}' if step else f'++{name}'})"

    def loop(self, loop: For, body: Iterable[Code], end: int | str | None = None) -> list[Code]:
        """A loop around existing code. `end`: an end before its extent."""
        head = self.counting(loop.var.name, 0, loop.var.extent if end is None else end)  # type: ignore[arg-type]  # extents of one program are ints
        pragma = [f"ANSOR_UNROLL({loop.var.extent})"] if loop.unrolled else []
        return [*pragma, block(head, body)]

    def loops(self, loops: Sequence[For], body: Iterable[Code]) -> list[Code]:
        """Loops around existing code, the first outermost."""
        found = list(body)
        for loop in reversed(loops):
            found = self.loop(loop, found)
        return found

    def locals(self, buffers: Iterable[Buffer]) -> list[Code]:
        """Arrays that live inside a loop."""
        aligned = f"__attribute__((aligned({self.machine.dialect.alignment})))"
        return [f"{C_TYPES[buffer.dtype]} {buffer.name}[{buffer.size}] {aligned};" for buffer in buffers]

    def at_edges(self, ends: Sequence[Edge], counts: Counts, emit: Callable[[Counts], list[Code]]) -> list[Code]:
        """The code for whole tiles, and again for the shorter one at each end: `emit` gets the remaining iterations of cut loops."""
        if not ends:
            return emit(counts)
        end, *others = ends
        extent = counts.get(end.var, int(end.var.extent))
        rest = self.writer.index(end.rest)
        found: list[Code] = [block(f"if ({rest} < {end.high - end.step * (extent - 1)})", self.at_edges(others, counts, emit))]
        for count in end.partial(extent):
            found.append(block(f"else if ({rest} < {end.high - end.step * (count - 1)})", self.at_edges(others, {**counts, end.var: count}, emit)))
        return found

    def end(self, loop: For, ends: Iterable[Edge]) -> tuple[str, list[Code]]:
        """The name of a loop's clipped end, and the lines that compute it."""
        name = self.own(f"{loop.var.name}_end{next(self.numbers)}")
        found: list[Code] = [f"{self.index} {name} = {loop.var.extent};"]
        for end in ends:
            bound = f"{end.high} - ({self.writer.index(end.rest)})"
            text = bound if end.step == 1 else f"({bound} + {end.step - 1}) / {end.step}"
            found.append(f"if ({text} < {name}) {name} = {text};")
        return name, found

    def where(self, guards: Sequence[Guard], body: Callable[[], list[Code]]) -> list[Code]:
        """Code that runs if all guards hold."""
        if not guards:
            return body()
        head = f"if ({self.conditions(guards)})"
        return [block(head, body())]

    def conditions(self, guards: Iterable[Guard]) -> str:
        """Guards as C text."""
        tests = []
        for guard in guards:
            text = self.writer.index(guard.value)
            if guard.low is not None:
                tests.append(f"{text} >= {guard.low}")
            if guard.high is not None:
                tests.append(f"{text} < {guard.high}")
        return " && ".join(tests)

    # values ---------------------------------------------------------------------------------------------------------------------------------------

    def value(self, writer: Writer, value: Expr, into: list[Code]) -> str:
        """A value as C text, with variables for its parts if it is large; a vector if the writer has lanes."""
        parts = pieces(value)
        if parts:
            named: dict[Expr, tuple[str, bool]] = {}
            writer, number = replace(writer, named=named, safe=True), next(self.numbers)
            for k, part in enumerate(parts):
                text, is_vector = writer.value(part)
                named[part] = self.own(f"part{number}_{k}"), is_vector
                into.append(f"const {writer.kind(part.dtype, is_vector)} {named[part][0]} = {text};")
        return writer.scalar(value) if writer.lanes is None else writer.vector(value)

    def shared(self, number: int, into: list[Code]) -> Callable[[str, str], str]:
        """Names loads from memory; equal loads share a name."""
        loaded: dict[str, str] = {}

        def load(text: str, kind: str) -> str:
            if text not in loaded:
                loaded[text] = self.own(f"in{number}_{len(loaded)}")
                into.append(f"const {kind} {loaded[text]} = {text};")
            return loaded[text]

        return load

    def combined(self, store: Store, lanes: int, old: str, new: str) -> str:
        """C text of one step of the store's reduction."""
        assert store.combiner is not None
        return combined(self.helpers, store.combiner, store.buffer.dtype, lanes, old, new, self.helpers.ranges.reduction_may_wrap(store))

    def old_value(self, store: Store, variables: Sequence[Var], place: str) -> str:
        """The value at `place`, or the identity in the first iteration of the variables."""
        identity = literal(store.identity, store.buffer.dtype)
        if not variables:
            return identity
        first = " && ".join(f"{var.name} == 0" for var in variables)
        return f"(({first}) ? {identity} : {place})"

    def store(self, store: Store) -> list[Code]:
        """A statement for one element."""
        return self.where(store.guards, lambda: self._bare(store))

    def _bare(self, store: Store) -> list[Code]:
        found: list[Code] = []
        value = self.value(self.writer, store.value, found)
        place = self.writer.place(store.buffer, store.index)
        if store.combiner is not None:
            old = self.old_value(store, store.reduce_vars, place)
            value = self.combined(store, 1, old, value)
        found.append(f"{place} = {value};")
        return found


def opened(body: Iterable[Code]) -> Block:
    """A scope of its own."""
    return block("", body)
