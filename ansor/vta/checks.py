"""Checks many instructions at once for what a core cannot do; `assembler` reports which instruction is wrong, and why."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ansor.vta.configuration import Configuration, Memory
from ansor.vta.instructions import AluOp, Opcode

Numbers = NDArray[np.int64]
LOADED = (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC, Memory.ACC8)
PADDED = (Memory.INP, Memory.ACC, Memory.ACC8)
PADS = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


def sound(opcode: Opcode, values: Mapping[str, Numbers], configuration: Configuration) -> bool:
    """Whether a core can run instructions of one kind, given their fields as arrays [n] that are within the fields' widths."""
    if opcode == Opcode.LOAD:
        return _loads(values, configuration)
    if opcode == Opcode.STORE:
        plain = not any(values[name].any() for name in (*PADS, "pop_next", "push_next")) and bool((values["memory"] == Memory.OUT).all())
        return plain and _ends(values, values["y_size"] * values["x_size"], configuration)
    return opcode == Opcode.FINISH or _loops(opcode, values, configuration)


def _loads(values: Mapping[str, Numbers], configuration: Configuration) -> bool:
    memory, y, x = values["memory"], values["y_size"], values["x_size"]
    padded = sum(values[name] for name in PADS) > 0
    count = (values["y_pad_0"] + y + values["y_pad_1"]) * (values["x_pad_0"] + x + values["x_pad_1"])
    tokens = (memory == Memory.INP) | (memory == Memory.WGT)
    alone = not (tokens & ((values["pop_prev"] | values["push_prev"]) > 0)).any()
    zeros = not (padded & (~np.isin(memory, PADDED) | (y * x == 0))).any()
    return alone and zeros and bool(np.isin(memory, LOADED).all()) and _ends(values, count, configuration)


def _ends(values: Mapping[str, Numbers], count: Numbers, configuration: Configuration) -> bool:
    depths = np.asarray([configuration.depth(memory) for memory in Memory])
    return not ((count > 0) & (values["sram_base"] + count > depths[values["memory"]])).any()


def _loops(opcode: Opcode, values: Mapping[str, Numbers], configuration: Configuration) -> bool:
    begin, end = values["uop_bgn"], values["uop_end"]
    if (end > configuration.depth(Memory.UOP)).any() or (begin > end).any():
        return False
    if opcode == Opcode.GEMM:
        return True
    unused = (values["reset"] > 0) | ((values["immediate"] != 0) & (values["use_imm"] == 0))
    return not unused.any() and bool((values["operation"] <= max(AluOp)).all())
