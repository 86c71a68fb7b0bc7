"""What is asked of many instructions at once is what is asked of one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ansor.vta.assembler import InstructionError, assemble, decode, encode
from ansor.vta.columns import columns_of
from ansor.vta.configuration import CORE_32, DEFAULT, Configuration
from ansor.vta.instructions import Alu, AluOp, Instruction, Loop, Tokens, UopRange
from tests.vta_programs import random_program


def refused(words: tuple[int, int], core: Configuration) -> bool:
    try:
        decode(words, core)
    except InstructionError:
        return True
    return False


@pytest.mark.parametrize("core", [DEFAULT, CORE_32, Configuration(batch=1)], ids=str)
def test_programs_are_refused_where_an_instruction_is(core: Configuration) -> None:
    """Right instructions with bits turned round."""
    chance, seen = random.Random(0), [0, 0]
    words = assemble(random_program(chance, core, 60), core).tolist()
    for _ in range(1500):
        pair = chance.choice(words)
        one = tuple(word ^ sum(1 << chance.randrange(64) for _ in range(chance.randrange(2))) for word in pair)
        wrong = refused((one[0], one[1]), core)
        seen[wrong] += 1
        program = np.asarray([*words[:5], one], np.uint64)
        if wrong:
            with pytest.raises(InstructionError, match="^instruction 5: "):
                columns_of(program, core)
        else:
            columns_of(program, core)
    assert min(seen) > 100


def test_a_program_is_its_instructions() -> None:
    for seed in range(20):
        program = random_program(random.Random(seed), DEFAULT, 40)
        assert [tuple(pair) for pair in assemble(program, DEFAULT).tolist()] == [encode(one, DEFAULT) for one in program]


@pytest.mark.parametrize("wrong", [Alu(AluOp.ADD, UopRange(0, 1), 1, Loop(2, wgt=1)), Alu(AluOp.ADD, UopRange(0, 1), 1 << 15), Alu(AluOp.ADD, UopRange(2, 1))])
def test_what_does_not_fit_is_named(wrong: Instruction) -> None:
    with pytest.raises(InstructionError, match="^instruction 1: "):
        assemble([Alu(AluOp.MAX, UopRange(0, 1), 0, tokens=Tokens(True)), wrong], DEFAULT)
