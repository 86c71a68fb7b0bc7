"""Turns the schedule of a state into printable loops or a kernel, like `tvm.lower` and `tvm.build`."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.common.local_target import local_target
from ansor.ir.loops import Loops
from ansor.manual import program
from ansor.measure.kernel import Kernel
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target
from ansor.te.tensor import Tensor


def lower(sch: Sketch, args: Sequence[Tensor] | None = None, name: str = "main") -> Loops:
    """The loops of a schedule; `str` prints them. Raises ScheduleError for `args` that are not its tensors, and for open lengths."""
    return program.lower(sch, args, name=name)


def build(sch: Sketch, args: Sequence[Tensor] | None = None, target: str | Target = "llvm", name: str = "main") -> Kernel:
    """A kernel: call it with NumPy arrays or torch tensors for the inputs, in the order of the declaration.

    Raises ScheduleError for a schedule that cannot run, ToolchainError with the compiler's output.
    """
    return program.build(sch, args, target if isinstance(target, Target) else local_target(target), name=name)
