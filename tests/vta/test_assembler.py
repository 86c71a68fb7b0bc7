"""Instructions as words and back, for several cores."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ansor.errors import ArgumentError
from ansor.vta.assembler import InstructionError, assemble, decode, decode_uops, disassemble, encode, encode_uops
from ansor.vta.checks import PADDED
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration, Memory
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Loop, Opcode, Padding, Rows, Store, Tokens, Uop, UopRange
from ansor.vta.layout import Field, instruction_fields, uop_fields

SMALL = Configuration(block=3, weight_bytes=13, uop_bytes=10, input_bytes=12, accumulator_bytes=14)
CORES = [DEFAULT, CORE_32, CORE_64, Configuration(batch=1, block=5), SMALL]
cores = pytest.mark.parametrize("core", CORES, ids=str)


def value(field: Field, chance: random.Random) -> int:
    """Often one of the ends."""
    return chance.choice([field.least, field.most, chance.randint(field.least, field.most)])


def padding(chance: random.Random, core: Configuration, memory: Memory, rows: Rows) -> Padding:
    """None where it would not fit."""
    pad = Padding(*(chance.choice([0, 0, 1, 15]) for _ in range(4)))
    fits = rows.count and memory in PADDED and elements(rows, pad) <= core.depth(memory)
    return pad if fits else Padding()


def elements(rows: Rows, pad: Padding) -> int:
    return (rows.y_size + pad.y_0 + pad.y_1) * (rows.x_size + pad.x_0 + pad.x_1)


def drawn_region(chance: random.Random, core: Configuration, tokens: tuple[Tokens, Tokens, Tokens]) -> Load | Store:
    """`tokens`: with both neighbours, with `prev` only, with `next` only."""
    memory, dram_base = chance.choice(list(Memory)), chance.choice([0, 2**32 - 1, 77])
    rows = Rows(chance.randint(0, 6), chance.randint(0, 6), chance.choice([0, 65535, 6]))
    pad = padding(chance, core, memory, rows)
    base = chance.choice([0, core.depth(memory) - elements(rows, pad)]) if rows.count else chance.randint(0, 65535)
    if memory == Memory.OUT:
        return Store(base, dram_base, rows, tokens[1])
    return Load(memory, base, dram_base, rows, pad, tokens[2] if memory in (Memory.INP, Memory.WGT) else tokens[0])


def drawn(chance: random.Random, core: Configuration) -> Instruction:
    """Any instruction that the core takes."""
    prev, after = [chance.random() < 0.5 for _ in range(2)], [chance.random() < 0.5 for _ in range(2)]
    both, left, right = Tokens(prev[0], after[0], prev[1], after[1]), Tokens(prev[0], False, prev[1], False), Tokens(False, after[0], False, after[1])
    opcode = chance.choice(list(Opcode))
    if opcode == Opcode.FINISH:
        return Finish(both)
    if opcode in (Opcode.LOAD, Opcode.STORE):
        return drawn_region(chance, core, (both, left, right))
    at = {field.name: value(field, chance) for field in instruction_fields(core, opcode)[5:]}
    depth = core.depth(Memory.UOP)
    begin, end = sorted(chance.randint(0, depth) for _ in range(2))
    uops = UopRange(min(begin, depth - 1), end)
    outer, inner = (Loop(at[f"iter_{side}"], at[f"dst_{side}"], at[f"src_{side}"], at.get(f"wgt_{side}", 0)) for side in ("out", "in"))
    if opcode == Opcode.GEMM:
        return Gemm(uops, outer, inner, bool(at["reset"]), both)
    return Alu(AluOp(at["operation"] % 5), uops, at["immediate"] if at["use_imm"] else None, outer, inner, both)


@cores
def test_random_instructions_come_back(core: Configuration) -> None:
    chance = random.Random(7)
    program = [drawn(chance, core) for _ in range(20_000)]
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
    first, second = encode(Load(Memory.INP, 1000, 123456789, Rows(3, 14, 56), Padding(1, 2, 3, 4), Tokens(pop_next=True, push_next=True)), DEFAULT)
    assert [bits(first, 0, 2), bits(first, 3, 6), bits(first, 7, 9), bits(first, 10, 25), bits(first, 26, 57)] == [0, 0b1010, 2, 1000, 123456789]
    assert [bits(second, *ends) for ends in ((0, 15), (16, 31), (32, 47), (48, 51), (52, 55), (56, 59), (60, 63))] == [3, 14, 56, 1, 2, 3, 4]
    first, second = encode(Gemm(UopRange(8191, 8192), Loop(16383, 2047, 3, 1023), Loop(5, 1, 2046, 512), True), DEFAULT)
    assert [bits(first, *ends) for ends in ((0, 2), (7, 7), (8, 20), (21, 34), (35, 48), (49, 62))] == [2, 1, 8191, 8192, 16383, 5]
    assert [bits(second, *ends) for ends in ((0, 10), (11, 21), (22, 32), (33, 43), (44, 53), (54, 63))] == [2047, 1, 3, 2046, 1023, 512]
    first, second = encode(Alu(AluOp.SHR, UopRange(0, 1), -3, inner=Loop(1, dst=1, src=2)), DEFAULT)
    assert [bits(first, 0, 2), bits(second, 11, 21), bits(second, 33, 43), bits(second, 44, 46), bits(second, 47, 47)] == [4, 1, 2, 3, 1]
    assert bits(second, 48, 63) == 0xFFFD and encode(Finish(), DEFAULT) == (3, 0)
    assert encode_uops([Uop(2047, 1, 1023)], DEFAULT).tolist() == [2047 | 1 << 11 | 1023 << 22]


def test_other_cores_move_the_fields() -> None:
    first, second = encode(Gemm(UopRange(0, 1), Loop(src=3), Loop(wgt=5)), CORE_32)
    assert first & 7 == 2 and bits(second, 20, 29) == 3 and bits(second, 48, 55) == 5


PLACES = {
    "uop_bgn": ("uops", "begin"), "uop_end": ("uops", "end"), **{name: ("rows", name) for name in ("y_size", "x_size", "x_stride")},
    **{f"{axis}_pad_{end}": ("padding", f"{axis}_{end}") for axis in "yx" for end in (0, 1)},
    **{f"{field[:4]}_{side}": (loop, field) for side, loop in (("out", "outer"), ("in", "inner")) for field in ("iterations", "dst", "src", "wgt")},
}  # fmt: skip
"""Where instructions have fields that are in a group."""


def changed(instruction: Any, name: str, number: int) -> Any:
    """The instruction with another value in the field of this published name."""
    if name not in PLACES:
        return replace(instruction, **{name: number})
    group, own = PLACES[name]
    return replace(instruction, **{group: replace(getattr(instruction, group), **{own: number})})


@cores
def test_every_field_has_its_limits(core: Configuration) -> None:
    kinds: list[Instruction] = [Load(Memory.ACC, rows=Rows(1, 1)), Store(rows=Rows(1, 1)), Gemm(UopRange(0, 1)), Alu(AluOp.ADD, UopRange(0, 1), 1)]
    for instruction, opcode in zip(kinds, (Opcode.LOAD, Opcode.STORE, Opcode.GEMM, Opcode.ALU), strict=True):
        for field in instruction_fields(core, opcode)[5:]:
            named = field.name in ("memory", "reset", "operation", "use_imm")
            if named or (opcode == Opcode.STORE and "pad" in field.name):
                continue
            for wrong in (field.most + 1, field.least - 1):
                with pytest.raises(InstructionError, match=f"^{field.name} of {opcode.name} is {wrong}; it has {field.bits} bits, for {field.least} to"):
                    encode(changed(instruction, field.name, wrong), core)


@cores
def test_micro_ops_come_back_and_have_limits(core: Configuration) -> None:
    chance = random.Random(3)
    uops = tuple(Uop(*(value(field, chance) for field in uop_fields(core))) for _ in range(500))
    assert decode_uops(encode_uops(uops, core), core) == uops
    with pytest.raises(InstructionError, match=f"^dst of micro-op is {core.depth(Memory.ACC)}; it has"):
        encode_uops([Uop(core.depth(Memory.ACC))], core)


WRONG: list[tuple[Instruction, str]] = [
    (Load(Memory.INP, 2047, rows=Rows(1, 2)), "LOAD INP ends at element 2049, from sram_base 2047 on; INP holds 2048"),
    (Load(Memory.WGT, rows=Rows(1, 2), padding=Padding(x_0=1)), "x_pad_0 of LOAD WGT is 1; only INP, ACC, ACC8 are padded"),
    (Load(Memory.INP, padding=Padding(x_0=1)), "x_pad_0 of LOAD is 1, and it loads nothing: give it rows and columns, or no padding"),
    (Load(Memory.OUT), "the memory of LOAD is OUT; only UOP, WGT, INP, ACC, ACC8 are loaded"),
    (Load(Memory.INP, tokens=Tokens(pop_prev=True)), "pop_prev of LOAD is set; the load module has no neighbour on that side: clear it"),
    (Store(tokens=Tokens(push_next=True)), "push_next of STORE is set; the store module has no neighbour on that side: clear it"),
    (Gemm(UopRange(0, 8193)), "uop_end of GEMM is 8193; UOP holds 8192"),
    (Gemm(UopRange(5, 4)), "uop_bgn of GEMM is 5; it can be at most uop_end, which is 4"),
    (Store(rows=Rows(1.5)), "y_size of STORE is 1.5; pass a whole number from 0 to 65535"),  # type: ignore[arg-type]
    (Store(0, 0, (1, 2, 2)), "rows of STORE is (1, 2, 2); pass Rows(...)"),  # type: ignore[arg-type]
    (Alu(AluOp.ADD, UopRange(0, 1), inner=Loop(wgt=3)), "wgt_in of ALU is 3; only GEMM reads weights: pass 0"),
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
        ((7, 0), "operation 7 of word 0 = 0x0000000000000007 does not exist"), ((3 | 1 << 60, 0), "bits 0x1000000000000000 of word 0 of FINISH are set"),
        ((7 << 7, 0), "the memory of LOAD is 7"), ((4, 6 << 44), "the operation of ALU is 6"), ((4, 1 << 48), "the immediate of ALU is 1, and use_imm is 0"),
        ((1, 0), "the memory of STORE is UOP"), ((1 | 4 << 7, 1 << 48), "y_pad_0 of STORE is set"), ((4 | 1 << 7, 0), "reset of ALU is set"),
    ],
)  # fmt: skip
def test_words_that_are_no_instruction(words: tuple[int, int], text: str) -> None:
    with pytest.raises(InstructionError, match=f"^{re.escape(text)}"):
        decode(words, DEFAULT)


ANY_ASSEMBLE: Any = assemble
ANY_DISASSEMBLE: Any = disassemble


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (lambda: ANY_ASSEMBLE(Finish(), DEFAULT), "asked to assemble Finish"), (lambda: ANY_ASSEMBLE("LOAD", DEFAULT), "asked to assemble 'LOAD'; pass a list"),
        (lambda: ANY_ASSEMBLE([Finish()], "default"), "asked for 'default' as a VTA core; pass a Configuration"),
        (lambda: ANY_DISASSEMBLE([1, 2, 3], DEFAULT), r"asked to read uint64\[3\] as a VTA program; pass uint64\[n, 2\]"),
        (lambda: ANY_DISASSEMBLE(np.zeros((2, 2)), DEFAULT), r"asked to read float64\[2, 2\] as a VTA program"),
        (lambda: ANY_DISASSEMBLE(np.zeros((2, 2), np.uint64), 32), "asked for 32 as a VTA core"),
    ],
)  # fmt: skip
def test_what_is_no_program(asked: Callable[[], object], text: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{text}"):
        asked()


def test_what_is_no_instruction() -> None:
    with pytest.raises(InstructionError, match="^instruction 1: 'LOAD' is not an instruction; pass Load, Store, Gemm, Alu or Finish$"):
        assemble([Finish(), "LOAD"], DEFAULT)  # type: ignore[list-item]
