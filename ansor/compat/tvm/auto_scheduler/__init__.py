"""`tvm.auto_scheduler`: the names of `ansor.compat.auto_scheduler`. `ansor.compat.tvm.modules` adds its modules."""

from ansor.compat.auto_scheduler import *  # noqa: F403  # all of its names
from ansor.compat.tvm.auto_scheduler import _ffi_api as _ffi_api
from ansor.compat.tvm.auto_scheduler import utils as utils
from ansor.compat.tvm.missing import of_auto_scheduler as __getattr__  # noqa: F401  # missing names raise
