"""Converts programs to rows of numbers, which the simulators in C read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansor.vta.assembler import Words, disassemble, rows_of
from ansor.vta.checks import sound
from ansor.vta.configuration import Configuration, check_core
from ansor.vta.instructions import Opcode
from ansor.vta.layout import FLAGS, Field, instruction_fields, unused_bits

Columns = NDArray[np.int64]
"""A program [n, len(NAMES)]."""

NAMES = (
    "opcode", *FLAGS, "memory", "sram_base", "dram_base", "y_size", "x_size", "x_stride", "y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1",
    "reset", "uop_bgn", "uop_end", "iter_out", "iter_in", "dst_out", "dst_in", "src_out", "src_in", "wgt_out", "wgt_in", "operation", "use_imm", "immediate",
)  # fmt: skip
"""The columns, as in `columns.h`; 0 if an instruction has no such field."""

_AT = {name: column for column, name in enumerate(NAMES)}


def columns_of(words: Words, configuration: Configuration) -> Columns:
    """All fields of a program of words [n, 2]. Raises InstructionError for words that are not a program of this core."""
    check_core(configuration)
    given = rows_of(words)
    found = np.zeros((len(given), len(NAMES)), np.int64)
    kinds = given[:, 0] & np.uint64(7)
    right = not (kinds > max(Opcode)).any()
    for opcode in Opcode:
        rows = np.flatnonzero(kinds == opcode)
        words, values = given[rows], {}
        for field in instruction_fields(configuration, opcode):
            values[field.name] = found[rows, _AT[field.name]] = _values(words, field)
        unused = np.asarray(unused_bits(configuration, opcode), np.uint64)
        right = right and not (words & unused).any() and (not len(rows) or sound(opcode, values, configuration))
    if not right:
        disassemble(given, configuration)  # raises the error, which names the instruction
    return found


def _values(words: Words, field: Field) -> NDArray[np.int64]:
    values = (words[:, field.word] >> np.uint64(field.low) & np.uint64(field.mask)).astype(np.int64)
    return np.where(values > field.most, values - (1 << field.bits), values) if field.signed else values
