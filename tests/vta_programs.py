"""Programs of VTA for tests: random ones, pipelines with tokens, and what they compute, by NumPy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.vta.assembler import decode_uops, encode_uops
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.functional import DramBytes
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Loop, Module, Padding, Rows, Store, Tokens, Uop, UopRange, module_of


def interpreted(program: Sequence[Instruction], dram: DramBytes, core: Configuration) -> DramBytes:
    """DRAM after running the program one instruction after the other."""
    return _Interpreter(dram.copy(), core).run(program)


class _Interpreter:
    def __init__(self, dram: DramBytes, core: Configuration) -> None:
        self.dram, self.core, row, block = dram, core, (1 << core.batch, 1 << core.block), 1 << core.block
        self.uop = np.zeros(core.depth(Memory.UOP), np.uint32)
        self.wgt = np.zeros((core.depth(Memory.WGT), block, block), np.int8)
        self.inp = np.zeros((core.depth(Memory.INP), *row), np.int8)
        self.acc = np.zeros((core.depth(Memory.ACC), *row), np.int32)
        self.out = np.zeros((core.depth(Memory.OUT), *row), np.int8)

    def run(self, program: Sequence[Instruction]) -> DramBytes:
        for one in program:
            if isinstance(one, Load):
                self.load(one)
            elif isinstance(one, Store):
                self.store(one)
            elif isinstance(one, (Gemm, Alu)):
                self.loops(one)
        return self.dram

    def load(self, x: Load) -> None:
        if not x.rows.count:
            return
        held: dict[Memory, NDArray[Any]] = {Memory.UOP: self.uop, Memory.WGT: self.wgt, Memory.INP: self.inp}
        whole, region, pad = held.get(x.memory, self.acc), x.rows, x.padding
        from_type = np.dtype(np.int8) if x.memory == Memory.ACC8 else whole.dtype
        shape, size = whole.shape[1:], self.core.element_bytes(x.memory)
        starts = [(x.dram_base + y * region.x_stride) * size for y in range(region.y_size)]
        rows = [self.dram[start:][: region.x_size * size].view(from_type).reshape(region.x_size, *shape) for start in starts]
        padded = np.pad(np.stack(rows), [(pad.y_0, pad.y_1), (pad.x_0, pad.x_1), *[(0, 0)] * len(shape)]).reshape(-1, *shape)
        whole[x.sram_base : x.sram_base + len(padded)] = padded

    def store(self, x: Store) -> None:
        size, rows = self.core.element_bytes(Memory.OUT), x.rows
        for y in range(rows.y_size):
            row = self.out[x.sram_base + y * rows.x_size :][: rows.x_size]
            self.dram[(x.dram_base + y * rows.x_stride) * size :][: rows.x_size * size] = row.view(np.uint8).ravel()

    def loops(self, x: Gemm | Alu) -> None:
        uops = decode_uops(self.uop[x.uops.begin : x.uops.end], self.core)
        for o, i in np.ndindex(x.outer.iterations, x.inner.iterations):
            for u in uops:
                dst, src = u.dst + o * x.outer.dst + i * x.inner.dst, u.src + o * x.outer.src + i * x.inner.src
                if isinstance(x, Alu):
                    self.acc[dst] = _computed(x.operation, self.acc[dst], self.acc[src] if x.immediate is None else np.full_like(self.acc[dst], x.immediate))
                elif x.reset:
                    self.acc[dst] = 0
                else:
                    wgt = self.wgt[u.wgt + o * x.outer.wgt + i * x.inner.wgt].astype(np.int32)
                    self.acc[dst] += self.inp[src].astype(np.int32) @ wgt.T
                self.out[dst] = self.acc[dst].astype(np.int8)


def _computed(operation: AluOp, x: NDArray[np.int32], y: NDArray[np.int32]) -> NDArray[np.int32]:
    wide, by = x.astype(np.int64), y.astype(np.int64)
    if operation == AluOp.SHR:
        left = np.where(by <= -32, 0, wide << np.clip(-by, 0, 31))
        return np.where(by >= 0, wide >> np.clip(by, 0, 31), left).astype(np.int32)
    found = {AluOp.MIN: np.minimum, AluOp.MAX: np.maximum, AluOp.ADD: np.add, AluOp.MUL: np.multiply}[operation](wide, by)
    return found.astype(np.int32)


DRAM_BYTES = 1 << 17


def random_dram(chance: random.Random, core: Configuration) -> DramBytes:
    """Random bytes; the first 4 KiB are micro-ops with small indices."""
    found = np.random.default_rng(chance.getrandbits(32)).integers(0, 256, DRAM_BYTES, np.uint8)
    bits = [core.index_bits(memory) for memory in (Memory.ACC, Memory.INP)]
    words = [chance.randrange(8) | chance.randrange(8) << bits[0] | chance.randrange(4) << sum(bits) for _ in range(1024)]
    found[:4096] = np.asarray(words, np.uint32).view(np.uint8)
    return found


def random_program(chance: random.Random, core: Configuration, length: int) -> list[Instruction]:
    """A program without tokens that stays inside all memories."""
    return [Load(Memory.UOP, rows=Rows(1, 32, 32)), *(_any(chance, core) for _ in range(length))]


def _any(chance: random.Random, core: Configuration) -> Instruction:
    kind, small = chance.randrange(6), chance.randrange
    uops, outer, inner = UopRange(0, small(1, 6)), Loop(small(0, 4), small(4), small(4)), Loop(small(1, 4), small(4), small(4))
    if kind == 0:
        return Gemm(uops, replace(outer, wgt=small(2)), replace(inner, wgt=small(2)), reset=small(4) == 0)
    if kind == 1:
        operand = None if small(2) else chance.choice([-32768, -33, -5, 0, 3, 31, 40, 32767])
        return Alu(chance.choice(list(AluOp)), uops, operand, outer, inner)
    sram, rows = small(8), Rows(small(4), small(4), small(6))
    if kind == 2:
        return Store(sram, (65536 + small(32768)) // core.element_bytes(Memory.OUT), rows)
    memory = chance.choice([Memory.WGT, Memory.INP, Memory.ACC, Memory.ACC8])
    base = (8192 + small(4096)) // core.element_bytes(memory)
    padding = Padding() if memory == Memory.WGT or not rows.count else Padding(small(3), small(3), small(3), small(3))
    return Load(memory, sram, base, rows, padding)


def in_series(program: Sequence[Instruction]) -> list[Instruction]:
    """The program with tokens that fix the order: each instruction waits for the one before it, if that is of another module."""
    found: list[Instruction] = []
    for one in program:
        if found and {module_of(found[-1]), module_of(one)} == {Module.LOAD, Module.STORE}:
            _append(found, Load(Memory.UOP))
        _append(found, one)
    return found


def _append(found: list[Instruction], one: Instruction) -> None:
    if found and module_of(found[-1]) != module_of(one):
        up = module_of(found[-1]) < module_of(one)
        last = found[-1].tokens
        found[-1] = replace(found[-1], tokens=replace(last, push_next=True) if up else replace(last, push_prev=True))
        one = replace(one, tokens=replace(one.tokens, pop_prev=True) if up else replace(one.tokens, pop_next=True))
    found.append(one)


def pipeline(tiles: int, buffers: int, width: int = 4, repeats: int = 1) -> list[Instruction]:
    """Load, multiply `repeats` times and store tiles of `width` elements, with that many buffers: all tokens are needed, none is left over.

    Micro-ops are at the start of DRAM: number b is (b * width, b * width, 0), as `pipeline_dram` has them.
    """
    found: list[Instruction] = [Load(Memory.UOP, rows=Rows(1, buffers, buffers)), Load(Memory.WGT, 0, 16, Rows(1, 1, 1))]
    rows = Rows(1, width, width)
    for tile in range(tiles):
        buffer, again, reused = tile % buffers, tile >= buffers, tile + buffers < tiles
        base, uops = buffer * width, UopRange(buffer, buffer + 1)
        found.append(Load(Memory.INP, base, 512 + tile * width, rows, tokens=Tokens(pop_next=again, push_next=True)))
        found.append(Gemm(uops, inner=Loop(width, dst=1), reset=True, tokens=Tokens(pop_prev=True, pop_next=again)))
        found.append(Gemm(uops, Loop(repeats), Loop(width, dst=1, src=1), tokens=Tokens(push_prev=reused, push_next=True)))
        found.append(Store(base, 4096 + tile * width, rows, Tokens(pop_prev=True, push_prev=reused)))
    return [*found, Finish()]


def pipeline_dram(core: Configuration, buffers: int, width: int = 4) -> DramBytes:
    """Random bytes, and the micro-ops of `pipeline`."""
    found = np.random.default_rng(buffers).integers(0, 256, DRAM_BYTES, np.uint8)
    uops = encode_uops([Uop(buffer * width, buffer * width) for buffer in range(buffers)], core)
    found[: 4 * buffers] = uops.view(np.uint8)
    return found
