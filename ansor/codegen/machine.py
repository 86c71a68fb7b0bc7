"""What generated code depends on besides the program."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.dialect import Dialect


@dataclass(frozen=True)
class Machine:
    """The width of a vector in bytes, the number of threads, the dialect of C, and the limit of a workspace (0: none)."""

    vector_bytes: int = 32
    threads: int = 1
    dialect: Dialect = Dialect()
    workspace_bytes: int = 0

    @property
    def parallel(self) -> bool:
        """Whether loops are distributed over threads."""
        return self.threads > 1 and self.dialect.pool
