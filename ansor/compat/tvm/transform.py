"""`tvm.transform`: a `PassContext` has no effect, since there are no passes to configure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NoReturn, Self

from ansor.compat.tvm.missing import missing
from ansor.errors import ArgumentError


class PassContext:
    """A context for `tvm.build`. Raises ArgumentError for a `config`: the search, or a schedule, decides what it would set."""

    def __init__(
        self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[object] | None = None, config: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        if config:
            raise ArgumentError(f"asked for a PassContext with config={dict(config)}; there are no passes to configure: leave it out")
        self.opt_level = opt_level

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Do nothing."""


def __getattr__(name: str) -> NoReturn:
    """Raises AttributeError for missing names."""
    raise missing("tvm.transform", name)
