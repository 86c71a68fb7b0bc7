"""`tvm.autotvm.tuner`: the tuners."""

from ansor.autotvm import *  # noqa: F403
from ansor.autotvm.tuner import Tuner as Tuner
