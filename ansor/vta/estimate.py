"""Estimates how many cycles programs take: the work of each module, what overlaps, and the latency that nothing hides.

The model is a roofline over the parts of a cycle model. Compute overlaps with loads into double-buffered memories, and with stores if ACC is double-buffered.
All of them share the bus. The order of instructions is not modelled, so measurements correct the estimate.
"""

from __future__ import annotations

from ansor.ir.columns import Row, choose, larger, row, smaller
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.cycles import CycleModel
from ansor.vta.pieces import PIECE
from ansor.vta.work import ComputeWork, Transfer, Work, micro_ops

OUT_OF_STEP = 0.09
"""The share of loads and stores that double buffering does not hide, as modules do not run in step. With it, the programs that the estimate picks for the
convolutions of ResNet-18 have at least 0.90 of the speed of programs tuned with 200 trials, and 0.986 in the geometric mean; without it, 0.90 and 0.980."""

_TURN = 3  # cycles to fetch and finish an instruction, in addition to its states


def estimated_cycles(work: Work, configuration: Configuration, model: CycleModel) -> Row:
    """Cycles of each program."""
    load: Row = 0.0
    ahead: Row = 0.0
    compute: Row = 0.0
    products: Row = 0.0
    store: Row = 0.0
    bus: Row = 0.0
    alone: Row = 0.0
    first: Row = 0.0
    last: Row = 0.0
    hidden: Row = 0.0
    tiles = sum((row(one.times) for one in work.transfers if one.memory == Memory.OUT), start=0.0)
    for one in work.transfers:
        beats = row(one.elements) * configuration.element_bytes(one.memory) / model.dram.bus_bytes * model.dram.beat_cycles
        each, times = _transfer(one, beats, model), row(one.times)
        bus = bus + times * beats
        if one.memory == Memory.OUT:
            ending = each * choose(one.elements < 2 * PIECE, 1.0, smaller(PIECE / row(one.elements), 1.0))
            store, last, hidden = store + times * each, last + ending, hidden + each - ending
        elif one.memory in (Memory.INP, Memory.WGT):
            load, first = load + times * each, first + each
            alone = alone + choose(one.buffer.copies > 1, 0.0, 1.0) * times * each
            ahead = ahead + choose(one.buffer.copies > 1, 1.0, 0.0) * each * smaller(times, tiles * row(one.buffer.copies))
        else:
            compute = compute + times * each
    for step in work.computing:
        products = products + (_computing(step, model) if step.gemm else 0.0)
        compute = compute + (0.0 if step.gemm else _computing(step, model))
    load, alone, ahead, compute, products, store, bus = (part * work.filling for part in (load, alone, ahead, compute, products, store, bus))
    compute = compute + row(micro_ops(work)) * 4 / model.dram.bus_bytes + model.dram.read_latency
    # While results are computed from sums, loads can only fill the free copies.
    fed = compute + larger(load - alone - smaller(ahead, compute), products) + alone + first + OUT_OF_STEP * (load - alone + store)
    # Each piece of the last tile is stored while the next one is computed.
    total = choose(work.copies[Memory.ACC] > 1, larger(fed, store) + last, fed + larger(store - hidden, last))
    return larger(total, bus) + 2 * model.dram.read_latency


def _transfer(one: Transfer, beats: Row, model: CycleModel) -> Row:
    """Cycles that its module takes each time, with the latency of each instruction, or of each row if the module has only one access in flight."""
    dram, overhead = model.dram, _TURN + model.control.state_cycles + model.control.token_cycles
    if one.memory == Memory.OUT:
        waits = row(one.rows) / dram.writes * dram.write_latency
    else:
        waits = larger(row(one.pieces), row(one.rows) / dram.reads) * dram.read_latency
    return waits + row(one.pieces) * overhead + beats


def _computing(one: ComputeWork, model: CycleModel) -> Row:
    """Cycles that the compute module takes, for all repetitions."""
    overhead = _TURN + model.control.state_cycles + model.control.token_cycles
    times, begins, results = row(one.times), row(one.begins), row(one.results)
    (immediate, tensors), alu = one.steps, model.alu
    reset = results * model.gemm.gemm_cycles + model.gemm.gemm_fill + overhead
    if one.gemm:
        return times * (row(one.elements) * model.gemm.gemm_cycles + row(one.parts) * (model.gemm.gemm_fill + overhead)) + begins * reset
    if one.store.combiner is None:
        reset = 0.0
    cycles = results * immediate * alu.alu_immediate_cycles + row(one.elements) * tensors * alu.alu_tensor_cycles
    return times * (cycles + (immediate + tensors) * (alu.alu_fill + overhead)) + begins * reset
