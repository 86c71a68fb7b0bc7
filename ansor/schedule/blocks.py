"""Blocks of a tile in matrix registers: how many there are, down and along, and how full.

Rows share a block only if they are evenly spaced, both in the operand that they are read from and in the result, and meet the same columns. So the rows of two
loops do if the outer one goes on where the inner one ends, as those of an image do if tiles are as wide as the image and it has no border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.ir.columns import Flag, Int, choose
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, Buffer, For, Store
from ansor.te.expr import Binary, Cast


@dataclass(frozen=True, eq=False)
class Blocks:
    """run: rows that are evenly spaced; down, along: blocks of rows and of columns."""

    run: Int
    down: Int
    along: Int


def blocks_of(path: Sequence[For], store: Store) -> Blocks | None:
    """The blocks of a statement whose innermost loop is run by an instruction on them; None if it computes an operand on the way, which such instructions load
    from memory."""
    intrinsic = path[-1].intrinsic
    assert intrinsic is not None and intrinsic.block is not None
    operands = _operands(store, path[-2].var)
    if operands is None:
        return None
    run, runs = _rows(row_loops(path, store), operands, store)
    along = -(-path[-2].var.extent // max(intrinsic.lanes))
    return Blocks(run, runs * -(-run // intrinsic.block.rows), along)


def row_loops(path: Sequence[For], store: Store) -> list[For]:
    """The loops over rows, innermost first: around the groups of a block, up to the next reduction."""
    found: list[For] = []
    for loop in reversed(path[:-3]):
        if loop.kind == "reduce" or loop.stage != store.stage:
            break
        found.append(loop)
    return found


def _operands(store: Store, lanes: Var) -> tuple[Access, Access] | None:
    """What is read by rows, and what by columns."""
    product = store.value
    if not isinstance(product, Binary) or not isinstance(product.left, Cast) or not isinstance(product.right, Cast):
        return None
    left, right = product.left.value, product.right.value
    if not isinstance(left, Access) or not isinstance(right, Access):
        return None
    return (right, left) if any(_mentions(index, lanes) for index in left.index) else (left, right)


def _mentions(index: Linear, var: Var) -> bool:
    return any(atom is var for atom, _ in index.terms)


def _rows(loops: Sequence[For], operands: tuple[Access, Access], store: Store) -> tuple[Int, Int]:
    """The length of a run of rows, and how many runs there are."""
    rows, columns = operands
    run: Int = 1
    runs: Int = 1
    spaced: tuple[Int, Int] = (0, 0)
    goes_on: Flag = True
    for loop in loops:
        extent, step = loop.var.extent, (_step(rows.buffer, rows.index, loop.var), _step(store.buffer, store.index, loop.var))
        follows = (run == 1) | ((step[0] == spaced[0] * run) & (step[1] == spaced[1] * run))
        goes_on = goes_on & ((extent == 1) | (follows & (_step(columns.buffer, columns.index, loop.var) == 0)))
        begins = (run == 1) & (extent > 1)
        spaced = choose(begins, step[0], spaced[0]), choose(begins, step[1], spaced[1])
        run, runs = run * choose(goes_on, extent, 1), runs * choose(goes_on, 1, extent)
    return run, runs


def _step(buffer: Buffer, index: Sequence[Linear], var: Var) -> Int:
    """Elements between neighbouring iterations."""
    return sum((one.coefficient(var) * stride for one, stride in zip(index, buffer.strides, strict=True)), start=0)
