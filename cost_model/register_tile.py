"""The register tile of a statement: what its body loads and computes, and how often it runs.

A body's loads and operations repeat for the unrolled loops that they depend on. The compiler hoists them out of the innermost reduction loops that do not
change them: in `for k: for m: C[i] += A[i, k] * B[m, k]`, A[i, k] is loaded once for all m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ansor.cost_model.buffer_features import Statement
from ansor.cost_model.compiler_vectors import packed_by_compiler, packed_in_line
from ansor.cost_model.index_division import runs_in_vectors, steps_evenly
from ansor.cost_model.operations import Reads, operations_of
from ansor.ir.columns import Flag, Row, anywhere, choose, negated, row, smaller
from ansor.ir.loops import Buffer
from ansor.schedule.legality import vector_pieces


@dataclass(frozen=True, eq=False)
class Work:
    """Instructions per body. arithmetic: arithmetic instructions; choices: selections between two values; calls: functions such as exp."""

    arithmetic: Row
    choices: Row
    calls: Row


@dataclass(frozen=True, eq=False)
class PartialResults:
    """The vectors that a tile's innermost reduction runs in. lanes: how many elements they have on average, 1 if there are none; vectors: how many cover the
    reduction, narrower ones at its end included."""

    lanes: Row
    vectors: Row


@dataclass(frozen=True, eq=False)
class Tile:
    """The register tile of a statement, one number per program.

    elements: iterations of the tile's loops; vectors: instructions they take; packed: bodies that the compiler vectorizes together by itself; reads:
    memory reads per body, by buffer; work: instructions per body; runs: how often the tile is entered; bodies: how often its body runs; partial: vectors of its
    innermost reduction.
    """

    elements: Row
    vectors: Row
    packed: Row
    reads: Mapping[Buffer, Row]
    work: Work
    runs: Row
    bodies: Row
    partial: PartialResults

    @cached_property
    def loads(self) -> Row:
        """Memory reads per body."""
        return sum(self.reads.values(), start=0.0)


class _Repeated:
    """Something in the body: how often the unrolled loops repeat it, and how many bodies share it. moves: the loops it depends on, by level."""

    def __init__(self, moves: Sequence[Flag]) -> None:
        self._moves = moves
        self._times: Row = 1.0
        self._bodies: Row = 1.0
        self._fixed: Flag = True

    def unroll(self, level: int, written: Flag, times: Row) -> None:
        """Move outwards, past an unrolled loop."""
        if self._moves[level] is not False:
            self._times = choose(written & self._moves[level], self._times * times, self._times)

    def run(self, level: int, runs: Flag, innermost: Flag, bodies: Row) -> None:
        """Move outwards, past a loop that runs. innermost: whether only such loops and unrolled ones are inside it."""
        self._fixed = self._fixed & negated(self._moves[level] & runs)
        self._bodies = choose(innermost & self._fixed, self._bodies * bodies, self._bodies)

    @property
    def per_body(self) -> Row:
        """How often it is needed, per body."""
        return self._times / self._bodies


def register_tile(statement: Statement, lanes: int, *, optimizes: bool) -> Tile:
    """The unrolled loops: those inside the innermost reduction, or the vectorised one of a statement without a reduction. optimizes: see `Issue`."""
    nest, growing = statement.nest, _Growing(statement, lanes, optimizes)
    for level in range(len(nest.loops) - 1, -1, -1):
        loop = nest.loops[level]
        if loop.stage != nest.store.stage:
            break
        if loop.intrinsic:  # unrolled with the vectors around it
            growing.elements = growing.elements * nest.extents[level]
        elif loop.kind == "reduce":
            growing.reduce(level)
        else:
            growing.repeat(level)
    return growing.tile()


class _Growing:
    """The tile while its loops are visited from the inside out.

    bodies: how often the body runs in a run of the tile; inside: no reduction loop yet; running: no other loop outside such a loop yet; around: the innermost
    reduction is annotated as vectorised, so that unrolled loops around it belong to the tile, too.
    """

    def __init__(self, statement: Statement, lanes: int, optimizes: bool) -> None:
        self.elements: Row = 1.0
        self._statement, self._lanes, self._optimizes = statement, lanes, optimizes
        self._vectors: Row = 1.0
        self._bodies: Row = 1.0
        self._inside: Flag = True
        self._running: Flag = True
        self._around: Flag = False
        self._partial = PartialResults(1.0, 1.0)
        store = statement.nest.store
        self._loads = {buffer: _Repeated(statement.changed_by(buffer)) for buffer in statement.footprints if buffer is not store.buffer}
        operations = operations_of(statement.nest, optimizes)
        self._computed = [(done, _Repeated(_moves_together(statement, done.reads))) for done in operations]
        self._long = any(done.calls for done in operations)

    def reduce(self, level: int) -> None:
        """Move outwards, past a reduction loop."""
        nest = self._statement.nest
        loop, extent, real = nest.loops[level], nest.extents[level], nest.real[level]
        in_vectors = row(vector_pieces(loop.var.extent, self._lanes))
        along = runs_in_vectors(nest, level) & self._inside & real
        self._around = self._around | (loop.vectorized & self._inside & real)
        bodies = choose(along, in_vectors, extent)
        self.elements = choose(along, self.elements * extent / in_vectors, self.elements)
        self._inside = self._inside & negated(real)
        self._bodies = choose(self._running, self._bodies * bodies, self._bodies)
        self._run(level, real, self._running, bodies)
        self._partial = PartialResults(choose(along, extent / in_vectors, self._partial.lanes), choose(along, in_vectors, self._partial.vectors))

    def repeat(self, level: int) -> None:
        """Move outwards, past another loop: unrolled inside the innermost reduction, or a vector."""
        statement, nest = self._statement, self._statement.nest
        loop, extent, real, reduces = nest.loops[level], nest.extents[level], nest.real[level], nest.store.combiner is not None
        self._running = self._running & (self._inside | negated(real))
        vectorized = loop.vectorized if loop.vectorized is False else loop.vectorized & self._in_vectors(level)
        if reduces and self._optimizes:
            vectorized = vectorized | (self._inside & packed_in_line(statement, level, self._long))
        written = self._inside | (self._around & loop.unrolled) if reduces else self._inside & vectorized
        if not reduces:
            self._run(level, real & negated(written), True, choose(written, 1.0, extent))
        if not anywhere(written):
            return
        pieces = choose(vectorized, row(vector_pieces(loop.var.extent, self._lanes)), extent)
        self.elements = choose(written, self.elements * extent, self.elements)
        self._vectors = choose(written, self._vectors * pieces, self._vectors)
        for buffer, part in self._loads.items():
            part.unroll(level, written, _loads_of(statement, buffer, level, vectorized, pieces))
        for _, part in self._computed:
            part.unroll(level, written, pieces)

    def _in_vectors(self, level: int) -> Flag:
        """Whether the iterations of a loop can be lanes."""
        nest = self._statement.nest
        return _moves_by(1.0, self._statement, nest.store.buffer, level) & steps_evenly(nest, level)

    def _run(self, level: int, runs: Flag, innermost: Flag, bodies: Row) -> None:
        if self._optimizes:
            for part in (*self._loads.values(), *(repeated for _, repeated in self._computed)):
                part.run(level, runs, innermost, bodies)

    def tile(self) -> Tile:
        """The tile of the loops so far."""
        statement, computed = self._statement, self._computed
        packed = packed_by_compiler(statement, self.elements, self._lanes, optimizes=self._optimizes)
        bodies = statement.nest.iterations / (self.elements * packed.lanes)
        reads = {buffer: part.per_body * packed.loads[buffer] for buffer, part in self._loads.items()}
        arithmetic = sum((done.arithmetic * part.per_body for done, part in computed), start=0.0)
        choices = sum((done.choices * part.per_body for done, part in computed), start=0.0)
        calls = sum((done.calls * part.per_body for done, part in computed), start=0.0)
        return Tile(self.elements, self._vectors, packed.lanes, reads, Work(arithmetic, choices, calls), bodies / self._bodies, bodies, self._partial)


def _moves_together(statement: Statement, reads: Reads) -> Sequence[Flag]:
    """The loops that a value read from these buffers depends on, by level."""
    if reads is None:
        return [True] * len(statement.nest.loops)
    found: list[Flag] = [False] * len(statement.nest.loops)
    for buffer in sorted(reads, key=lambda one: one.name):
        found = [one | other for one, other in zip(found, statement.changed_by(buffer), strict=True)]
    return found


def _loads_of(statement: Statement, buffer: Buffer, level: int, vectorized: Flag, pieces: Row) -> Row:
    """Loads of a buffer in an unrolled loop: one per iteration, or per vector."""
    nest = statement.nest
    groups = bool(nest.loops) and bool(nest.loops[-1].intrinsic)  # adjacent lanes are a group apart
    factor = choose(vectorized & (_moves_by(1.0, statement, buffer, level) | groups), pieces, nest.extents[level])
    # Every second element: two vectors and a shuffle.
    return choose(vectorized & _moves_by(2.0, statement, buffer, level), smaller(3.0 * pieces, nest.extents[level]), factor)


def _moves_by(elements: float, statement: Statement, buffer: Buffer, level: int) -> Flag:
    stride = statement.footprints[buffer].strides[level]
    return False if stride is None else stride == elements
