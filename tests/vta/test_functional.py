"""What programs compute, against NumPy; races, deadlocks and tokens left over."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ansor.errors import ArgumentError
from ansor.vta.assembler import assemble
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration, Memory
from ansor.vta.functional import BoundsError, DeadlockError, DramBytes, LeftOverError, ProgramError, Queues, RaceError, run_in_order, run_in_random_order
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Loop, Padding, Rows, Store, Tokens, UopRange, module_of
from tests.vta_programs import DRAM_BYTES, in_series, interpreted, pipeline, pipeline_dram, random_dram, random_program

pytestmark = pytest.mark.compiler
CORES = [DEFAULT, CORE_32, CORE_64, Configuration(batch=1)]


@pytest.mark.parametrize("core", CORES, ids=str)
def test_random_programs_compute_what_numpy_does(core: Configuration) -> None:
    for seed in range(250):
        chance = random.Random(seed)
        dram, program = random_dram(chance, core), random_program(chance, core, 25)
        expected, ordered = interpreted(program, dram, core), in_series(program)
        any_order = dram.copy()
        run_in_order(assemble(program, core), dram, core)
        np.testing.assert_array_equal(dram, expected)
        run_in_random_order(assemble(ordered, core), any_order, core, seed)
        np.testing.assert_array_equal(any_order, expected)


def test_right_pipelines_are_not_accused() -> None:
    for seed in range(1000):
        chance = random.Random(seed)
        buffers = chance.randint(1, 3)
        program, dram = pipeline(chance.randint(1, 12), buffers), pipeline_dram(DEFAULT, buffers)
        expected = interpreted(program, dram, DEFAULT)
        run_in_random_order(assemble(program, DEFAULT), dram, DEFAULT, seed, Queues(chance.randint(12, 40), chance.randint(3, 9)))
        np.testing.assert_array_equal(dram, expected, f"seed {seed}")


FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")


def test_every_removed_token_shows() -> None:
    """Of a push alone, a pop alone, and the push and the pop that meet."""
    found = {RaceError: 0, DeadlockError: 0}
    for tiles, buffers in product(range(2, 9), (1, 2, 3)):
        program, dram = pipeline(tiles, buffers), pipeline_dram(DEFAULT, buffers)
        for number, flag in product(range(len(program)), FLAGS):
            if not getattr(program[number].tokens, flag):
                continue
            broken = list(program)
            broken[number] = without(program[number], flag)
            faults = [fault(broken, dram)]
            if flag.startswith("push"):
                other, its = partner(program, number, flag)
                broken[other] = without(program[other], its)
                faults.append(fault(broken, dram))
                assert faults[1] is RaceError
            for one in faults:
                assert one in found, f"{flag} of instruction {number}, {tiles} tiles, {buffers} buffers: {one}"
                found[one] += 1
    assert sum(found.values()) > 200 and min(found.values()) > 50


def without(instruction: Instruction, flag: str) -> Instruction:
    tokens = {name: getattr(instruction.tokens, name) and name != flag for name in FLAGS}
    return replace(instruction, tokens=Tokens(**tokens))


def partner(program: list[Instruction], number: int, flag: str) -> tuple[int, str]:
    """The pop that takes what this push posts."""
    source = module_of(program[number])
    step, its = (1, "pop_prev") if flag == "push_next" else (-1, "pop_next")
    count = sum(getattr(one.tokens, flag) for one in program[:number] if module_of(one) == source)
    pops = [k for k, one in enumerate(program) if module_of(one) == source + step and getattr(one.tokens, its)]
    return pops[count], its


def fault(program: list[Instruction], dram: DramBytes) -> type[ProgramError] | None:
    kinds: set[type[ProgramError] | None] = set()
    for seed in (1, 2):
        try:
            run_in_random_order(assemble(program, DEFAULT), dram.copy(), DEFAULT, seed)
            kinds.add(None)
        except ProgramError as error:
            kinds.add(type(error))
    return RaceError if RaceError in kinds else kinds.pop()


WRONG: list[tuple[list[Instruction], type[ProgramError], str]] = [
    ([Gemm(UopRange(0, 1), tokens=Tokens(pop_prev=True)), Store(tokens=Tokens(pop_prev=True))], DeadlockError,
     "the program never ends: compute waits at instruction 0 for a token load->compute; store waits at instruction 1 for a token compute->store"),
    ([Finish(Tokens(push_next=True))], LeftOverError, "tokens are left over at the end of the program (1 compute->store): pop each of them"),
    ([Gemm(UopRange(0, 1), Loop(2, dst=2047)), Gemm(UopRange(0, 1), inner=Loop(3, dst=1024))], BoundsError, "instruction 1 uses ACC[2048]; ACC holds 2048"),
    ([Load(Memory.INP, 0, 8191, Rows(1, 2, 2))], BoundsError,
     "instruction 0 uses DRAM up to byte 131088, for INP; DRAM has 131072: give it more, or fix dram_base"),
    ([Load(Memory.INP, 5, 0, Rows(1, 1, 1)), Gemm(UopRange(0, 1), inner=Loop(6, src=1))], RaceError,
     "instructions 0 and 1 both use INP[5], one writes it, and no tokens order them: add a push and a pop"),
    ([Store(0, 7, Rows(1, 1, 1)), Load(Memory.INP, 0, 7, Rows(1, 1, 1))], RaceError,
     "instructions 0 and 1 both use byte 112 of DRAM, one writes it, and no tokens order them: add a push and a pop"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "kind", "text"), WRONG, ids=[text[:40] for _, _, text in WRONG])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_goes_wrong_is_said(program: list[Instruction], kind: type[ProgramError], text: str, seed: int) -> None:
    with pytest.raises(kind, match=f"^{re.escape(text)}$"):
        run_in_random_order(assemble(program, DEFAULT), np.zeros(DRAM_BYTES, np.uint8), DEFAULT, seed)


def test_counts() -> None:
    uop = UopRange(0, 1)
    first: list[Instruction] = [Load(Memory.INP, 0, 0, Rows(2, 3, 3), Padding(1, 1)), Gemm(uop, Loop(3), reset=True), Gemm(uop, Loop(3, dst=1))]
    program = [*first, Alu(AluOp.MAX, uop, 0, inner=Loop(2)), Store(rows=Rows(1, 2, 2))]
    found = run_in_order(assemble(program, DEFAULT), np.zeros(DRAM_BYTES, np.uint8), DEFAULT)
    assert (found.loaded[Memory.INP], found.stored, found.gemm, found.reset, found.alu, found.close_writes) == (96, 32, 3, 3, 2, 3)


def test_queues_that_are_too_short_are_found() -> None:
    push, pop = Load(Memory.INP, tokens=Tokens(push_next=True)), Load(Memory.UOP, tokens=Tokens(pop_prev=True))
    program = assemble([push, push, pop, pop], DEFAULT)
    run_in_random_order(program, np.zeros(64, np.uint8), DEFAULT, 1, Queues(2, 1))
    late = assemble([pop, pop, pop, push, push, push], DEFAULT)
    with pytest.raises(DeadlockError, match="^the program never ends: compute waits at .*; fetch waits at instruction 2 for space in a queue$"):
        run_in_random_order(late, np.zeros(64, np.uint8), DEFAULT, 1, Queues(2, 8))


def test_arguments_are_checked() -> None:
    words = assemble([Finish()], DEFAULT)
    with pytest.raises(ArgumentError, match="^DRAM is an array of int8 of shape"):
        run_in_order(words, np.zeros(4, np.int8), DEFAULT)
    with pytest.raises(ArgumentError, match="every queue has to hold at least 1$"):
        run_in_random_order(words, np.zeros(4, np.uint8), DEFAULT, 0, Queues(0, 1))


def test_arguments_that_cannot_be_meant() -> None:
    words, dram = assemble([Finish()], DEFAULT), np.zeros(4, np.uint8)
    for seed in ("1", 1.5, None):
        with pytest.raises(ArgumentError, match=f"^asked for a random order with seed={seed!r}; pass a whole number$"):
            run_in_random_order(words, dram, DEFAULT, seed)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^DRAM is a bytearray; pass a writeable vector of uint8"):
        run_in_order(words, bytearray(4), DEFAULT)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^asked for 'default' as a VTA core"):
        run_in_order(words, dram, "default")  # type: ignore[arg-type]
    run_in_random_order(words, dram, DEFAULT, np.int64(-3))  # type: ignore[arg-type]
