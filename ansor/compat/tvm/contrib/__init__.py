"""`tvm.contrib`: helpers that scripts use besides tuning."""

from ansor.compat.tvm.contrib import cc as cc
from ansor.compat.tvm.contrib import nvcc as nvcc
from ansor.compat.tvm.contrib import pickle_memoize as pickle_memoize
from ansor.compat.tvm.contrib import utils as utils
from ansor.compat.tvm.missing import of_contrib as __getattr__  # noqa: F401  # missing names raise
