"""Generates C from the loops of one program, in passes over one frozen value: `PASSES`, in order. The first matching one of `PATTERNS` writes a perfect nest.

    reducing, an intrinsic inside        register tile of instructions, or blocks of matrix registers
    bytes copied into groups             vectors interleaved in registers
    a copy that reads across memory      square blocks, transposed in registers
    reducing along vectors               vectors of partial results, combined at the end
    reducing                             register tile: accumulators in local vectors, fully unrolled, held across the reduction loops
    a plain store                        vectors along the innermost loop, whole vectors first, then halves of them for the tail
    anything else                        plain loops
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ansor.codegen.dialect import Dialect, Helpers
from ansor.codegen.emitter import Emitter
from ansor.codegen.functions import Function, WrittenNest, body_code, function_code, function_of, names_in, nest_code, used_by
from ansor.codegen.machine import Machine
from ansor.codegen.patterns.base import Pattern
from ansor.codegen.patterns.block_tile import BLOCK_TILE
from ansor.codegen.patterns.interleaved_copy import INTERLEAVED_COPY
from ansor.codegen.patterns.intrinsic_tile import INTRINSIC_TILE
from ansor.codegen.patterns.plain_loops import PLAIN_LOOPS
from ansor.codegen.patterns.register_tile import REGISTER_TILE
from ansor.codegen.patterns.row import ROW
from ansor.codegen.patterns.transposed_copy import TRANSPOSED_COPY
from ansor.codegen.patterns.vector_reduction import VECTOR_REDUCTION
from ansor.codegen.source import CSource
from ansor.codegen.sums import with_sums
from ansor.codegen.tree import Code
from ansor.codegen.unit import FunctionCode, Unit, argument, entry_code, heading
from ansor.codegen.values import Writer
from ansor.errors import DeclarationError
from ansor.ir.cases import written_out
from ansor.ir.loops import Access, Buffer, Loops, Node, Store, stores
from ansor.ir.passes import Pass, run
from ansor.ir.simplify import joined, simplified_nest
from ansor.ir.value_ranges import Ranges
from ansor.te.dtypes import BYTES

__all__ = ["PASSES", "PATTERNS", "Draft", "Machine", "draft_of", "generate"]

PATTERNS: tuple[Pattern, ...] = (
    BLOCK_TILE,  # these two first: schedules request them explicitly
    INTRINSIC_TILE,
    INTERLEAVED_COPY,
    TRANSPOSED_COPY,  # before rows: a row of it would gather each vector element by element
    VECTOR_REDUCTION,  # before tiles: its innermost loop is a reduction
    REGISTER_TILE,
    ROW,
    PLAIN_LOOPS,  # last: it fits everything
)


@dataclass(frozen=True, eq=False)
class Workspace:
    """The offsets of whole intermediates, and the total bytes."""

    offsets: Mapping[Buffer, int]
    bytes: int


@dataclass(frozen=True, eq=False)
class Draft:
    """A program on its way to C. Each pass fills in a field.

    loops: extents are ints. sums: what stores of intrinsics subtract. workspace: of whole intermediates.
    """

    loops: Loops
    machine: Machine
    entry: str
    sums: Mapping[Store, Access] = field(default_factory=dict)
    workspace: Workspace = field(default_factory=lambda: Workspace({}, 0))
    functions: tuple[Function, ...] = ()
    unit: Unit | None = None
    text: str = ""

    @property
    def alone(self) -> bool:
        """Whether what a nest becomes depends on nothing but the nest: it is apart, and its loops are not distributed over threads."""
        return self.machine.dialect.apart and not self.machine.parallel

    @property
    def source(self) -> CSource:
        """The result, once all passes are done."""
        arguments = tuple(argument(buffer, self.loops.logical_shapes[buffer.name]) for buffer in self.loops.arguments)
        parallel = any(function.parallel for function in self.functions)
        parts = self.unit.parts(self.text, self.machine.dialect) if self.unit is not None and self.machine.dialect.apart and not parallel else None
        return CSource(self.text, self.entry, arguments, self.workspace.bytes, self.machine.threads if parallel else 1, parts=parts)


def generate(loops: Loops, machine: Machine, entry: str | None = None) -> CSource:
    """C for one program (extents are ints). `entry`: the exported symbol, by default the program's name; a suffix is added if math.h declares it."""
    return run(PASSES, draft_of(loops, machine, entry)).source


