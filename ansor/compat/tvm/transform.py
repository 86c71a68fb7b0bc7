"""`tvm.transform`: a `PassContext` has no effect, since there are no passes to configure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from ansor.compat.tvm.missing import of_transform as __getattr__  # noqa: F401  # missing names raise
from ansor.errors import ArgumentError


class PassContext(nullcontext["PassContext"]):
    """A context for `tvm.build`. Raises ArgumentError for a `config`: the search or the schedule makes those decisions."""

    def __init__(
        self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[object] | None = None, config: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        if config:
            raise ArgumentError(f"asked for a PassContext with config={dict(config)}; there are no passes to configure: leave it out")
        super().__init__(self)
        self.opt_level = opt_level
