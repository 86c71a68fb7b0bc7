"""`tvm.target`: what programs are made for."""

from ansor.compat.auto_scheduler.target_text import Kind as TargetKind  # noqa: F401
from ansor.compat.auto_scheduler.target_text import Target as Target
from ansor.compat.auto_scheduler.target_text import target_of as target_of
from ansor.compat.tvm.missing import of_target as __getattr__  # noqa: F401  # what is not here raises

create = Target
