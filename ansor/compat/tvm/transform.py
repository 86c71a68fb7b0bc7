"""`tvm.transform`: a `PassContext` can be entered, and changes nothing: there are no passes to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NoReturn, Self

from ansor.compat.tvm.missing import missing
from ansor.errors import ArgumentError


class PassContext:
    """Around `tvm.build`. Raises ArgumentError for a `config`: what it would change is decided by the search, or by a schedule."""

    def __init__(
        self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[object] | None = None, config: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        if config:
            raise ArgumentError(f"asked for a PassContext with config={dict(config)}; there are no passes to set: leave it out")
        self.opt_level = opt_level

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing."""


def __getattr__(name: str) -> NoReturn:
    """What is not here raises."""
    raise missing("tvm.transform", name)
