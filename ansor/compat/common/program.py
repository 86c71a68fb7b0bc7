"""From the schedule of a state to loops that can be read, and to a kernel that runs: what `tvm.lower` and `tvm.build` are for TVM's users."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.codegen.source import CSource
from ansor.compat.common.local_target import local_target
from ansor.errors import ScheduleError
from ansor.ir.dag import c_identifier
from ansor.ir.loops import Loops
from ansor.ir.simplify import simplified
from ansor.measure.kernel import Kernel, build_kernels
from ansor.schedule.memory import check_memories
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target
from ansor.te.tensor import Tensor


def lower(sch: Sketch, args: Sequence[Tensor] | None = None, name: str = "main") -> Loops:
    """The loops of a schedule; `str` shows them. Raises ScheduleError for `args` that are not its tensors, and for open lengths."""
    _check_arguments(sch, args)
    if sch.choices:
        raise ScheduleError(f"asked to lower a schedule with open lengths ({', '.join(choice.name for choice in sch.choices)}); fill them first")
    return simplified(sch.lower_row((), c_identifier(name)))


def build(sch: Sketch, args: Sequence[Tensor] | None = None, target: str | Target = "llvm", name: str = "main") -> Kernel:
    """A kernel: call it with NumPy arrays or torch tensors for the inputs, in the order of the declaration.

    Raises ScheduleError for a schedule that cannot run, ToolchainError with the compiler's text.
    """
    _check_arguments(sch, args)
    local = target if isinstance(target, Target) else local_target(target)
    (kernel,) = build_kernels([source_of(sch, local, name)], local.toolchain())
    kernel.schedule = str(lower(sch, name=name))
    return kernel


def source_of(sch: Sketch, target: Target, name: str = "main") -> CSource:
    """The C text of a schedule. Raises ScheduleError for one that does not fit the target's memories."""
    loops, entry = sch.lower_row((), c_identifier(name)), c_identifier(name)
    check_memories(loops, target)
    return target.emit(loops, entry)


def _check_arguments(sch: Sketch, args: Sequence[Tensor] | None) -> None:
    if args is None:
        return
    given, known = [(one.shape, one.dtype) for one in args], [(one.shape, one.dtype) for one in sch.dag.tensors]
    if given != known:
        raise ScheduleError(f"asked for a program of {[one.name for one in args]}, but the schedule is of {[one.name for one in sch.dag.tensors]}; pass those")
