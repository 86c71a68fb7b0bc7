"""AutoTVM's tuners: the names of `ansor.compat.autotvm.tuner`."""

from ansor.compat.autotvm.tuner import *  # noqa: F403  # all of its names
