"""`tvm.autotvm.tuner`: the tuners."""

from ansor.autotvm import *  # noqa: F403  # all of its names
from ansor.autotvm.tuner import Tuner as Tuner
