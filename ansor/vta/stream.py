"""Instructions in program order, each with what it uses, from which the tokens are derived.

Two instructions of different modules that use the same thing, one of them writing it, have to be ordered. Load and compute are neighbours, as are compute and
store, and a token orders instructions of neighbours. The k-th pop of a stream takes its k-th push, so tokens of a stream never cross; an instruction that waits
for a later one of a module waits for all before it, so a token is needed only if the last one was for an earlier instruction.
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
    """The last instruction that wrote a thing, and those that have read it since, by module."""

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
        """Add the next instruction, without tokens."""
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
        if pop in self._flags[-1]:  # one pop takes one token: the later one is enough, so the earlier push is taken back
            del self._flags[self._reached[other, module]][push]
        self._flags[before][push] = self._flags[-1][pop] = True
        self._reached[other, module] = before
