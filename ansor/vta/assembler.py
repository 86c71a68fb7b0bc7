"""Encodes instructions as 128-bit words, and decodes words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.errors import AnsorError, ArgumentError
from ansor.vta.checks import LOADED, PADDED, sound
from ansor.vta.configuration import Configuration, Memory, check_core
from ansor.vta.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Loop, Module, Opcode, Padding, Rows, Store, Tokens, Uop, UopRange, module_of
from ansor.vta.layout import FLAGS, Field, instruction_fields, unused_bits, uop_fields

Words = NDArray[np.uint64]
"""A program [n, 2]: word 0 and word 1 of each instruction, little-endian in memory."""

Uops = NDArray[np.uint32]
"""Micro-ops [n]."""

OPCODES = {Load: Opcode.LOAD, Store: Opcode.STORE, Gemm: Opcode.GEMM, Alu: Opcode.ALU, Finish: Opcode.FINISH}
_Kind = TypeVar("_Kind", bound=IntEnum)
_GROUPS = {"rows": Rows, "padding": Padding, "uops": UopRange, "outer": Loop, "inner": Loop, "tokens": Tokens}
_NO_NEIGHBOUR: dict[Module, tuple[str, ...]] = {Module.LOAD: ("pop_prev", "push_prev"), Module.STORE: ("pop_next", "push_next"), Module.COMPUTE: ()}


class InstructionError(AnsorError, ValueError):
    """A VTA instruction has a value that does not fit into its field, or words are not an instruction. Cure: as the message says."""


def assemble(program: Iterable[Instruction], configuration: Configuration) -> Words:
    """The words of a program, [n, 2]. Raises InstructionError, which gives the number of the instruction."""
    check_core(configuration)
    if isinstance(program, str) or not isinstance(program, Iterable):
        raise ArgumentError(f"asked to assemble {program!r:.80}; pass a list of instructions")
    program = tuple(program)
    together = _encoded(program, configuration)
    if together is not None:
        return together
    rows = []
    for number, one in enumerate(program):
        try:
            rows.append(encode(one, configuration))
        except InstructionError as error:
            raise InstructionError(f"instruction {number}: {error}") from None
    return np.asarray(rows, np.uint64).reshape(-1, 2)


def disassemble(words: Words, configuration: Configuration) -> tuple[Instruction, ...]:
    """The program of words [n, 2]. Raises InstructionError, which gives the number of the instruction."""
    check_core(configuration)
    found = []
    for number, (first, second) in enumerate(rows_of(words)):
        try:
            found.append(decode((int(first), int(second)), configuration))
        except InstructionError as error:
            raise InstructionError(f"instruction {number}: {error}") from None
    return tuple(found)


def rows_of(words: Words) -> Words:
    """The instructions [n, 2] of a program. Raises ArgumentError unless each is two whole numbers."""
    given = words if isinstance(words, np.ndarray) else np.asarray(words, np.uint64)
    if given.size % 2 or given.dtype.kind not in "iu" and given.size:
        raise ArgumentError(f"asked to read {given.dtype}{list(given.shape)} as a VTA program; pass uint64[n, 2], two words for each instruction")
    return np.ascontiguousarray(given, np.uint64).reshape(-1, 2)


def _encoded(program: Sequence[Instruction], configuration: Configuration) -> Words | None:
    """The words of a program, computed for one kind of instruction at a time; None if something does not fit, which `encode` then reports."""
    words = np.zeros((len(program), 2), np.uint64)
    kinds = np.asarray([OPCODES.get(type(one), -1) for one in program], np.int64)
    if (kinds < 0).any():
        return None
    for opcode in map(Opcode, np.unique(kinds).tolist()):
        rows, layout = np.flatnonzero(kinds == opcode), instruction_fields(configuration, opcode)
        try:
            table = np.asarray([_row(program[row]) for row in rows.tolist()])
        except AttributeError:
            return None
        if table.dtype.kind not in "biu" or (table < [field.least for field in layout]).any() or (table > [field.most for field in layout]).any():
            return None
        if not sound(opcode, {field.name: column for field, column in zip(layout, table.T, strict=True)}, configuration):
            return None
        for field, column in zip(layout, table.T, strict=True):
            words[rows, field.word] |= (column & field.mask).astype(np.uint64) << np.uint64(field.low)
    return words


def _row(one: Instruction) -> tuple[object, ...]:
    """The values of its fields, in their order. Raises AttributeError for parts of the wrong kind, and for an ALU with weights."""
    tokens = one.tokens
    first = (tokens.pop_prev, tokens.pop_next, tokens.push_prev, tokens.push_next)
    if isinstance(one, Gemm):
        a, b = one.outer, one.inner
        loops = (one.uops.begin, one.uops.end, a.iterations, b.iterations, a.dst, b.dst, a.src, b.src)
        return (Opcode.GEMM, *first, one.reset, *loops, a.wgt, b.wgt)
    if isinstance(one, Alu):
        a, b = one.outer, one.inner
        if a.wgt or b.wgt:
            raise AttributeError
        loops = (one.uops.begin, one.uops.end, a.iterations, b.iterations, a.dst, b.dst, a.src, b.src)
        return (Opcode.ALU, *first, 0, *loops, one.operation, one.immediate is not None, 0 if one.immediate is None else one.immediate)
    if isinstance(one, Finish):
        return (Opcode.FINISH, *first)
    rows, load = one.rows, isinstance(one, Load)
    pad = one.padding if isinstance(one, Load) else Padding()
    place = (one.memory if isinstance(one, Load) else Memory.OUT, one.sram_base, one.dram_base, rows.y_size, rows.x_size, rows.x_stride)
    return (Opcode.LOAD if load else Opcode.STORE, *first, *place, pad.y_0, pad.y_1, pad.x_0, pad.x_1)


def encode(instruction: Instruction, configuration: Configuration) -> tuple[int, int]:
    """Word 0 and word 1. Raises InstructionError for a value that does not fit."""
    if type(instruction) not in OPCODES:
        raise InstructionError(f"{instruction!r:.80} is not an instruction; pass Load, Store, Gemm, Alu or Finish")
    values = _values(instruction)
    words = [0, 0]
    for field in instruction_fields(configuration, OPCODES[type(instruction)]):
        words[field.word] |= field.placed(_in_range(type(instruction).__name__.upper(), field, values[field.name]))
    _check(instruction, configuration)
    return words[0], words[1]


@lru_cache(maxsize=1 << 14)  # its text, its toolchain and both simulators decode the same program
def decode(words: tuple[int, int], configuration: Configuration) -> Instruction:
    """The instruction of word 0 and word 1. Raises InstructionError for words that `encode` never returns."""
    number = words[0] & 7
    if number not in tuple(Opcode):
        raise InstructionError(f"operation {number} of word 0 = {words[0]:#018x} does not exist; VTA has operations 0 to {max(Opcode)}")
    opcode = Opcode(number)
    layout = instruction_fields(configuration, opcode)
    for word, unused in enumerate(unused_bits(configuration, opcode)):
        unused &= words[word]
        if unused:
            raise InstructionError(f"bits {unused:#018x} of word {word} of {opcode.name} are set; they are in no field: clear them")
    instruction = _instruction(opcode, {field.name: field.of(words) for field in layout})
    _check(instruction, configuration)
    return instruction


def encode_uops(uops: Sequence[Uop], configuration: Configuration) -> Uops:
    """Micro-ops as 32-bit words, [n]. Raises InstructionError for a value that does not fit."""
    layout = uop_fields(configuration)
    return np.asarray([sum(field.placed(_in_range("micro-op", field, getattr(one, field.name))) for field in layout) for one in uops], np.uint32)


def decode_uops(words: Uops, configuration: Configuration) -> tuple[Uop, ...]:
    """Micro-ops of 32-bit words [n]. Raises InstructionError if bits are set that are in no field."""
    layout = uop_fields(configuration)
    used = sum(field.mask << field.low for field in layout)
    for number, word in enumerate(words.tolist()):
        if word & ~used:
            raise InstructionError(f"bits {word & ~used:#010x} of micro-op {number} are set; they are in no field: clear them")
    return tuple(Uop(*(field.of((word, 0)) for field in layout)) for word in words.tolist())


def _values(instruction: Instruction) -> dict[str, int]:
    """The value of each field, by its published name."""
    for name, kind in _GROUPS.items():
        if hasattr(instruction, name) and not isinstance(value := getattr(instruction, name), kind):
            raise InstructionError(f"{name} of {type(instruction).__name__.upper()} is {value!r}; pass {kind.__name__}(...)")
    values = {"opcode": int(OPCODES[type(instruction)]), **{name: getattr(instruction.tokens, name) for name in FLAGS}}
    if isinstance(instruction, Load):
        return values | {"memory": instruction.memory} | _region_values(instruction) | _padding_values(instruction.padding)
    if isinstance(instruction, Store):
        return values | {"memory": Memory.OUT} | _region_values(instruction) | _padding_values(Padding())
    if isinstance(instruction, Gemm):
        return values | {"reset": instruction.reset} | _loop_values(instruction)
    if isinstance(instruction, Alu):
        immediate = {"use_imm": instruction.immediate is not None, "immediate": 0 if instruction.immediate is None else instruction.immediate}
        return values | {"reset": 0, "operation": instruction.operation} | immediate | _loop_values(instruction)
    return values


def _region_values(instruction: Load | Store) -> dict[str, int]:
    rows = instruction.rows
    place = {"sram_base": instruction.sram_base, "dram_base": instruction.dram_base}
    return place | {"y_size": rows.y_size, "x_size": rows.x_size, "x_stride": rows.x_stride}


def _padding_values(padding: Padding) -> dict[str, int]:
    return {"y_pad_0": padding.y_0, "y_pad_1": padding.y_1, "x_pad_0": padding.x_0, "x_pad_1": padding.x_1}


def _loop_values(instruction: Gemm | Alu) -> dict[str, int]:
    values = {"uop_bgn": instruction.uops.begin, "uop_end": instruction.uops.end}
    for side, loop in (("out", instruction.outer), ("in", instruction.inner)):
        values |= {f"iter_{side}": loop.iterations, f"dst_{side}": loop.dst, f"src_{side}": loop.src, f"wgt_{side}": loop.wgt}
    return values


def _in_range(what: str, field: Field, value: object) -> int:
    if not isinstance(value, (int, np.integer)):
        raise InstructionError(f"{field.name} of {what} is {value!r}; pass a whole number from {field.least} to {field.most}")
    if not field.least <= value <= field.most:
        raise InstructionError(f"{field.name} of {what} is {value}; it has {field.bits} bits, for {field.least} to {field.most}")
    return int(value)


def _instruction(opcode: Opcode, values: dict[str, int]) -> Instruction:
    tokens = Tokens(*(bool(values[name]) for name in FLAGS))
    if opcode == Opcode.FINISH:
        return Finish(tokens)
    if opcode == Opcode.GEMM:
        return Gemm(_uops(values), _loop(values, "out"), _loop(values, "in"), bool(values["reset"]), tokens)
    if opcode == Opcode.ALU:
        return _alu(values, tokens)
    memory = _named(Memory, "the memory", opcode, values["memory"])
    rows = Rows(values["y_size"], values["x_size"], values["x_stride"])
    padding = Padding(values["y_pad_0"], values["y_pad_1"], values["x_pad_0"], values["x_pad_1"])
    if opcode == Opcode.LOAD:
        return Load(memory, values["sram_base"], values["dram_base"], rows, padding, tokens)
    if padding != Padding():
        raise InstructionError(f"{_first_pad(padding)} of STORE is set; only loads pad: clear it")
    if memory != Memory.OUT:
        raise InstructionError(f"the memory of STORE is {memory.name}; only OUT ({Memory.OUT.value}) is stored")
    return Store(values["sram_base"], values["dram_base"], rows, tokens)


def _alu(values: dict[str, int], tokens: Tokens) -> Alu:
    operation = _named(AluOp, "the operation", Opcode.ALU, values["operation"])
    if values["reset"]:
        raise InstructionError("reset of ALU is set; only GEMM resets: clear it")
    if values["immediate"] and not values["use_imm"]:
        raise InstructionError(f"the immediate of ALU is {values['immediate']}, and use_imm is 0: set it, or clear the immediate")
    immediate = values["immediate"] if values["use_imm"] else None
    return Alu(operation, _uops(values), immediate, _loop(values, "out"), _loop(values, "in"), tokens)


def _uops(values: dict[str, int]) -> UopRange:
    return UopRange(values["uop_bgn"], values["uop_end"])


def _loop(values: dict[str, int], side: str) -> Loop:
    return Loop(values[f"iter_{side}"], values[f"dst_{side}"], values[f"src_{side}"], values.get(f"wgt_{side}", 0))


def _named(kind: type[_Kind], what: str, opcode: Opcode, number: int) -> _Kind:
    if number not in tuple(kind):
        raise InstructionError(f"{what} of {opcode.name} is {number}; VTA has {', '.join(f'{one.value} ({one.name})' for one in kind)}")
    return kind(number)


def _check(instruction: Instruction, configuration: Configuration) -> None:
    """Check what the widths of fields do not ensure."""
    name, module = type(instruction).__name__.upper(), module_of(instruction)
    for flag in _NO_NEIGHBOUR[module]:
        if getattr(instruction.tokens, flag):
            raise InstructionError(f"{flag} of {name} is set; the {module.name.lower()} module has no neighbour on that side: clear it")
    if isinstance(instruction, Load):
        _check_load(instruction, configuration)
    elif isinstance(instruction, Store):
        _check_end(name, instruction.sram_base, instruction.rows.count, Memory.OUT, configuration)
    elif isinstance(instruction, (Gemm, Alu)):
        _check_loops(name, instruction, configuration)


def _check_loops(name: str, instruction: Gemm | Alu, configuration: Configuration) -> None:
    uops, depth = instruction.uops, configuration.depth(Memory.UOP)
    if uops.end > depth:
        raise InstructionError(f"uop_end of {name} is {uops.end}; UOP holds {depth}")
    if uops.begin > uops.end:
        raise InstructionError(f"uop_bgn of {name} is {uops.begin}; it can be at most uop_end, which is {uops.end}")
    for side, loop in (("out", instruction.outer), ("in", instruction.inner)):
        if isinstance(instruction, Alu) and loop.wgt:
            raise InstructionError(f"wgt_{side} of ALU is {loop.wgt}; only GEMM reads weights: pass 0")


def _check_load(load: Load, configuration: Configuration) -> None:
    if load.memory not in LOADED:
        raise InstructionError(f"the memory of LOAD is {load.memory.name}; only {', '.join(one.name for one in LOADED)} are loaded")
    rows, pad = load.rows, load.padding
    if pad != Padding():
        name = _first_pad(pad)
        value = _padding_values(pad)[name]
        if load.memory not in PADDED:
            raise InstructionError(f"{name} of LOAD {load.memory.name} is {value}; only {', '.join(one.name for one in PADDED)} are padded")
        if not rows.count:
            raise InstructionError(f"{name} of LOAD is {value}, and it loads nothing: give it rows and columns, or no padding")
    count = (pad.y_0 + rows.y_size + pad.y_1) * (pad.x_0 + rows.x_size + pad.x_1)
    _check_end("LOAD", load.sram_base, count, load.memory, configuration)


def _first_pad(padding: Padding) -> str:
    return next(name for name, value in _padding_values(padding).items() if value)


def _check_end(name: str, base: int, count: int, memory: Memory, configuration: Configuration) -> None:
    depth = configuration.depth(memory)
    if count and base + count > depth:
        raise InstructionError(f"{name} {memory.name} ends at element {base + count}, from sram_base {base} on; {memory.name} holds {depth}")
