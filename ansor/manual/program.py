"""Turns a schedule, written by hand or found by a search, into readable loops and a callable kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.codegen.source import CSource
from ansor.errors import ArgumentError, MeasureError, ScheduleError
from ansor.ir.dag import c_identifier
from ansor.ir.loops import Loops
from ansor.ir.simplify import simplified
from ansor.manual.schedule import Schedule
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measurer import Candidate, Measurer
from ansor.measure.reference import index_ranges, measure_task
from ansor.measure.timing import TimingOptions
from ansor.schedule.memory import check_memories
from ansor.schedule.sketch import Sketch
from ansor.support.names import known_names
from ansor.targets.base import Target, parse_target
from ansor.te.tensor import Tensor

ONCE = TimingOptions(repeat=1, min_repeat_ms=0.0)
"""Timing for a kernel that is only verified."""


@known_names()
def lower(s: Schedule | Sketch, args: Sequence[Tensor] | None = None, *, simple_mode: bool = True, name: str = "kernel") -> Loops:
    """The loops of a schedule; `str` shows them. `args`: a kernel's arguments, inputs and outputs in order; by default inputs in order of reading.

    simple_mode: omit loops of one iteration and tests that always hold. Raises ScheduleError for a step that does not fit the others, open lengths, or
    arguments that a sketch does not have.
    """
    loops = _closed(s, args).lower_row((), c_identifier(name))
    return simplified(loops) if simple_mode else loops


@known_names()
def build(
    s: Schedule | Sketch, args: Sequence[Tensor] | None = None, target: str | Target = "cpu", *, name: str = "kernel", verify: bool = False
) -> Kernel:  # fmt: skip
    """A kernel: call it with the inputs, NumPy arrays or torch tensors, to get the outputs.

    args: its arguments, inputs and outputs in order; by default inputs in order of reading. verify: run it on random inputs in a separate process, and
    compare with the declaration in double precision, as a search does with every candidate.

    Raises ScheduleError if the schedule does not fit or needs more stack than the target has, ToolchainError if it does not build, and MeasureError
    if verification fails.
    """
    machine, sketch = parse_target(target), _closed(s, args)
    source = source_of(sketch, machine, name)
    if verify:
        _verify(sketch, source, machine)
    (kernel,) = build_kernels([source], machine.toolchain())
    kernel.schedule = str(lower(sketch, name=name))
    kernel.mcpu, kernel.ranges = machine.mcpu or "native", index_ranges(sketch.dag)
    return kernel


def source_of(sketch: Sketch, target: Target, name: str = "main") -> CSource:
    """The C text of a sketch without open lengths. Raises ScheduleError if it does not fit the target's memories."""
    loops, entry = sketch.lower_row((), c_identifier(name)), c_identifier(name)
    check_memories(loops, target)
    return target.emit(loops, entry)


def _closed(s: Schedule | Sketch, args: Sequence[Tensor] | None) -> Sketch:
    if not isinstance(s, Schedule | Sketch):
        raise ArgumentError(f"asked to lower {s!r:.80}, which is a {type(s).__name__}; give a schedule from ansor.create_schedule(...)")
    sketch = s.sketch(args) if isinstance(s, Schedule) else _with_arguments(s, args)
    if sketch.choices:
        names = ", ".join(choice.name for choice in sketch.choices)
        raise ScheduleError(f"asked for the loops of a schedule with open lengths ({names}); fill them first")
    return sketch


def _with_arguments(sketch: Sketch, args: Sequence[Tensor] | None) -> Sketch:
    known = sketch.dag.tensors
    if args is not None and [(one.shape, one.dtype) for one in args] != [(one.shape, one.dtype) for one in known]:
        raise ScheduleError(
            f"asked for a program with the arguments {[one.name for one in args]}, but the schedule has {[one.name for one in known]}; pass those"
        )
    return sketch


def _verify(sketch: Sketch, source: CSource, target: Target) -> None:
    with Measurer(target, timing=ONCE) as measurer:
        (found,) = measurer.measure([Candidate(measure_task(sketch.dag, target), source)])
    check_trouble(found.failure)
    if found.failure is not None:
        raise MeasureError(f"kernel {source.entry!r} does not match its declaration: {found.failure}")
