"""`tvm.te`: our declaration language, and schedules by hand. What TVM means otherwise is as TVM has it here."""

from ansor.compat.tvm.missing import of_te as __getattr__  # noqa: F401  # what is not here raises
from ansor.manual.schedule import Schedule as Schedule
from ansor.manual.schedule import create_schedule as create_schedule
from ansor.manual.scheduled_stage import ScheduledStage
from ansor.te import *  # noqa: F403  # all of its names
from ansor.te.scalar import nearbyint as nearbyint
from ansor.te.scalar import round_half_away as round  # noqa: F401  # TVM's, of the C library

Stage = ScheduledStage
