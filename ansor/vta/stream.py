"""Collects instructions in program order, each with the memory that it uses, and derives their tokens.

Two instructions of different modules have to be ordered if they use the same memory and one of them writes it. A token orders two instructions of neighbouring
modules: load and compute, or compute and store. The k-th pop of a stream takes its k-th push, so tokens of a stream never cross. Waiting for an instruction
includes waiting for all earlier ones of its module, so a token is needed only if the last one of the stream was for an earlier instruction.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from ansor.errors import ScheduleError
from ansor.vta.instructions import Instruction, Module, Tokens, module_of

_FLAGS = {
    (Module.LOAD, Module.COMPUTE): ("push_next", "pop_prev"), (Module.COMPUTE, Module.LOAD): ("push_prev", "pop_next"),
    (Module.COMPUTE, Module.STORE): ("push_next", "pop_prev"), (Module.STORE, Module.COMPUTE): ("push_prev", "pop_next"),
}  # fmt: skip


@dataclass
class _Use:
    """For a piece of memory: the last instruction that wrote it, and the last of each module that has read it since."""

    writer: int | None = None
    readers: dict[Module, int] = field(default_factory=dict)


class Stream:
    """Collects instructions as they are added."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._uses: dict[Hashable, _Use] = {}
        self._flags: list[dict[str, bool]] = []
        self._reached: dict[tuple[Module, Module], int] = {}

    def add(self, instruction: Instruction, reads: Sequence[Hashable] = (), writes: Sequence[Hashable] = ()) -> None:
        """Add the next instruction, without tokens. reads, writes: keys of the memory that it uses."""
        number, module = len(self.instructions), module_of(instruction)
        self.instructions.append(instruction)
        self._flags.append({})
        for thing in reads:
            use = self._uses.setdefault(thing, _Use())
            self._after(module, use.writer)
        for thing in writes:
            use = self._uses.setdefault(thing, _Use())
            for before in (use.writer, *use.readers.values()):
                self._after(module, before)
        for thing in reads:
            self._uses[thing].readers[module] = number
        for thing in writes:
            self._uses[thing] = _Use(number)

    def with_tokens(self) -> list[Instruction]:
        """All instructions, with their tokens."""
        return [replace(one, tokens=Tokens(**flags)) if flags else one for one, flags in zip(self.instructions, self._flags, strict=True)]

    def _after(self, module: Module, before: int | None) -> None:
        """Make the last instruction wait for number `before`."""
        if before is None:
            return
        other = module_of(self.instructions[before])
        if other == module or before <= self._reached.get((other, module), -1):
            return
        if (other, module) not in _FLAGS:
            raise ScheduleError("asked for a VTA program in which load and store use the same memory; no queue connects them: keep results apart from operands")
        push, pop = _FLAGS[other, module]
        if pop in self._flags[-1]:  # one pop takes one token: the later one is enough, so the earlier push is removed
            del self._flags[self._reached[other, module]][push]
        self._flags[before][push] = self._flags[-1][pop] = True
        self._reached[other, module] = before
