"""Plain loops, one element at a time: the form that fits every nest.

    for i in 4:  for k in 8:  y[i] += x[i, k]      ->      for (long i = 0; ...) for (long k = 0; ...) y[i] = ((k == 0) ? 0 : y[i]) + x[...];
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.emitter import Emitter
from ansor.codegen.patterns.base import Nest, Pattern
from ansor.codegen.tree import Code
from ansor.ir.loops import For, Store


@dataclass(frozen=True, eq=False)
class PlainLoops:
    """A statement inside loops."""

    around: tuple[For, ...]
    store: Store

    def __str__(self) -> str:
        return f"{self.store.buffer.name}: element by element"

    def code(self, emit: Emitter) -> list[Code]:
        return emit.store(self.store)


def _match(nest: Nest) -> PlainLoops:
    return PlainLoops(nest.loops, nest.store)


PLAIN_LOOPS = Pattern("plain loops", _match)
