"""Small operators of VTA written by hand, and what they compute, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.vta.assembler import assemble, encode_uops
from ansor.vta.compiled import NO_TENSOR, Operator, OperatorTensor
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Load, Loop, Rows, Store, Tokens, Uop, UopRange
from ansor.vta.tensors import TensorLayout

Int8 = NDArray[np.int8]


def rows_layout(core: Configuration, rows: int, width: int) -> TensorLayout:
    """int8 [rows, width], in elements of INP or OUT."""
    return TensorLayout(Memory.INP, (rows, width), (0, 1), (1 << core.batch, 1 << core.block))


def weights_layout(core: Configuration, outputs: int, inputs: int) -> TensorLayout:
    """int8 [outputs, inputs]."""
    return TensorLayout(Memory.WGT, (outputs, inputs), (0, 1), (1 << core.block, 1 << core.block))


def multiplying(core: Configuration, rows: int, inputs: int, outputs: int, shift: int = 7) -> Operator:
    """y [rows, outputs] = x [rows, inputs] times w [outputs, inputs] transposed, shifted right and clipped: with two buffers in the core for each operand."""
    x, w, y = rows_layout(core, rows, inputs), weights_layout(core, outputs, inputs), rows_layout(core, rows, outputs)
    (tiles, across), (_, down) = x.outer, y.outer
    each = across * down
    uops = [Uop(buffer * down + n, buffer * across + k, n * across + k) for buffer in (0, 1) for n in range(down) for k in range(across)]
    uops += [Uop(buffer * down, buffer * down) for buffer in (0, 1)]
    found: list[tuple[Instruction, int]] = [(Load(Memory.WGT, 0, 0, Rows(1, each, each)), 1)]
    for tile in range(tiles):
        buffer, again, reused = tile % 2, tile >= 2, tile + 2 < tiles
        one, whole, loop = UopRange(2 * each + buffer, 2 * each + buffer + 1), UopRange(buffer * each, (buffer + 1) * each), Loop(down, dst=1, src=1)
        found.append((Load(Memory.INP, buffer * across, tile * across, Rows(1, across, across), tokens=Tokens(pop_next=again, push_next=True)), 0))
        found.append((Gemm(one, inner=Loop(down, dst=1), reset=True, tokens=Tokens(pop_prev=True, pop_next=again)), NO_TENSOR))
        found.append((Gemm(whole, tokens=Tokens(push_prev=reused)), NO_TENSOR))
        found += [(alu, NO_TENSOR) for alu in _clipped(one, loop, shift)]
        found.append((Store(buffer * down, tile * down, Rows(1, down, down), Tokens(pop_prev=True, push_prev=reused)), 2))
    tensors = (OperatorTensor("x", "input", "int8", x), OperatorTensor("w", "constant", "int8", w), OperatorTensor("y", "output", "int8", y))
    return _operator(core, found, uops, tensors)


def adding(core: Configuration, rows: int, width: int) -> Operator:
    """z = clip(x + y), all [rows, width], on the ALU only."""
    layout = rows_layout(core, rows, width)
    count = layout.elements
    loads: list[tuple[Instruction, int]] = [(Load(Memory.ACC8, place * count, 0, Rows(1, count, count)), place) for place in (0, 1)]
    add: list[tuple[Instruction, int]] = [(Alu(AluOp.ADD, UopRange(0, 1), inner=Loop(count, dst=1, src=1)), NO_TENSOR)]
    clip = [(alu, NO_TENSOR) for alu in _clipped(UopRange(0, 1), Loop(count, dst=1), 0)]
    store: list[tuple[Instruction, int]] = [(Store(0, 0, Rows(1, count, count), Tokens(pop_prev=True)), 2)]
    tensors = tuple(OperatorTensor(name, role, "int8", layout) for name, role in (("x", "input"), ("y", "input"), ("z", "output")))
    return _operator(core, [*loads, *add, *clip, *store], [Uop(0, count)], tensors)


def multiplied(x: Int8, w: Int8, shift: int = 7) -> Int8:
    """The expected result of `multiplying`."""
    found: Int8 = np.clip(x.astype(np.int32) @ w.astype(np.int32).T >> shift, -128, 127).astype(np.int8)
    return found


def added(x: Int8, y: Int8) -> Int8:
    """The expected result of `adding`."""
    found: Int8 = np.clip(x.astype(np.int32) + y, -128, 127).astype(np.int8)
    return found


def _clipped(uops: UopRange, loop: Loop, shift: int) -> list[Instruction]:
    """The last of them posts to the store module."""
    return [
        Alu(AluOp.SHR, uops, shift, inner=loop), Alu(AluOp.MIN, uops, 127, inner=loop), Alu(AluOp.MAX, uops, -128, inner=loop, tokens=Tokens(push_next=True)),
    ]  # fmt: skip


def _operator(core: Configuration, found: Sequence[tuple[Instruction, int]], uops: list[Uop], tensors: tuple[OperatorTensor, ...]) -> Operator:
    words = assemble([one for one, _ in found], core)
    return Operator(core, words, encode_uops(uops, core), tensors, np.array([tensor for _, tensor in found]))
