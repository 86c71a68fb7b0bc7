"""The published hand-written schedule of convolutions for VTA: tiles of exact factors along output channels, rows, columns and input channels, one or two
virtual threads along output channels or rows, everything computed inside the column loop, and both operands loaded inside the loop over input channels.

    for thread:                                                      (interleaved, statement by statement)
        for row tiles, channel tiles, column tiles:
            zeros;  for input channel tiles:  load data, load weights, multiply
            load bias, add it, shift, clip, store

Operands that do not depend on the thread are loaded once, to one place, as virtual-thread injection does. It uses the fewest tokens that are correct.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ansor.vta.assembler import assemble, encode_uops
from ansor.vta.compiled import NO_TENSOR, Operator, OperatorTensor
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.cycles import CycleModel
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Loop, Uop, UopRange
from ansor.vta.kernels import Kernel, StridedLoop, kernels_of
from ansor.vta.stream import Stream
from ansor.vta.tensors import TensorLayout
from ansor.vta.transfers import Extent, loads, stores


@dataclass(frozen=True)
class Layer:
    """A convolution of batch 1: int8 [channels_in, size, size], square kernels, bias, shifted by 9, clipped to 0..127."""

    name: str
    size: int
    channels_in: int
    channels_out: int
    kernel: int
    stride: int
    pad: int

    @property
    def result(self) -> int:
        """Rows and columns of the output."""
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Tiles:
    """A configuration of the template. out, data: blocks of output and input channels of a tile; rows, columns: of a tile; virtual threads along channels and
    rows."""

    out: int
    rows: int
    columns: int
    data: int
    channel_threads: int = 1
    row_threads: int = 1


def configurations(layer: Layer, core: Configuration) -> Iterator[Tiles]:
    """All configurations that fit."""
    block = 1 << core.block
    out, data = -(-layer.channels_out // block), -(-layer.channels_in // block)
    for co, h, w, ci in itertools.product(_factors(out), _factors(layer.result), _factors(layer.result), _factors(data)):
        for threads in ((1, 1), (2, 1), (1, 2)):
            tiles = Tiles(co, h, w, ci, *threads)
            if out // co % threads[0] == 0 and layer.result // h % threads[1] == 0 and _fits(layer, tiles, core):
                yield tiles


def least_cycles(layer: Layer, tiles: Tiles, core: Configuration, model: CycleModel) -> float:
    """A lower bound on cycles: those of load alone (its bytes and the latency of each LOAD) or of compute alone (micro-ops, pipeline fills, biases)."""
    block, result, dram = 1 << core.block, layer.result, model.dram
    groups, out = -(-layer.channels_in // block) // tiles.data, -(-layer.channels_out // block)
    whole = out // tiles.out * (result // tiles.rows) * (result // tiles.columns)
    weights = tiles.out * tiles.data * layer.kernel**2 * core.element_bytes(Memory.WGT) / dram.bus_bytes + dram.read_latency
    inside = [(tiles.rows - 1) * layer.stride + 1, (tiles.columns - 1) * layer.stride + 1]
    data = tiles.data * inside[0] * inside[1] * core.element_bytes(Memory.INP) / dram.bus_bytes + dram.read_latency
    load = whole * groups * (weights / tiles.row_threads + data / tiles.channel_threads)
    products, each = out * result**2 * groups * tiles.data * layer.kernel**2, model.gemm.gemm_fill + model.control.state_cycles + 1
    alu = 3 * model.alu.alu_immediate_cycles + model.alu.alu_tensor_cycles + model.gemm.gemm_cycles
    compute = products * model.gemm.gemm_cycles + out * result**2 * alu + whole * ((groups + 5) * each + dram.read_latency / tiles.row_threads)
    return max(load, compute)


def program(layer: Layer, tiles: Tiles, core: Configuration) -> Operator:
    """The operator of a configuration."""
    return _Template(layer, tiles, core).operator()


def _factors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _inside(layer: Layer, length: int) -> int:
    return (length - 1) * layer.stride + layer.kernel


def _fits(layer: Layer, tiles: Tiles, core: Configuration) -> bool:
    data = tiles.data * _inside(layer, tiles.rows) * _inside(layer, tiles.columns) * tiles.row_threads
    weights = tiles.out * tiles.data * layer.kernel**2 * tiles.channel_threads
    threads = tiles.channel_threads * tiles.row_threads
    sums = tiles.out * tiles.rows * tiles.columns * threads + tiles.out * tiles.channel_threads
    return data <= core.depth(Memory.INP) and weights <= core.depth(Memory.WGT) and sums <= core.depth(Memory.ACC)


class _Template:
    def __init__(self, layer: Layer, tiles: Tiles, core: Configuration) -> None:
        self._layer, self._tiles, self._core = layer, tiles, core
        block, size, result, kernel = 1 << core.block, layer.size, layer.result, layer.kernel
        self._out, self._in = -(-layer.channels_out // block), -(-layer.channels_in // block)
        self._stream = Stream()
        self._tensor_of: list[int] = []
        self._uops: list[Uop] = []
        self._ranges: dict[Kernel, UopRange] = {}
        shapes = ((1, layer.channels_in, size, size), (layer.channels_out, layer.channels_in, kernel, kernel), (1, layer.channels_out, result, result))
        self._tensors = (
            OperatorTensor("x", "input", "int8", TensorLayout(Memory.INP, shapes[0], (1,), (block,))),
            OperatorTensor("w", "constant", "int8", TensorLayout(Memory.WGT, shapes[1], (0, 1), (block, block))),
            OperatorTensor("b", "constant", "int32", TensorLayout(Memory.ACC, (layer.channels_out,), (0,), (block,))),
            OperatorTensor("out", "output", "int8", TensorLayout(Memory.OUT, shapes[2], (1,), (block,))),
        )

    def operator(self) -> Operator:
        """The whole operator."""
        tiles, result = self._tiles, self._layer.result
        steps = (result // tiles.rows // tiles.row_threads, self._out // tiles.out // tiles.channel_threads, result // tiles.columns)
        for row, channel, column in itertools.product(*map(range, steps)):
            self._tile(row, channel, column)
        words = assemble(self._stream.with_tokens(), self._core)
        return Operator(self._core, words, encode_uops(self._uops, self._core), self._tensors, np.asarray(self._tensor_of, np.int64))

    def _tile(self, row: int, channel: int, column: int) -> None:
        """Emit a tile of each thread."""
        tiles = self._tiles
        threads = list(itertools.product(range(tiles.channel_threads), range(tiles.row_threads)))
        size = tiles.out * tiles.rows * tiles.columns
        for number, _ in enumerate(threads):
            ((uops, outer, inner),) = self._kernels((number * size, 0, 0), StridedLoop(size, 1))
            self._add(Gemm(uops, outer, inner, reset=True), -1, (), [("acc", number)])
        for group in range(self._in // tiles.data):
            for thread in range(tiles.row_threads):
                self._load_data(thread, row * tiles.row_threads + thread, column, group)
            for thread in range(tiles.channel_threads):
                self._load_weights(thread, channel * tiles.channel_threads + thread, group)
            for number, (c, r) in enumerate(threads):
                self._multiply(number, c, r)
        for c in range(tiles.channel_threads):
            at, base = (channel * tiles.channel_threads + c) * tiles.out, len(threads) * size + c * tiles.out
            for one in loads(Memory.ACC, base, at, [Extent(tiles.out, 1, 1)]):
                self._add(one, 2, (), [("bias", c)])
        for number, (c, r) in enumerate(threads):
            self._finish(number, len(threads) * size + c * tiles.out, ("bias", c))
            self._store(number, row * tiles.row_threads + r, (channel * tiles.channel_threads + c), column)

    def _load_data(self, thread: int, row: int, column: int, group: int) -> None:
        layer, tiles = self._layer, self._tiles
        height, width = _inside(layer, tiles.rows), _inside(layer, tiles.columns)
        y = self._clipped(row * tiles.rows * layer.stride - layer.pad, height)
        x = self._clipped(column * tiles.columns * layer.stride - layer.pad, width)
        plane = layer.size * layer.size
        extents = [Extent(tiles.data, plane, height * width), Extent(y[1], layer.size, width, y[2], y[3]), Extent(x[1], 1, 1, x[2], x[3])]
        first = group * tiles.data * plane + y[0] * layer.size + x[0]
        for one in loads(Memory.INP, thread * tiles.data * height * width, first, extents):
            self._add(one, 0, (), [("inp", thread)])

    def _clipped(self, start: int, length: int) -> tuple[int, int, int, int]:
        """The part of a range inside the image: its start and length, and the numbers of zeros before and after it."""
        first, end = max(start, 0), min(start + length, self._layer.size)
        return first, end - first, first - start, start + length - end

    def _load_weights(self, thread: int, channel: int, group: int) -> None:
        tiles, area = self._tiles, self._layer.kernel**2
        extents = [Extent(tiles.out, self._in * area, tiles.data * area), Extent(tiles.data * area, 1, 1)]
        first = channel * tiles.out * self._in * area + group * tiles.data * area
        for one in loads(Memory.WGT, thread * tiles.out * tiles.data * area, first, extents):
            self._add(one, 1, (), [("wgt", thread)])

    def _multiply(self, number: int, channel: int, row: int) -> None:
        layer, tiles, kernel = self._layer, self._tiles, self._layer.kernel
        height, width, plane = _inside(layer, tiles.rows), _inside(layer, tiles.columns), tiles.rows * tiles.columns
        start = (number * tiles.out * plane, row * tiles.data * height * width, channel * tiles.out * tiles.data * kernel**2)
        walks = (
            StridedLoop(tiles.data, 0, height * width, kernel**2), StridedLoop(kernel, 0, width, kernel), StridedLoop(kernel, 0, 1, 1),
            StridedLoop(tiles.out, plane, 0, tiles.data * kernel**2), StridedLoop(tiles.rows, tiles.columns, layer.stride * width),
            StridedLoop(tiles.columns, 1, layer.stride),
        )  # fmt: skip
        for each in self._kernels(start, *walks):
            self._add(Gemm(*each), -1, [("inp", row), ("wgt", channel)], [("acc", number)])

    def _finish(self, number: int, bias: int, thing: tuple[str, int]) -> None:
        tiles, plane = self._tiles, self._tiles.rows * self._tiles.columns
        size = tiles.out * plane
        ((uops, outer, inner),) = self._kernels((number * size, bias, 0), StridedLoop(tiles.out, plane, 1), StridedLoop(plane, 1))
        self._add(Alu(AluOp.ADD, uops, None, outer, inner), -1, [thing], [("acc", number)])
        ((uops, outer, inner),) = self._kernels((number * size, 0, 0), StridedLoop(size, 1))
        for operation, value in ((AluOp.SHR, 9), (AluOp.MIN, 127), (AluOp.MAX, 0)):
            self._add(Alu(operation, uops, value, outer, inner), -1, (), [("acc", number)])

    def _store(self, number: int, row: int, channel: int, column: int) -> None:
        tiles, result = self._tiles, self._layer.result
        plane = tiles.rows * tiles.columns
        extents = [Extent(tiles.out, result * result, plane), Extent(tiles.rows, result, tiles.columns), Extent(tiles.columns, 1, 1)]
        first = channel * tiles.out * result * result + row * tiles.rows * result + column * tiles.columns
        for one in stores(number * tiles.out * plane, first, extents):
            self._add(one, 3, [("acc", number)], ())

    def _kernels(self, start: tuple[int, int, int], *walks: StridedLoop) -> list[tuple[UopRange, Loop, Loop]]:
        kernels = kernels_of(start, walks)
        for kernel in kernels:
            if kernel not in self._ranges:
                self._ranges[kernel] = UopRange(len(self._uops), len(self._uops) + len(kernel.uops))
                self._uops += kernel.uops
        return [(self._ranges[kernel], kernel.outer, kernel.inner) for kernel in kernels]

    def _add(self, one: Instruction, tensor: int, reads: Sequence[tuple[str, int]], writes: Sequence[tuple[str, int]]) -> None:
        self._stream.add(one, reads, writes)
        self._tensor_of.append(NO_TENSOR if tensor < 0 else tensor)
