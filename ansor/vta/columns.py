"""Programs as rows of numbers: what the simulators in C read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansor.vta.assembler import Words, disassemble
from ansor.vta.configuration import Configuration
from ansor.vta.instructions import Opcode
from ansor.vta.layout import FLAGS, Field, instruction_fields

Columns = NDArray[np.int64]
"""A program [n, len(NAMES)]."""

NAMES = (
    "opcode", *FLAGS, "memory", "sram_base", "dram_base", "y_size", "x_size", "x_stride", "y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1",
    "reset", "uop_bgn", "uop_end", "iter_out", "iter_in", "dst_out", "dst_in", "src_out", "src_in", "wgt_out", "wgt_in", "operation", "use_imm", "immediate",
)  # fmt: skip
"""The columns, as `columns.h` has them; 0 where an instruction has no such field."""

_AT = {name: column for column, name in enumerate(NAMES)}


def columns_of(words: Words, configuration: Configuration) -> Columns:
    """All fields of a program of words [n, 2]. Raises InstructionError for words that are no program of this core."""
    given = np.ascontiguousarray(words, np.uint64).reshape(-1, 2)
    # Programs repeat themselves: what is checked one by one are instructions that differ.
    disassemble(np.unique(given, axis=0) if len(given) > 1000 else given, configuration)
    found = np.zeros((len(given), len(NAMES)), np.int64)
    kinds = given[:, 0] & np.uint64(7)
    for opcode in Opcode:
        rows = np.flatnonzero(kinds == opcode)
        for field in instruction_fields(configuration, opcode):
            found[rows, _AT[field.name]] = _values(given[rows], field)
    return found


def _values(words: Words, field: Field) -> NDArray[np.int64]:
    values = (words[:, field.word] >> np.uint64(field.low) & np.uint64(field.mask)).astype(np.int64)
    return np.where(values > field.most, values - (1 << field.bits), values) if field.signed else values
