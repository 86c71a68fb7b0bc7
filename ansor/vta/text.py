"""Prints VTA programs as readable text."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.vta.instructions import Alu, Finish, Gemm, Instruction, Load, Padding, Store, module_of
from ansor.vta.layout import FLAGS


def listing(program: Sequence[Instruction]) -> str:
    """A line for each instruction, with its number and the module that runs it."""
    return "\n".join(f"{number:5} {module_of(one).name.lower():7} {instruction_text(one)}" for number, one in enumerate(program))


def instruction_text(instruction: Instruction) -> str:
    """One instruction as one line. Fields with no effect are left out."""
    flags = [name for name in FLAGS if getattr(instruction.tokens, name)]
    return " ".join([*_words(instruction), *flags])


def _words(instruction: Instruction) -> list[str]:
    if isinstance(instruction, Finish):
        return ["FINISH"]
    if isinstance(instruction, (Load, Store)):
        return _region(instruction)
    if isinstance(instruction, Gemm):
        return ["GEMM", *(["reset"] if instruction.reset else []), *_loops(instruction, ("dst", "src", "wgt"))]
    operand = "ACC[src]" if instruction.immediate is None else str(instruction.immediate)
    return ["ALU", instruction.operation.name, operand, *_loops(instruction, ("dst", "src"))]


def _region(instruction: Load | Store) -> list[str]:
    memory, arrow = (instruction.memory.name, "<-") if isinstance(instruction, Load) else ("OUT", "->")
    name = "LOAD" if isinstance(instruction, Load) else "STORE"
    rows = instruction.rows
    if not rows.count:
        return [name, memory, "nothing"]
    place = f"{memory}[{instruction.sram_base}] {arrow} DRAM[{instruction.dram_base}]"
    words = [name, place, f"{rows.y_size}x{rows.x_size}", f"stride={rows.x_stride}"]
    if isinstance(instruction, Load) and instruction.padding != Padding():
        pad = instruction.padding
        words.append(f"pad_y={pad.y_0},{pad.y_1} pad_x={pad.x_0},{pad.x_1}")
    return words


def _loops(instruction: Gemm | Alu, operands: Sequence[str]) -> list[str]:
    words = [f"uops={instruction.uops.begin}..{instruction.uops.end}"]
    for side, loop in (("out", instruction.outer), ("in", instruction.inner)):
        if loop.iterations != 1:
            steps = ",".join(f"{name}+{getattr(loop, name)}" for name in operands)
            words.append(f"{side}={loop.iterations}({steps})")
    return words
