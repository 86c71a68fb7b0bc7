"""What generated code depends on besides the program."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.dialect import Dialect


@dataclass(frozen=True)
class Machine:
    """Width of a vector in bytes, number of threads, how C for the machine is written, and how much a workspace may hold (0: no limit)."""

    vector_bytes: int = 32
    threads: int = 1
    dialect: Dialect = Dialect()
    workspace_bytes: int = 0

    @property
    def parallel(self) -> bool:
        """Whether loops are shared out among threads."""
        return self.threads > 1 and self.dialect.pool
