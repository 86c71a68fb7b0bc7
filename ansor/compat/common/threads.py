"""Schedules that bind loops to GPU threads. Bindings are recorded for features; no program is built from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.compat.common.not_here import MissingNameError
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.manual.loop import AnyLoop
from ansor.manual.schedule import Schedule, Scheduled
from ansor.manual.scheduled_stage import ScheduledStage
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

TAGS = (*(f"{of}.{axis}" for of in ("blockIdx", "threadIdx") for axis in "xyz"), "vthread")


class BoundError(MissingNameError, ScheduleError):
    """A program was requested, but a loop is bound to GPU threads. Cure: use `s[C].parallel` and `s[C].vectorize` instead of `bind`."""


@dataclass(frozen=True, eq=False)
class ThreadAxis:
    """The threads along one axis of a grid: `tag`, such as `threadIdx.x`."""

    tag: str
    extent: int | None = None

    def __str__(self) -> str:
        return self.tag


def thread_axis(dom: int | Sequence[int] | str | None = None, tag: str = "", name: str = "") -> ThreadAxis:
    """`thread_axis("threadIdx.x")`, or `thread_axis((0, 32), "threadIdx.x")`. The name is ignored. Raises ScheduleError for a tag that TVM does not have."""
    tag, ends = (dom, None) if isinstance(dom, str) else (tag, dom)
    if tag not in TAGS:
        raise ScheduleError(f"asked for the threads {tag!r}; tags are {', '.join(TAGS)}")
    return ThreadAxis(tag, ends[1] - ends[0] if isinstance(ends, Sequence) else ends)


class BindingSchedule(Schedule):
    """A schedule whose loops can be bound. threads: (stage, loop) -> the tag of its thread axis."""

    def __init__(self, dag: Dag) -> None:
        super().__init__(dag)
        self.threads: dict[tuple[str, str], str] = {}

    def __getitem__(self, what: Scheduled) -> BindingStage:
        return BindingStage(self, super().__getitem__(what).name)

    def sketch(self, args: Sequence[Tensor] | None = None) -> Sketch:
        """The schedule's sketch. Raises BoundError if a loop is bound."""
        for (stage, loop), tag in self.threads.items():
            raise BoundError(
                f"asked for the program of a schedule whose loop {loop} of stage {stage} is bound to {tag}, which processors do not have; "
                "use s[C].parallel(outer) and s[C].vectorize(inner)"
            )
        return self.unbound_sketch(args)

    def unbound_sketch(self, args: Sequence[Tensor] | None = None) -> Sketch:
        """The sketch, ignoring bindings."""
        return super().sketch(args)


class BindingStage(ScheduledStage):
    """A stage whose loops can be bound."""

    _schedule: BindingSchedule

    def bind(self, ivar: AnyLoop, thread_ivar: object) -> None:  # type: ignore[override]  # the base class raises
        """Bind a loop to threads of a GPU. This is only recorded; no program can be built. Raises ScheduleError for anything but a `thread_axis`."""
        if not isinstance(thread_ivar, ThreadAxis):
            raise ScheduleError(f"asked to bind a loop of stage {self.name} to {thread_ivar!r}; give te.thread_axis('threadIdx.x')")
        self._schedule.threads[self.name, self.name_of(ivar, "bind")] = thread_ivar.tag
