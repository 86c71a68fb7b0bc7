"""A compiled operator: instructions over tensors that have no addresses yet, and the functions that link it into a program.

    operator + an address for each tensor --linked--> words, then `finish()`, or `barrier()` and the next operator
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument, Grouped
from ansor.errors import ArgumentError
from ansor.vta.assembler import Uops, Words, assemble, disassemble
from ansor.vta.columns import columns_of
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.instructions import Finish, Instruction, Load, Opcode, Rows, Store, Tokens
from ansor.vta.layout import Field, instruction_fields
from ansor.vta.tensors import TensorLayout
from ansor.vta.text import instruction_text

Numbers = NDArray[np.int64]
NO_TENSOR = -1
_UOP_ROW = 32768  # micro-ops in one LOAD


@dataclass(frozen=True)
class OperatorTensor:
    """An argument. role: input, constant or output."""

    name: str
    role: str
    dtype: str
    layout: TensorLayout


@dataclass(frozen=True, eq=False)
class Operator:
    """words [n, 2]: instructions in a correct order, with their tokens, but without loads of micro-ops and FINISH. uops [u]: all micro-ops, contiguous in UOP.
    tensors: in the order of the call. tensor_of [n]: the index of the tensor in DRAM that an instruction reads or writes, from whose start its `dram_base`
    counts; NO_TENSOR for others.

    Operators are independent: they pass each other no data in the memories of the core and no tokens, and leave no tokens behind.
    """

    configuration: Configuration
    words: Words
    uops: Uops
    tensors: tuple[OperatorTensor, ...]
    tensor_of: Numbers

    def to_text(self) -> str:
        """The text that `operator_from_text` reads: a line of JSON, then a line for each instruction with its words and its meaning."""
        head = {
            "configuration": vars(self.configuration),
            "tensors": [_tensor_data(one) for one in self.tensors],
            "uops": self.uops.tolist(),
            "instructions": len(self.words),
        }
        lines = [json.dumps(head)]
        names = [one.name for one in self.tensors]
        known: dict[tuple[int, int], str] = {}
        for pair, tensor in zip(map(tuple, self.words.tolist()), self.tensor_of.tolist(), strict=True):
            if pair not in known:
                known[pair] = instruction_text(disassemble(np.asarray([pair], np.uint64), self.configuration)[0])
            where = f"  {names[tensor]}" if tensor >= 0 else ""
            lines.append(f"{pair[0]:016x} {pair[1]:016x} {tensor:2}  {known[pair]}{where}")
        return "\n".join(lines) + "\n"


def operator_from_text(text: str) -> Operator:
    """The operator that `to_text` wrote. Raises ArgumentError for any other text."""
    try:
        first, *lines = text.splitlines()
        head = json.loads(first)
        if len(lines) != head["instructions"]:
            raise ValueError(f"it has {len(lines)} of {head['instructions']} instructions")
        rows = [line.split(maxsplit=3)[:3] for line in lines]
        words = np.asarray([(int(a, 16), int(b, 16)) for a, b, _ in rows], np.uint64).reshape(-1, 2)
        tensors = tuple(_tensor_from(data) for data in head["tensors"])
        tensor_of = np.asarray([int(tensor) for _, _, tensor in rows], np.int64)
        if not set(tensor_of.tolist()) <= {NO_TENSOR, *range(len(tensors))}:
            raise ValueError(f"its instructions use tensors that are not among its {len(tensors)}")
        configuration = Configuration(**head["configuration"])
        columns_of(words, configuration)  # refuses words that are not instructions
        return Operator(configuration, words, np.asarray(head["uops"], np.uint32), tensors, tensor_of)
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(f"asked to read an operator of VTA from {text!r:.80}: {error}; pass what Operator.to_text wrote") from error


def called_as(text: str, arguments: Sequence[Argument]) -> str:
    """The text of the operator with the shapes in which callers pass the arrays; the numbers and their order are the same."""
    first, _, rest = text.partition("\n")
    head = json.loads(first)
    tensors = []
    for tensor, argument in zip(map(_tensor_from, head["tensors"]), arguments, strict=True):
        grouped = argument.transform if isinstance(argument.transform, Grouped) else None
        given = () if argument.shape == tensor.layout.shape and grouped is None else argument.shape
        tensors.append(_tensor_data(replace(tensor, layout=replace(tensor.layout, given=given, grouped=grouped))))
    return json.dumps({**head, "tensors": tensors}) + "\n" + rest


def _tensor_data(tensor: OperatorTensor) -> list[object]:
    layout = tensor.layout
    data: list[object] = [tensor.name, tensor.role, tensor.dtype, layout.memory.name, layout.shape, layout.lanes, layout.blocks]
    more = [layout.given, layout.grouped and layout.grouped.to_data(), layout.repeats]
    return [*data, *more[: 3 if layout.repeats > 1 else 2 if layout.given else 0]]


def _tensor_from(data: list[Any]) -> OperatorTensor:
    rest: list[Any] = [(), None, 1]
    name, role, dtype, memory, shape, lanes, blocks, given, grouped, repeats = [*data, *rest[len(data) - 7 :]]
    layout = TensorLayout(Memory[memory], tuple(shape), tuple(lanes), tuple(blocks), tuple(given), Grouped(**grouped) if grouped else None, repeats)
    return OperatorTensor(name, role, dtype, layout)


def alignment(configuration: Configuration) -> int:
    """The alignment of tensors in bytes: the size of the largest element."""
    return max(configuration.element_bytes(memory) for memory in Memory)


def linked(operator: Operator, bases: Sequence[int], uop_base: int = 0, uop_address: int | None = None) -> Words:
    """The words of an operator whose tensors begin at these bytes of DRAM, and whose micro-ops are in UOP from `uop_base` on.

    uop_address: the byte of DRAM from which the micro-ops are loaded first; None if they are in UOP. Raises ArgumentError for addresses that are not aligned.
    """
    configuration, words = operator.configuration, operator.words.copy()
    opcodes = words[:, 0] & np.uint64(7)
    for number, (tensor, base) in enumerate(zip(operator.tensors, bases, strict=True)):
        for rows, size in _elements_of(operator, number, opcodes):
            if base % size:
                raise ArgumentError(f"asked to put {tensor.name} at byte {base}, which is not a multiple of the {size} bytes of its elements: use `alignment`")
            _add(words, rows, _field(configuration, Opcode.LOAD, "dram_base"), base // size)
    for opcode in (Opcode.GEMM, Opcode.ALU) if uop_base else ():
        for name in ("uop_bgn", "uop_end"):
            _add(words, opcodes == opcode, _field(configuration, opcode, name), uop_base)
    return words if uop_address is None else np.concatenate([_uop_loads(operator, uop_base, uop_address), words])


def barrier(configuration: Configuration) -> Words:
    """Instructions that make everything after them wait for everything before them, in all modules."""
    store, compute = Store(tokens=Tokens(push_prev=True)), Load(Memory.ACC, tokens=Tokens(pop_next=True, push_prev=True))
    return assemble([store, compute, Load(Memory.INP, tokens=Tokens(pop_next=True))], configuration)


def finish(configuration: Configuration) -> Words:
    """Instructions that end a program when all modules are done."""
    store, load = Store(tokens=Tokens(push_prev=True)), Load(Memory.INP, tokens=Tokens(push_next=True))
    return assemble([store, load, Finish(tokens=Tokens(pop_prev=True, pop_next=True))], configuration)


def _elements_of(operator: Operator, tensor: int, opcodes: NDArray[np.uint64]) -> list[tuple[NDArray[np.bool_], int]]:
    """The instructions that use a tensor, by the bytes of an element in which their `dram_base` counts."""
    used, configuration = operator.tensor_of == tensor, operator.configuration
    memory = _field(configuration, Opcode.LOAD, "memory")
    numbers = operator.words[:, 0] >> np.uint64(memory.low) & np.uint64(memory.mask)
    found = [(used & (opcodes == Opcode.LOAD) & (numbers == one), configuration.element_bytes(one)) for one in Memory]
    return [(rows, size) for rows, size in [*found, (used & (opcodes == Opcode.STORE), configuration.element_bytes(Memory.OUT))] if rows.any()]


def _field(configuration: Configuration, opcode: Opcode, name: str) -> Field:
    return next(field for field in instruction_fields(configuration, opcode) if field.name == name)


def _add(words: Words, rows: NDArray[np.bool_], field: Field, value: int) -> None:
    if not rows.any():
        return
    held = words[rows, field.word] >> np.uint64(field.low) & np.uint64(field.mask)
    if value and int(held.max()) + value > field.most:
        raise ArgumentError(f"asked to add {value} to {field.name} of a VTA instruction, which is {int(held.max())} and can be at most {field.most}")
    words[rows, field.word] += np.uint64(value << field.low)


def _uop_loads(operator: Operator, base: int, address: int) -> Words:
    found: list[Instruction] = []
    for start in range(0, len(operator.uops), _UOP_ROW):
        count = min(_UOP_ROW, len(operator.uops) - start)
        found.append(Load(Memory.UOP, base + start, address // 4 + start, Rows(1, count, count)))
    return assemble(found, operator.configuration)
