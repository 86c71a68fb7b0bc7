"""The memory that programs need on a board, before anything is built: the same arithmetic for one program (ints) and a population (arrays [n]).

Data sizes are exact. Code size is an upper bound, based on how often statements are unrolled: a thousand programs of six operators, compiled
for four cores, stayed below it. The linked program is checked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ansor.codegen.image.board import Board
from ansor.codegen.image.harness import BAND_BYTES, CODE_BYTES, data_bytes
from ansor.ir.columns import Flag, Int, ceil_div, larger, product, smaller
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Loops, Store, stores
from ansor.schedule.legality import register_tile, written_out
from ansor.te.dtypes import BYTES

NEST_BYTES, STATEMENT_BYTES, CALLED_BYTES = 4 << 10, 64, 144
"""Bounds on machine code: of a statement with the loops around it, and of each unrolled copy, with float registers and with calls."""
FEW, MORE_BYTES = 64, 96
"""Compilers unroll short code further: the first FEW statements take this much more each."""


@dataclass(frozen=True)
class Needs:
    """Bytes. arguments: with their guard bands; workspace: of whole intermediates; code: of the program."""

    arguments: Int
    workspace: Int
    code: Int = 0


@dataclass(frozen=True)
class Room:
    """Bytes available on a board. data: for arguments and workspace; code: for code, in the same memory if `shared`."""

    data: int
    code: int
    shared: bool

    def holds(self, needs: Needs) -> Flag:
        """Whether the needs fit."""
        data = needs.arguments + needs.workspace
        if self.shared:
            return data + needs.code <= self.data
        return (data <= self.data) & (needs.code <= self.code)


def room_of(board: Board) -> Room:
    """The room left by the trial program, the stack and its guard."""
    shared, data = not board.code_is_apart, board.heap_end - board.data.start - data_bytes(board)
    code = (data if shared else board.code.size) - CODE_BYTES
    return Room(code if shared else data, code, shared)


def needs_of(loops: Loops, board: Board, alignment: int) -> Needs:
    """The needs of a program, or of each of a population."""
    vector_bytes, each = board.core.widest, STATEMENT_BYTES if board.core.floats else CALLED_BYTES
    arguments = sum((one.size * BYTES[one.dtype] + BAND_BYTES for one in loops.arguments), start=0)
    workspace = sum((ceil_div(one.size * BYTES[one.dtype], alignment) * alignment for one in loops.intermediates), start=BAND_BYTES)
    return Needs(arguments, workspace, sum((_code(path, store, vector_bytes, each) for path, store in stores(loops.body)), start=0))


def _code(path: tuple[For, ...], store: Store, vector_bytes: int, each: int) -> Int:
    """Bytes of a statement: a tile is unrolled, and copied along its reductions up to their limit."""
    tile = register_tile(path, store, vector_bytes) * written_out(path)
    most = tile * product(loop.var.extent for loop in path if loop.kind == "reduce")
    copied: Int = tile
    for loop in path:
        if loop.kind == "reduce":
            copied = larger(copied, smaller(loop.runs.unroll_limit, most))
    return NEST_BYTES + each * copied + MORE_BYTES * smaller(copied, FEW)


def too_large(dag: Dag, board: Board) -> str:
    """Why no program of a computation fits on a board, with the numbers; '' if some may."""
    given, room = [*dag.inputs, *dag.outputs], room_of(board)
    sizes = {one.name: prod(one.shape) * BYTES[one.dtype] for one in given}
    arguments, code = sum(sizes.values()) + BAND_BYTES * (len(given) + 1), NEST_BYTES if room.shared else 0
    if arguments + code <= room.data:
        return ""
    largest = max(given, key=lambda one: sizes[one.name])
    most = f"most of them for {largest.name} ({largest.dtype}[{', '.join(map(str, largest.shape))}])" if len(given) > 1 else "all of them for its output"
    return f"its arguments need {arguments:,} bytes with the bands around them, {most}, and {sections(board)}"


def sections(board: Board) -> str:
    """A board's memory and what occupies part of it, in words."""
    room = room_of(board)
    taken = [f"{data_bytes(board):,} for the trial program", f"{board.run.stack + board.core.guard:,} for the stack"]
    if room.shared:
        taken.insert(0, f"{CODE_BYTES:,} for its code")
    code = "" if room.shared else f"; {max(0, room.code):,} bytes of {board.code.name} are left for code"
    return f"{board.name} has {max(0, room.data):,} for them: {board.data.size:,} of {board.data.name}, less {', '.join(taken)}{code}"
