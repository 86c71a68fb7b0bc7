"""`tvm.te`: our declaration language and manual schedules. Where TVM's behaviour differs from ours, this module follows TVM."""

from ansor.compat.common.threads import thread_axis as thread_axis
from ansor.compat.tvm.language import ComputeOp as ComputeOp
from ansor.compat.tvm.language import PlaceholderOp as PlaceholderOp
from ansor.compat.tvm.language import size_var as size_var
from ansor.compat.tvm.language import var as var
from ansor.compat.tvm.missing import of_te as __getattr__  # noqa: F401  # missing names raise
from ansor.manual.schedule import Schedule as Schedule
from ansor.manual.scheduled_stage import ScheduledStage
from ansor.te import *  # noqa: F403  # all names; those below replace some of them
from ansor.te import tensor as tensor
from ansor.te.scalar import round_half_away as round  # noqa: F401  # TVM's, as in the C library
from ansor.te.tensor import TensorSlice as TensorSlice

from ansor.compat.tvm.language import compute as compute  # type: ignore[assignment]  # isort: skip  # has fewer options
from ansor.compat.tvm.language import create_schedule as create_schedule  # isort: skip
from ansor.compat.tvm.language import max_value as max_value  # isort: skip
from ansor.compat.tvm.language import min_value as min_value  # isort: skip

Stage = ScheduledStage