def draft_of(loops: Loops, machine: Machine, entry: str | None = None) -> Draft:
    """A program before the first pass."""
    symbol = entry or loops.name
    return Draft(loops, machine, f"{symbol}_kernel" if _DECLARED.fullmatch(symbol) else symbol)


# Names that math.h declares or defines as macros: a global function cannot have them.
_DECLARED = re.compile(
    "(a?(sin|cos|tan)h?|atan2|exp2?|expm1|exp10|pow10|frexp|ilogb|llogb|ldexp|log(10|1p|2|b)?|modf|scalb(n|ln)?|cbrt|fabs|hypot|pow|sqrt|erfc?|[lt]?gamma|"
    "ceil|floor|nearbyint|l?l?r(int|ound)|roundeven|trunc|fmod|remainder|remquo|drem|copysign|nan|next(after|toward|up|down)|fdim|fmax|fmin|fma|significand|"
    "[jy][01n]|sincos|finite|isinf|isnan|f?u?fromfpx?|canonicalize|fmaxmag|fminmag|totalorder(mag)?|[gs]etpayload(sig)?)(_r)?[fl]?|"
    "is(finite|normal|subnormal|canonical|signaling|zero|unordered|eqsig|(greater|less)(equal)?|lessgreater)|signbit|fpclassify"
)




# the passes -----------------------------------------------------------------------------------------------------------------------------------------------


def _simplify(draft: Draft) -> Draft:
    loops = joined(draft.loops, map(_kept_simplified_nest if draft.alone else simplified_nest, draft.loops.body))
    _check_sizes(loops, draft.machine.dialect.index_bits)
    return replace(draft, loops=loops)


def _check_sizes(program: Loops, bits: int) -> None:
    """Raises DeclarationError for a buffer with more bytes, or a loop with more iterations, than an index of `bits` bits can count. Places in buffers have at
    least 32 bits."""
    longest, bits = most_iterations(bits), max(32, bits)
    for buffer in (*program.arguments, *program.intermediates):
        if int(buffer.size) * BYTES[buffer.dtype] >= 2 ** (bits - 1):
            raise DeclarationError(f"asked for C of a program with {buffer.name} of shape {buffer.shape} ({buffer.dtype}), which is 2^{bits - 1} bytes or "
                                   "more; it fits in no memory: make it smaller")
    for loop in (loop for path, _ in stores(program.body) for loop in path):
        if int(loop.var.extent) >= longest:
            raise DeclarationError(f"asked for C of a program with a loop of {loop.var.extent} iterations, {longest} or more; make it shorter")


def most_iterations(bits: int) -> int:
    """The exclusive limit of iterations for loop variables of `bits` bits. Halved for 16: the end of a tile may be beyond that of its loop."""
    return 1 << (bits - 2 if bits < 32 else bits - 1)


def _write_out(draft: Draft) -> Draft:
    nest = _kept_written_out if draft.alone else written_out
    return replace(draft, loops=replace(draft.loops, body=tuple(map(nest, draft.loops.body))))


def _sum_ahead(draft: Draft) -> Draft:
    if draft.machine.workspace_bytes:
        return draft  # sums ahead need workspace that legality does not know about; tiles then sum on the fly
    loops, sums = with_sums(draft.loops)
    return replace(draft, loops=loops, sums=sums)


