"""Instructions as words and back, for several cores."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ansor.vta.assembler import InstructionError, assemble, decode, decode_uops, disassemble, encode, encode_uops
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration, Memory
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Opcode, Store, Tokens, Uop
from ansor.vta.layout import Field, instruction_fields, uop_fields

SMALL = Configuration(block=3, weight_bytes=13, uop_bytes=10, input_bytes=12, accumulator_bytes=14)
CORES = [DEFAULT, CORE_32, CORE_64, Configuration(batch=1, block=5), SMALL]
cores = pytest.mark.parametrize("core", CORES, ids=str)


def value(field: Field, chance: random.Random) -> int:
    """Often one of the ends."""
    return chance.choice([field.least, field.most, chance.randint(field.least, field.most)])


def region(chance: random.Random, core: Configuration, memory: Memory, pads: bool) -> dict[str, int]:
    pad = [chance.choice([0, 0, 1, 15]) for _ in range(4)] if pads else [0] * 4
    y, x = chance.randint(0, 6), chance.randint(0, 6)
    if not y * x or (y + pad[0] + pad[1]) * (x + pad[2] + pad[3]) > core.depth(memory):
        pad = [0] * 4
    count = (y + pad[0] + pad[1]) * (x + pad[2] + pad[3])
    base = chance.choice([0, core.depth(memory) - count]) if count else chance.randint(0, 65535)
    found = dict(sram_base=max(base, 0), dram_base=chance.choice([0, 2**32 - 1, 77]), y_size=y, x_size=x, x_stride=chance.choice([0, 65535, x]))
    return found | dict(zip(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), pad, strict=True) if pads else ())


def drawn(chance: random.Random, core: Configuration) -> Instruction:
    """Any instruction that the core takes."""
    prev, after = [chance.random() < 0.5 for _ in range(2)], [chance.random() < 0.5 for _ in range(2)]
    both, left, right = Tokens(prev[0], after[0], prev[1], after[1]), Tokens(prev[0], False, prev[1], False), Tokens(False, after[0], False, after[1])
    opcode = chance.choice(list(Opcode))
    if opcode == Opcode.FINISH:
        return Finish(both)
    if opcode == Opcode.STORE:
        return Store(**region(chance, core, Memory.OUT, False), tokens=left)
    if opcode == Opcode.LOAD:
        memory = chance.choice([one for one in Memory if one != Memory.OUT])
        pads = memory in (Memory.INP, Memory.ACC, Memory.ACC8)
        return Load(memory, **region(chance, core, memory, pads), tokens=right if memory in (Memory.INP, Memory.WGT) else both)
    values = {field.name: value(field, chance) for field in instruction_fields(core, opcode)[5:]}
    values |= dict(zip(("uop_bgn", "uop_end"), sorted(chance.randint(0, core.depth(Memory.UOP)) for _ in range(2)), strict=True))
    values["uop_bgn"] = min(values["uop_bgn"], core.depth(Memory.UOP) - 1)
    if opcode == Opcode.GEMM:
        reset = bool(values.pop("reset"))
        return Gemm(**values, reset=reset, tokens=both)
    immediate = values.pop("immediate") if values.pop("use_imm") else None
    values.pop("reset"), values.pop("immediate", None)
    return Alu(AluOp(values.pop("operation") % 5), **values, immediate=immediate, tokens=both)


@cores
def test_random_instructions_come_back(core: Configuration) -> None:
    chance = random.Random(7)
    program = [drawn(chance, core) for _ in range(3000)]
    words = assemble(program, core)
    assert words.dtype == np.uint64 and disassemble(words, core) == tuple(program)


@cores
def test_fuzzed_words_decode_or_are_refused(core: Configuration) -> None:
    chance, decoded, refused = random.Random(5), 0, 0
    for _ in range(6000):
        words = list(encode(drawn(chance, core), core))
        for _ in range(chance.randint(1, 3)):
            words[chance.randint(0, 1)] ^= 1 << chance.randint(0, 63)
        try:
            assert encode(decode((words[0], words[1]), core), core) == tuple(words)
            decoded += 1
        except InstructionError as error:
            assert str(error).count("\n") == 0
            refused += 1
    assert decoded > 500 and refused > 500


def bits(number: int, low: int, high: int) -> int:
    return number >> low & (1 << high - low + 1) - 1


def test_fields_stand_where_the_layout_says() -> None:
    first, second = encode(Load(Memory.INP, 1000, 123456789, 3, 14, 56, 1, 2, 3, 4, Tokens(pop_next=True, push_next=True)), DEFAULT)
    assert [bits(first, 0, 2), bits(first, 3, 6), bits(first, 7, 9), bits(first, 10, 25), bits(first, 26, 57)] == [0, 0b1010, 2, 1000, 123456789]
    assert [bits(second, *ends) for ends in ((0, 15), (16, 31), (32, 47), (48, 51), (52, 55), (56, 59), (60, 63))] == [3, 14, 56, 1, 2, 3, 4]
    first, second = encode(Gemm(8191, 8192, 16383, 5, 2047, 1, 3, 2046, 1023, 512, True), DEFAULT)
    assert [bits(first, *ends) for ends in ((0, 2), (7, 7), (8, 20), (21, 34), (35, 48), (49, 62))] == [2, 1, 8191, 8192, 16383, 5]
    assert [bits(second, *ends) for ends in ((0, 10), (11, 21), (22, 32), (33, 43), (44, 53), (54, 63))] == [2047, 1, 3, 2046, 1023, 512]
    first, second = encode(Alu(AluOp.SHR, 0, 1, -3, dst_in=1, src_in=2), DEFAULT)
    assert [bits(first, 0, 2), bits(second, 11, 21), bits(second, 33, 43), bits(second, 44, 46), bits(second, 47, 47)] == [4, 1, 2, 3, 1]
    assert bits(second, 48, 63) == 0xFFFD and encode(Finish(), DEFAULT) == (3, 0)
    assert encode_uops([Uop(2047, 1, 1023)], DEFAULT).tolist() == [2047 | 1 << 11 | 1023 << 22]


def test_other_cores_move_the_fields() -> None:
    first, second = encode(Gemm(0, 1, wgt_in=5, src_out=3), CORE_32)
    assert first & 7 == 2 and bits(second, 20, 29) == 3 and bits(second, 48, 55) == 5


@cores
def test_every_field_has_its_limits(core: Configuration) -> None:
    kinds: list[Instruction] = [Load(Memory.ACC, y_size=1, x_size=1), Store(y_size=1, x_size=1), Gemm(0, 1), Alu(AluOp.ADD, 0, 1, 1)]
    for instruction, opcode in zip(kinds, (Opcode.LOAD, Opcode.STORE, Opcode.GEMM, Opcode.ALU), strict=True):
        for field in instruction_fields(core, opcode)[5:]:
            if field.name not in ("memory", "reset", "operation", "use_imm") and hasattr(instruction, field.name):
                for wrong in (field.most + 1, field.least - 1):
                    changed: dict[str, Any] = {field.name: wrong}
                    with pytest.raises(InstructionError, match=f"^{field.name} of {opcode.name} is {wrong}; it has {field.bits} bits, for {field.least} to"):
                        encode(replace(instruction, **changed), core)


@cores
def test_micro_ops_come_back_and_have_limits(core: Configuration) -> None:
    chance = random.Random(3)
    uops = tuple(Uop(*(value(field, chance) for field in uop_fields(core))) for _ in range(500))
    assert decode_uops(encode_uops(uops, core), core) == uops
    with pytest.raises(InstructionError, match=f"^dst of micro-op is {core.depth(Memory.ACC)}; it has"):
        encode_uops([Uop(core.depth(Memory.ACC))], core)


WRONG: list[tuple[Instruction, str]] = [
    (Load(Memory.INP, 2047, y_size=1, x_size=2), "LOAD INP ends at element 2049, from sram_base 2047 on; INP holds 2048"),
    (Load(Memory.WGT, y_size=1, x_size=2, x_pad_0=1), "x_pad_0 of LOAD WGT is 1; only INP, ACC, ACC8 are padded"),
    (Load(Memory.INP, x_pad_0=1), "x_pad_0 of LOAD is 1, and it loads nothing: give it rows and columns, or no padding"),
    (Load(Memory.OUT), "the memory of LOAD is OUT; only UOP, WGT, INP, ACC, ACC8 are loaded"),
    (Load(Memory.INP, tokens=Tokens(pop_prev=True)), "pop_prev of LOAD is set; the load module has no neighbour on that side: clear it"),
    (Store(tokens=Tokens(push_next=True)), "push_next of STORE is set; the store module has no neighbour on that side: clear it"),
    (Gemm(0, 8193), "uop_end of GEMM is 8193; UOP holds 8192"),
    (Gemm(5, 4), "uop_bgn of GEMM is 5; it is at most uop_end, which is 4"),
    (Store(y_size=1.5), "y_size of STORE is 1.5; pass a whole number from 0 to 65535"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("instruction", "text"), WRONG, ids=[text[:30] for _, text in WRONG])
def test_what_a_core_would_not_do_is_refused(instruction: Instruction, text: str) -> None:
    with pytest.raises(InstructionError, match=f"^{re.escape(text)}$"):
        encode(instruction, DEFAULT)
    with pytest.raises(InstructionError, match="^instruction 1: "):
        assemble([Finish(), instruction], DEFAULT)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((7, 0), "operation 7 is asked for"), ((3 | 1 << 60, 0), "bits 0x1000000000000000 of word 0 of FINISH are set"),
        ((7 << 7, 0), "the memory of LOAD is 7"), ((4, 6 << 44), "the operation of ALU is 6"), ((4, 1 << 48), "the immediate of ALU is 1, and use_imm is 0"),
        ((1, 0), "the memory of STORE is UOP"), ((1 | 4 << 7, 1 << 48), "y_pad_0 of STORE is set"), ((4 | 1 << 7, 0), "reset of ALU is set"),
    ],
)  # fmt: skip
def test_words_that_are_no_instruction(words: tuple[int, int], text: str) -> None:
    with pytest.raises(InstructionError, match=f"^{re.escape(text)}"):
        decode(words, DEFAULT)
