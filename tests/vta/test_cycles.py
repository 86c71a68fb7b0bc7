"""Cycles of programs: closed forms, monotonicity, overlap."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ansor.errors import ArgumentError
from ansor.vta.assembler import assemble
from ansor.vta.configuration import DEFAULT, Memory
from ansor.vta.cycles import CHISEL, HLS, CycleModel, Cycles, Dram, GemmPipeline, count_cycles
from ansor.vta.functional import DeadlockError, Queues
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Load, Rows, Tokens, UopRange
from tests.vta_programs import in_series, pipeline

pytestmark = pytest.mark.compiler
models = pytest.mark.parametrize("model", [CHISEL, HLS], ids=["chisel", "hls"])


def counted(program: list[Instruction], model: CycleModel = CHISEL) -> Cycles:
    return count_cycles(assemble(program, DEFAULT), DEFAULT, model)


@models
@pytest.mark.parametrize("uops", [1, 100, 5000])
def test_micro_ops_after_a_fill(model: CycleModel, uops: int) -> None:
    fetched, around = 2 + model.dram.read_latency + 1, model.control.state_cycles + 1
    assert counted([Gemm(UopRange(0, uops))], model).total == fetched + around + model.gemm.gemm_fill + uops
    assert counted([Alu(AluOp.ADD, UopRange(0, uops), 1)], model).total == fetched + around + model.alu.alu_fill + uops * model.alu.alu_immediate_cycles
    assert counted([Alu(AluOp.ADD, UopRange(0, uops))], model).total == fetched + around + model.alu.alu_fill + uops * model.alu.alu_tensor_cycles


@pytest.mark.parametrize("elements", [1, 7, 128])
def test_a_load_that_is_one_burst(elements: int) -> None:
    fetched, around = 2 + CHISEL.dram.read_latency + 1, CHISEL.control.state_cycles + 1
    assert counted([Load(Memory.INP, rows=Rows(1, elements, elements))]).total == fetched + around + 2 * elements + CHISEL.dram.read_latency


@models
def test_more_latency_or_less_bandwidth_is_never_faster(model: CycleModel) -> None:
    program = pipeline(12, 2, 16, 40)
    by_latency = [counted(program, replace(model, dram=replace(model.dram, read_latency=cycles))).total for cycles in range(0, 200, 20)]
    by_bandwidth = [counted(program, replace(model, dram=replace(model.dram, beat_cycles=cycles))).total for cycles in range(1, 9)]
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
    assert str(HLS) == (
        "cycles(hls: bus_bytes=8, beat_cycles=1, burst_bytes=2048, read_latency=100, write_latency=50, reads=1, writes=1, fetch_burst=16, state_cycles=2, "
        "token_cycles=1, gemm_fill=5, gemm_cycles=1, alu_fill=5, alu_immediate_cycles=2, alu_tensor_cycles=2, instructions=512, tokens=1024)"
    )


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dram": Dram(reads=0)}, "reads of a cycle model is 0; pass a whole number from 1 to 1048576"),
    ({"gemm": GemmPipeline(gemm_fill=-1)}, "gemm_fill of a cycle model is -1; pass a whole number from 0 to 1048576"),
    ({"queues": Queues(tokens=0)}, "tokens of a cycle model is 0; pass a whole number from 1 to 1048576"),
    ({"dram": Dram(burst_bytes=12)}, "burst_bytes of a cycle model is 12; pass a multiple of bus_bytes, which is 8"),
    ({"dram": 8}, "dram of a cycle model is 8; pass Dram(...)"),
]


@pytest.mark.parametrize(("groups", "text"), WRONG, ids=[text[:30] for _, text in WRONG])
def test_what_no_core_has_is_refused(groups: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(text)}$"):
        CycleModel("none", **groups)


def test_deadlocks_are_said() -> None:
    with pytest.raises(DeadlockError, match="^the program never ends: compute waits at instruction 0; `run_in_random_order` reports what it waits for$"):
        counted([Gemm(UopRange(0, 1), tokens=Tokens(pop_prev=True))])


def test_a_model_is_a_value() -> None:
    with pytest.raises(ArgumentError, match="^asked for cycles by 'hls'; pass a CycleModel, such as CHISEL or HLS"):
        count_cycles(assemble([], DEFAULT), DEFAULT, "hls")  # type: ignore[arg-type]