def _place(draft: Draft) -> Draft:
    """Place the intermediates one after another."""
    offsets, total, alignment = {}, 0, draft.machine.dialect.alignment
    for buffer in draft.loops.intermediates:
        offsets[buffer] = total
        total += -(-int(buffer.size) * BYTES[buffer.dtype] // alignment) * alignment
    return replace(draft, workspace=Workspace(offsets, total))


def _find_patterns(draft: Draft) -> Draft:
    loops, buffers = draft.loops, (*draft.loops.arguments, *draft.loops.intermediates)
    taken = names_in(loops.body, buffers)
    functions = []
    for number, node in enumerate(loops.body):
        name = f"{draft.entry}_nest{number}"
        while name in taken or (draft.machine.dialect.apart and f"{name}_apart" in taken):
            name += "_"
        if draft.alone and not draft.sums:
            used = _kept_used_by(node)
            functions.append(replace(_kept_function(node, tuple(one for one in buffers if one in used), draft.machine), name=name))
        else:
            functions.append(function_of(name, node, buffers, draft.machine, PATTERNS, draft.sums))
    return replace(draft, functions=tuple(functions))


def _make_tree(draft: Draft) -> Draft:
    dialect = draft.machine.dialect
    written = tuple(_written(draft))
    top = heading(draft.entry, draft.loops, draft.workspace.bytes, dialect)
    entry = entry_code(draft.entry, draft.loops, draft.workspace.offsets, draft.functions, dialect)
    return replace(draft, unit=Unit(top, dialect.prelude, written, (entry,)))


def _written(draft: Draft) -> Iterator[FunctionCode]:
    """Functions as C, each with its own helpers. Names are numbered through the whole program, but in each function if nests are alone: one then has the
    same text in every program."""
    machine, taken = draft.machine, names_in(draft.loops.body, (*draft.loops.arguments, *draft.loops.intermediates))
    ranges, numbers = Ranges(), itertools.count()
    for function in draft.functions:
        if draft.alone:
            body, helpers = _kept_code(function.body, function.names, machine)
        else:
            helpers = _helpers(machine.dialect, ranges)
            body = tuple(body_code(function, Emitter(machine, Writer(helpers), taken, numbers)))
        yield FunctionCode(function, helpers, tuple(function_code(function, body, machine.dialect)))


def _helpers(dialect: Dialect, ranges: Ranges) -> Helpers:
    return Helpers(ranges=ranges, index=dialect.index, index_bits=dialect.index_bits, hosted=dialect.hosted, apart=dialect.apart)


def _print(draft: Draft) -> Draft:
    assert draft.unit is not None
    return replace(draft, text=draft.unit.text)


# nests alone ----------------------------------------------------------------------------------------------------------------------------------------------
# Programs of one task have most nests in common, as the same objects (`KnownNests`), and what is worked out for one depends on nothing else.

_kept = lru_cache(maxsize=256)
_kept_simplified_nest = _kept(simplified_nest)
_kept_written_out = _kept(written_out)
_kept_used_by = _kept(used_by)


@_kept
def _kept_function(node: Node, buffers: tuple[Buffer, ...], machine: Machine) -> Function:
    """The function of a nest, still without a name."""
    return function_of("", node, buffers, machine, PATTERNS, {})


@_kept
def _kept_code(body: tuple[WrittenNest, ...], names: frozenset[str], machine: Machine) -> tuple[tuple[Code, ...], Helpers]:
    helpers = _helpers(machine.dialect, Ranges())
    return tuple(nest_code(body, Emitter(machine, Writer(helpers), names))), helpers


def _sums_text(draft: Draft) -> str:
    return "\n".join(f"{access.buffer.name} for {store.buffer.name}" for store, access in draft.sums.items()) or "none"


def _places_text(draft: Draft) -> str:
    lines = [f"{buffer.name} at byte {offset}" for buffer, offset in draft.workspace.offsets.items()]
    return "\n".join([*lines, f"{draft.workspace.bytes} bytes of workspace"])


PASSES: tuple[Pass[Draft], ...] = (
    Pass("simplify", "loops of one iteration, zero terms and conditions that always hold removed", _simplify, lambda draft: str(draft.loops)),
    Pass("cases", "unrolled loops that take another case in each iteration, written out", _write_out, lambda draft: str(draft.loops)),
    Pass("sums", "what an intrinsic's offset adds, computed ahead of the tiles", _sum_ahead, _sums_text),
    Pass("places", "where intermediates are in the workspace", _place, _places_text),
    Pass("patterns", "one function for each nest, and the form of every perfect nest", _find_patterns, lambda draft: "\n".join(map(str, draft.functions))),
    Pass("tree", "functions as C, and the helpers that they use", _make_tree, lambda draft: str(draft.unit)),
    Pass("text", "the whole translation unit", _print, lambda draft: draft.text),
)
"""The passes from loops to C, in order."""
