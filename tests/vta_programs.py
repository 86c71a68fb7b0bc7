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
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Module, Store, Tokens, Uop, module_of


def interpreted(program: Sequence[Instruction], dram: DramBytes, core: Configuration) -> DramBytes:
    """DRAM after the program, one instruction after the other."""
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
        if not x.y_size * x.x_size:
            return
        held: dict[Memory, NDArray[Any]] = {Memory.UOP: self.uop, Memory.WGT: self.wgt, Memory.INP: self.inp}
        whole = held.get(x.memory, self.acc)
        from_type = np.dtype(np.int8) if x.memory == Memory.ACC8 else whole.dtype
        shape, size = whole.shape[1:], self.core.element_bytes(x.memory)
        rows = [self.dram[(x.dram_base + y * x.x_stride) * size :][: x.x_size * size].view(from_type).reshape(x.x_size, *shape) for y in range(x.y_size)]
        padded = np.pad(np.stack(rows), [(x.y_pad_0, x.y_pad_1), (x.x_pad_0, x.x_pad_1), *[(0, 0)] * len(shape)]).reshape(-1, *shape)
        whole[x.sram_base : x.sram_base + len(padded)] = padded

    def store(self, x: Store) -> None:
        size = self.core.element_bytes(Memory.OUT)
        for y in range(x.y_size):
            row = self.out[x.sram_base + y * x.x_size :][: x.x_size]
            self.dram[(x.dram_base + y * x.x_stride) * size :][: x.x_size * size] = row.view(np.uint8).ravel()

    def loops(self, x: Gemm | Alu) -> None:
        uops = decode_uops(self.uop[x.uop_bgn : x.uop_end], self.core)
        for o, i in np.ndindex(x.iter_out, x.iter_in):
            for u in uops:
                dst, src = u.dst + o * x.dst_out + i * x.dst_in, u.src + o * x.src_out + i * x.src_in
                if isinstance(x, Alu):
                    self.acc[dst] = _computed(x.operation, self.acc[dst], self.acc[src] if x.immediate is None else np.full_like(self.acc[dst], x.immediate))
                elif x.reset:
                    self.acc[dst] = 0
                else:
                    wgt = self.wgt[u.wgt + o * x.wgt_out + i * x.wgt_in].astype(np.int32)
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
    return [Load(Memory.UOP, 0, 0, 1, 32, 32), *(_any(chance, core) for _ in range(length))]


def _any(chance: random.Random, core: Configuration) -> Instruction:
    kind, small = chance.randrange(6), chance.randrange
    loops: dict[str, Any] = dict(uop_bgn=0, uop_end=small(1, 6), iter_out=small(0, 4), iter_in=small(1, 4))
    loops |= dict(dst_out=small(4), dst_in=small(4), src_out=small(4), src_in=small(4))
    if kind == 0:
        return Gemm(**loops, wgt_out=small(2), wgt_in=small(2), reset=small(4) == 0)
    if kind == 1:
        operand = None if small(2) else chance.choice([-32768, -33, -5, 0, 3, 31, 40, 32767])
        return Alu(chance.choice(list(AluOp)), **loops, immediate=operand)
    place: dict[str, Any] = dict(sram_base=small(8), y_size=small(4), x_size=small(4), x_stride=small(6))
    if kind == 2:
        return Store(**place, dram_base=(65536 + small(32768)) // core.element_bytes(Memory.OUT))
    memory = chance.choice([Memory.WGT, Memory.INP, Memory.ACC, Memory.ACC8])
    base = (8192 + small(4096)) // core.element_bytes(memory)
    if memory == Memory.WGT or not place["y_size"] * place["x_size"]:
        return Load(memory, **place, dram_base=base)
    return Load(memory, **place, dram_base=base, y_pad_0=small(3), y_pad_1=small(3), x_pad_0=small(3), x_pad_1=small(3))


def in_series(program: Sequence[Instruction]) -> list[Instruction]:
    """The program with tokens that leave no choice: each instruction waits for the one before it, where that is of another module."""
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
    found: list[Instruction] = [Load(Memory.UOP, 0, 0, 1, buffers, buffers), Load(Memory.WGT, 0, 16, 1, 1, 1)]
    for tile in range(tiles):
        buffer, again, reused = tile % buffers, tile >= buffers, tile + buffers < tiles
        region: dict[str, Any] = dict(sram_base=buffer * width, y_size=1, x_size=width, x_stride=width)
        found.append(Load(Memory.INP, **region, dram_base=512 + tile * width, tokens=Tokens(pop_next=again, push_next=True)))
        loops: dict[str, Any] = dict(uop_bgn=buffer, uop_end=buffer + 1, iter_in=width, dst_in=1)
        found.append(Gemm(**loops, reset=True, tokens=Tokens(pop_prev=True, pop_next=again)))
        found.append(Gemm(**loops, src_in=1, iter_out=repeats, tokens=Tokens(push_prev=reused, push_next=True)))
        found.append(Store(**region, dram_base=4096 + tile * width, tokens=Tokens(pop_prev=True, push_prev=reused)))
    return [*found, Finish()]


def pipeline_dram(core: Configuration, buffers: int, width: int = 4) -> DramBytes:
    """Random bytes, and the micro-ops of `pipeline`."""
    found = np.random.default_rng(buffers).integers(0, 256, DRAM_BYTES, np.uint8)
    uops = encode_uops([Uop(buffer * width, buffer * width) for buffer in range(buffers)], core)
    found[: 4 * buffers] = uops.view(np.uint8)
    return found
