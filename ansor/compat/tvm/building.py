"""`tvm.lower` and `tvm.build`, for schedules written by hand or found by a search."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.auto_scheduler.target_text import target_of
from ansor.compat.common.local_target import function_target
from ansor.compat.tvm.function import Function
from ansor.compat.tvm.lowered import Lowered, Scheduled, with_outputs
from ansor.compat.tvm.sized_function import SizedFunction
from ansor.errors import ScheduleError
from ansor.manual import program
from ansor.manual.schedule import Schedule
from ansor.schedule.sized import open_sizes
from ansor.schedule.sketch import Sketch
from ansor.te.expr import Expr
from ansor.te.size import Size
from ansor.te.tensor import Read, Tensor

Argument = Tensor | Expr | Size | int
"""An array, a scalar (a `te.var` of a float), or a size."""


def lower(inp: Scheduled, args: Sequence[Argument], name: str = "main", binds: object = None, simple_mode: bool = False) -> Lowered:
    """The loops of a schedule; `str` prints them. If `args` has no result, all results become arguments as well.

    Raises ScheduleError if a step does not fit the others.
    """
    _check(inp, "lower")
    if binds is not None:
        raise ScheduleError("asked to lower with binds; the declaration determines the layout of buffers: omit binds")
    whole = with_outputs(inp, tuple(_tensors(args)))
    return Lowered.of(program.lower(inp, whole, simple_mode=simple_mode or isinstance(inp, Sketch), name=name), inp, whole)


def build(
    inputs: Scheduled | Lowered, args: Sequence[Argument] | None = None, target: str | None = None, target_host: str | None = None,
    name: str = "default_function",
) -> Function:  # fmt: skip
    """A function of `args`, inputs and outputs in order (for a result of `lower`, its own), for `target`: by default that of the
    enclosing `with tvm.target.Target(...)`, or `llvm`.

    A plain number among the arguments (a size) remains an argument of the function: calls must pass that number.

    Raises ScheduleError for a schedule that cannot run, TargetError for another machine, ToolchainError with the compiler's output.
    """
    if isinstance(inputs, Lowered):
        assert inputs.scheduled is not None
        return build(inputs.scheduled, inputs.args, target, target_host, name)
    _check(inputs, "build")
    local = function_target(target_of(target))
    tensors = None if args is None else _tensors(args)
    numbers = {place: one for place, one in enumerate(args or ()) if isinstance(one, int)}

    def made(sketch: Sketch) -> Function:
        return Function(program.build(sketch, None, local, name=name), local.mcpu)

    if isinstance(inputs, Schedule) and open_sizes(inputs.dag.stages):
        return SizedFunction(inputs.sketch(tensors), inputs.guards, args or inputs.dag.tensors, name, made)  # type: ignore[return-value]  # same interface
    return Function(program.build(inputs, tensors, local, name=name), local.mcpu, numbers)


def _tensors(args: Sequence[object]) -> list[Tensor]:
    """The arguments that are arrays, including scalars; the others are sizes."""
    return [one.tensor if isinstance(one, Read) else one for one in args if not isinstance(one, int | Size)]  # type: ignore[misc]  # callers refuse others


def _check(sch: object, verb: str) -> None:
    if not isinstance(sch, Schedule | Sketch):
        raise ScheduleError(f"asked to {verb} a {type(sch).__name__}; give the schedule and its arguments: tvm.{verb}(s, [A, B, C])")
