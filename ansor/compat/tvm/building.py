"""`tvm.lower` and `tvm.build`, of schedules by hand and of those that a search found."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.auto_scheduler import program as searched
from ansor.auto_scheduler.local_target import local_target
from ansor.auto_scheduler.target_text import target_of
from ansor.compat.tvm.function import Function
from ansor.errors import ScheduleError
from ansor.ir.loops import Loops
from ansor.manual import program as manual
from ansor.manual.schedule import Schedule
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

Scheduled = Schedule | Sketch
"""What `te.create_schedule` gives, and what `task.apply_best` gives."""


def lower(sch: Scheduled, args: Sequence[Tensor], name: str = "main", simple_mode: bool = False) -> Loops:
    """The loops of a schedule; `str` of them is text. Raises ScheduleError for a step that does not fit the others."""
    _check(sch, "lower")
    if isinstance(sch, Sketch):
        return searched.lower(sch, args, name)
    return manual.lower(sch, args, simple_mode=simple_mode, name=name)


def build(
    inputs: Scheduled, args: Sequence[Tensor] | None = None, target: str | None = None, target_host: str | None = None, name: str = "default_function"
) -> Function:
    """A function of `args`, inputs and outputs in order, for `target`: by default that of the `with tvm.target.Target(...)` around, or `llvm`.

    Raises ScheduleError for a schedule that cannot run, ToolchainError with the compiler's text.
    """
    _check(inputs, "build")
    local = local_target(target_of(target))
    if isinstance(inputs, Sketch):
        return Function(searched.build(inputs, args, local, name), local.mcpu)
    return Function(manual.build(inputs, args, local, name=name), local.mcpu)


def _check(sch: object, verb: str) -> None:
    if not isinstance(sch, Schedule | Sketch):
        raise ScheduleError(f"asked to {verb} a {type(sch).__name__}; give the schedule and its arguments: tvm.{verb}(s, [A, B, C])")
