"""Names that TVM 0.9 keeps only to say that they were removed."""

from __future__ import annotations

from typing import NoReturn

from ansor.errors import ScheduleError


def create_task(*args: object, **kwargs: object) -> NoReturn:
    """Gone. Raises ScheduleError that tells what to use."""
    raise ScheduleError("asked for auto_scheduler.create_task, which is gone: use auto_scheduler.SearchTask(func=..., args=..., target=...)")


def auto_schedule(*args: object, **kwargs: object) -> NoReturn:
    """Gone. Raises ScheduleError that tells what to use."""
    raise ScheduleError("asked for auto_scheduler.auto_schedule, which is gone: use task.tune(options) and task.apply_best(log), or ansor.auto_schedule")
