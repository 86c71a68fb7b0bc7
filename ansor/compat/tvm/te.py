"""`tvm.te`: our declaration language, and schedules by hand."""

from ansor.compat.tvm.missing import of_te as __getattr__  # noqa: F401  # what is not here raises
from ansor.manual.schedule import Schedule as Schedule
from ansor.manual.schedule import create_schedule as create_schedule
from ansor.manual.scheduled_stage import ScheduledStage
from ansor.te import *  # noqa: F403  # all of its names

Stage = ScheduledStage
