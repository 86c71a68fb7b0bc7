"""Passes take a program from one form to the next: a tuple of named functions that can be run, printed and shown one by one.

Lowering (`ansor.schedule.lower`) and code generation (`ansor.codegen.generate`) are such tuples. Each works on one frozen value with a field for the
result of every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


@dataclass(frozen=True)
class Pass(Generic[P]):
    """One pass. `apply` returns the program with what the pass adds; `shown` gives that as text; `does` describes the pass in a few words."""

    name: str
    does: str
    apply: Callable[[P], P]
    shown: Callable[[P], str]

    def __str__(self) -> str:
        return f"{self.name:10s} {self.does}"


def run(passes: Sequence[Pass[P]], program: P) -> P:
    """The program after all passes."""
    for one in passes:
        program = one.apply(program)
    return program


def traced(passes: Sequence[Pass[P]], program: P) -> Iterator[tuple[Pass[P], P]]:
    """Each pass, with the program after it."""
    for one in passes:
        program = one.apply(program)
        yield one, program


class PassText(NamedTuple):
    """What a pass adds to a program, for people."""

    name: str
    does: str
    text: str

    def __str__(self) -> str:
        return f"-- {self.name}: {self.does}\n{self.text}"


def shown(passes: Sequence[Pass[P]], program: P) -> Iterator[PassText]:
    """The program after each pass."""
    for one, after in traced(passes, program):
        yield PassText(one.name, one.does, one.shown(after))
