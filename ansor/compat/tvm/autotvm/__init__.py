"""`tvm.autotvm`: ours."""

from ansor.autotvm import *  # noqa: F403  # all of its names
from ansor.compat.tvm.autotvm.tuner import Tuner as Tuner  # whose module is `autotvm.tuner` from now on
from ansor.compat.tvm.missing import of_autotvm as __getattr__  # noqa: F401  # what is not here raises
