"""Tokens follow from what instructions use: programs have no races, and each token is needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansor.vta.assembler import assemble
from ansor.vta.configuration import DEFAULT, Memory
from ansor.vta.functional import ProgramError, run_in_random_order
from ansor.vta.instructions import Alu, AluOp, Gemm, Instruction, Load, Loop, Rows, Store, Tokens, UopRange
from ansor.vta.stream import Stream


def program(rng: np.random.Generator, length: int = 24) -> list[Instruction]:
    """Loads, products and stores of a few places, in any order."""
    stream = Stream()
    for number in range(length):
        place = int(rng.integers(3))
        kind = int(rng.integers(4))
        if kind == 0:
            stream.add(Load(Memory.INP, place, 0, Rows(1, 1, 1)), (), [(Memory.INP, place)])
        elif kind == 1:
            stream.add(Gemm(UopRange(0, 1), Loop(1), Loop(2, 0, place)), [(Memory.INP, 0), (Memory.INP, place)], [(Memory.ACC, 0)])
        elif kind == 2:
            stream.add(Alu(AluOp.ADD, UopRange(0, 1), 1), (), [(Memory.ACC, 0)])
        else:
            stream.add(Store(0, 64 + number, Rows(1, 1, 1)), [(Memory.ACC, 0)])
    return stream.with_tokens()


@pytest.mark.parametrize("seed", range(40))
def test_programs_have_no_races_and_no_token_too_many(seed: int) -> None:
    found = program(np.random.default_rng(seed))
    run_in_random_order(assemble(found, DEFAULT), np.zeros(4096, np.uint8), DEFAULT, seed)
    flagged = [place for place, one in enumerate(found) if one.tokens.push_prev or one.tokens.push_next]
    for place in flagged[:4]:
        without = [*found[:place], replace(found[place], tokens=replace(found[place].tokens, push_prev=False, push_next=False)), *found[place + 1 :]]
        with pytest.raises(ProgramError):
            run_in_random_order(assemble(without, DEFAULT), np.zeros(4096, np.uint8), DEFAULT, seed)


def test_a_later_order_stands_for_an_earlier_one() -> None:
    stream = Stream()
    stream.add(Load(Memory.INP, 0, 0, Rows(1, 1, 1)), (), ["a"])
    stream.add(Load(Memory.INP, 1, 0, Rows(1, 1, 1)), (), ["b"])
    stream.add(Gemm(UopRange(0, 1)), ["a", "b"], ["c"])
    assert [one.tokens for one in stream.with_tokens()] == [Tokens(), Tokens(push_next=True), Tokens(pop_prev=True)]
