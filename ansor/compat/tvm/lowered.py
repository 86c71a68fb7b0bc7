"""The result of `tvm.lower`: loops that can be printed and built."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from ansor.ir.loops import Loops
from ansor.manual.schedule import Schedule
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

Scheduled = Schedule | Sketch
"""A result of `te.create_schedule` or of `task.apply_best`."""


@dataclass(frozen=True)
class Lowered(Loops):
    """The loops of a schedule; `str` prints them. It is also the module: `lowered["main"]` returns itself, whatever the function's name."""

    scheduled: Scheduled | None = None
    args: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, loops: Loops, scheduled: Scheduled, args: tuple[Tensor, ...]) -> Self:
        """Loops, with the schedule and arguments that they come from."""
        return cls(**{one.name: getattr(loops, one.name) for one in fields(Loops)}, scheduled=scheduled, args=args)

    def __getitem__(self, name: str) -> Self:
        """The function of that name. Raises AttributeError for any name but its own and `main`."""
        if name not in (self.name, "main"):
            raise AttributeError(f"asked for the function {name!r} of a module that holds {self.name!r}")
        return self

    def script(self, *args: object, **kwargs: object) -> str:
        """The loops as text, not as TVM's script."""
        return str(self)

    astext = script


def with_outputs(scheduled: Scheduled, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The arguments; if none of them is a result, followed by all results, which TVM keeps internal."""
    return args if any(not one.is_placeholder for one in args) else (*args, *scheduled.dag.outputs)
