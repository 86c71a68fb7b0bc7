"""Names that TVM 0.9 keeps only to report that they were removed."""

from __future__ import annotations

from typing import NoReturn

from ansor.errors import ScheduleError


def create_task(*args: object, **kwargs: object) -> NoReturn:
    """Removed. Raises a ScheduleError that names the replacement."""
    raise ScheduleError("asked for auto_scheduler.create_task, which TVM removed: use auto_scheduler.SearchTask(func=..., args=..., target=...)")


def auto_schedule(*args: object, **kwargs: object) -> NoReturn:
    """Removed. Raises a ScheduleError that names the replacement."""
    raise ScheduleError("asked for auto_scheduler.auto_schedule, which TVM removed: use task.tune(options) and task.apply_best(log), or ansor.auto_schedule")
