"""Cycles of programs: closed forms, monotonicity, overlap."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansor.errors import ArgumentError
from ansor.vta.assembler import assemble
from ansor.vta.configuration import DEFAULT, Memory
from ansor.vta.cycles import CHISEL, HLS, CycleModel, Cycles, count_cycles
from ansor.vta.functional import DeadlockError
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Load, Tokens
from tests.vta_programs import in_series, pipeline

pytestmark = pytest.mark.compiler
models = pytest.mark.parametrize("model", [CHISEL, HLS], ids=["chisel", "hls"])


def counted(program: list[Instruction], model: CycleModel = CHISEL) -> Cycles:
    return count_cycles(assemble(program, DEFAULT), DEFAULT, model)


@models
@pytest.mark.parametrize("uops", [1, 100, 5000])
def test_micro_ops_after_a_fill(model: CycleModel, uops: int) -> None:
    fetched, around = 2 + model.read_latency + 1, model.state_cycles + 1
    assert counted([Gemm(0, uops)], model).total == fetched + around + model.gemm_fill + uops
    assert counted([Alu(AluOp.ADD, 0, uops, 1)], model).total == fetched + around + model.alu_fill + uops * model.alu_immediate_cycles
    assert counted([Alu(AluOp.ADD, 0, uops)], model).total == fetched + around + model.alu_fill + uops * model.alu_tensor_cycles


@pytest.mark.parametrize("elements", [1, 7, 128])
def test_a_load_that_is_one_burst(elements: int) -> None:
    fetched, around = 2 + CHISEL.read_latency + 1, CHISEL.state_cycles + 1
    assert counted([Load(Memory.INP, 0, 0, 1, elements, elements)]).total == fetched + around + 2 * elements + CHISEL.read_latency


@models
def test_more_latency_or_less_bandwidth_is_never_faster(model: CycleModel) -> None:
    program = pipeline(12, 2, 16, 40)
    by_latency = [counted(program, replace(model, read_latency=cycles)).total for cycles in range(0, 200, 20)]
    by_bandwidth = [counted(program, replace(model, beat_cycles=cycles)).total for cycles in range(1, 9)]
    assert by_latency == sorted(by_latency) and by_bandwidth == sorted(by_bandwidth) and by_latency[0] < by_latency[-1]


@models
def test_two_buffers_overlap_and_stay_above_the_roofline(model: CycleModel) -> None:
    program = pipeline(12, 2, 16, 40)
    double, single = counted(program, model), counted(pipeline(12, 1, 16, 40), model)
    plain = [replace(one, tokens=Tokens()) for one in program]
    assert double.total < single.total <= counted(in_series(plain), model).total
    assert double.total >= max(double.bus, double.gemm + double.alu, *double.busy.values())
    assert counted(program, model).total == double.total and (double.times[:, 1] > double.times[:, 0]).all()


def test_it_says_what_is_assumed() -> None:
    assert str(HLS).startswith("cycles(hls: bus_bytes=8, beat_cycles=1, burst_bytes=2048, read_latency=100, write_latency=50, reads=1,")
    with pytest.raises(ArgumentError, match=f"^{re.escape('reads of a cycle model is 0; pass a whole number from 1 to 1048576')}$"):
        CycleModel("none", reads=0)


def test_deadlocks_are_said() -> None:
    with pytest.raises(DeadlockError, match="^the program never ends: compute waits with instruction 0; `run_in_random_order` says for what$"):
        counted([Gemm(0, 1, tokens=Tokens(pop_prev=True))])
