"""Operators: as text and back, at addresses, one after the other."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ansor.errors import ArgumentError
from ansor.vta.assembler import assemble, disassemble, encode_uops
from ansor.vta.compiled import NO_TENSOR, Operator, OperatorTensor, alignment, barrier, finish, linked, operator_from_text
from ansor.vta.configuration import DEFAULT, Memory
from ansor.vta.functional import run_in_random_order
from ansor.vta.instructions import Alu, AluOp, Load, Rows, Store, Tokens, Uop, UopRange
from ansor.vta.tensors import TensorLayout, pack, unpack

LAYOUT = TensorLayout(Memory.INP, (2, 16), (1,), (16,))


def adding(value: int) -> Operator:
    """y = x + value, for two elements."""
    words = assemble([
        Load(Memory.ACC8, 0, 0, Rows(1, 2, 2)), Alu(AluOp.ADD, UopRange(0, 2), value, tokens=Tokens(push_next=True)),
        Store(0, 0, Rows(1, 2, 2), Tokens(pop_prev=True)),
    ], DEFAULT)  # fmt: skip
    tensors = (OperatorTensor("x", "input", "int8", LAYOUT), OperatorTensor("y", "output", "int8", LAYOUT))
    return Operator(DEFAULT, words, encode_uops([Uop(0), Uop(1)], DEFAULT), tensors, np.array([0, NO_TENSOR, 1]))


def test_operators_come_back_from_their_text() -> None:
    one = adding(3)
    again = operator_from_text(one.to_text())
    assert np.array_equal(again.words, one.words) and np.array_equal(again.uops, one.uops) and again.tensors == one.tensors
    assert again.tensor_of.tolist() == one.tensor_of.tolist() and again.configuration == DEFAULT and "ALU ADD 3" in one.to_text()
    with pytest.raises(ArgumentError, match="read an operator of VTA"):
        operator_from_text("void f() {}")
    with pytest.raises(ArgumentError, match="it has 2 of 3 instructions"):
        operator_from_text("\n".join(one.to_text().splitlines()[:3]))


def test_text_that_no_operator_has_is_refused() -> None:
    first, *lines = adding(3).to_text().splitlines()
    head, rest = json.loads(first), lines[0].split(maxsplit=3)
    for text in (
        json.dumps(head | {"uops": [-1]}) + "\n" + "\n".join(lines),
        "\n".join([first, " ".join([rest[0], rest[1], "99", rest[3]]), *lines[1:]]),
        "\n".join([first, f"{7:016x} {0:016x} -1 x", *lines[1:]]),
        "\n".join([first, f"{'f' * 17} {0:016x} -1 x", *lines[1:]]),
    ):
        with pytest.raises(ArgumentError, match="pass what Operator.to_text wrote"):
            operator_from_text(text)


def test_one_after_the_other_at_addresses() -> None:
    array = np.arange(32, dtype=np.int8).reshape(2, 16)
    dram = np.zeros(8 * alignment(DEFAULT), np.uint8)
    x, y, z, uops = (alignment(DEFAULT) * place for place in (1, 3, 5, 7))
    dram[x : x + 32] = pack(array, LAYOUT)
    for place, one in ((uops, adding(3)), (uops + 8, adding(4))):
        dram[place : place + 8] = one.uops.view(np.uint8)
    first, second = linked(adding(3), (x, y), 0, uops), linked(adding(4), (y, z), 2, uops + 8)
    run_in_random_order(np.concatenate([first, barrier(DEFAULT), second, finish(DEFAULT)]), dram, DEFAULT, seed=1)
    assert np.array_equal(unpack(dram[z : z + 32], LAYOUT, "int8"), array + 7)
    assert disassemble(linked(adding(4), (y, z), 2), DEFAULT)[1] == Alu(AluOp.ADD, UopRange(2, 4), 4, tokens=Tokens(push_next=True))


def test_addresses_have_to_be_of_whole_elements() -> None:
    with pytest.raises(ArgumentError, match="not a multiple of the 16 bytes"):
        linked(adding(3), (8, 0))
