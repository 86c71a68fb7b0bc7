"""The interface of patterns, which write a perfect nest better than as plain loops.

A pattern matches a nest and returns a form, or None if it does not apply; `ansor.codegen.generate` tries its tuple of patterns in order. A form is a
frozen value: the loops that stay around it, and its analysis. It prints itself in one line, and writes itself as C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ansor.codegen.emitter import Emitter
from ansor.codegen.tree import Code
from ansor.ir.loops import Access, For, Store
from ansor.te.dtypes import BYTES
from ansor.te.expr import computed
from ansor.te.fold import walk


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops around a single store.

    vector_bytes: of the machine's vectors. sums: the place of what an intrinsic's offset adds, if computed ahead. enclosing: the loops around the nest.
    """

    loops: tuple[For, ...]
    store: Store
    vector_bytes: int
    sums: Access | None = None
    enclosing: tuple[For, ...] = ()

    @property
    def widest(self) -> int:
        """Lanes of the widest vector that fits every value of the statement."""
        return widest(self.store, self.vector_bytes)


class Form(Protocol):
    """How a nest is written."""

    @property
    def around(self) -> tuple[For, ...]:
        """The loops left unchanged, outermost first."""

    def __str__(self) -> str:
        """In one line."""

    def code(self, emit: Emitter) -> list[Code]:
        """The C inside the loops around."""


@dataclass(frozen=True)
class Pattern:
    """A way to write nests."""

    name: str
    match: Callable[[Nest], Form | None]

    def __str__(self) -> str:
        return self.name


def widest(store: Store, vector_bytes: int) -> int:
    """Lanes of the widest vector that fits every value of the statement."""
    dtypes = [store.buffer.dtype, *(node.dtype for node in walk(store.value) if isinstance(node, Access))]
    return max(1, vector_bytes // max(BYTES[computed(dtype)] for dtype in dtypes))


def names(loops: Sequence[For]) -> str:
    """Names of loops, for display."""
    return ", ".join(loop.var.name for loop in loops)
