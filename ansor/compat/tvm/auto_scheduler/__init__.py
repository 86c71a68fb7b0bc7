"""`tvm.auto_scheduler`: ours. `ansor.compat.tvm.modules` adds the names of its modules."""

from ansor.compat.auto_scheduler import *  # noqa: F403  # all of its names
from ansor.compat.tvm.auto_scheduler import _ffi_api as _ffi_api
from ansor.compat.tvm.auto_scheduler import utils as utils
from ansor.compat.tvm.missing import of_auto_scheduler as __getattr__  # noqa: F401  # missing names raise
