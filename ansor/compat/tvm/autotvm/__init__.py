"""`tvm.autotvm`: the names of `ansor.compat.autotvm`. `ansor.compat.tvm.modules` adds its modules."""

from ansor.compat.autotvm import *  # noqa: F403  # all of its names
from ansor.compat.autotvm.base_tuner import Tuner as Tuner
from ansor.compat.tvm.autotvm import env as env
from ansor.compat.tvm.autotvm import utils as utils
from ansor.compat.tvm.autotvm.env import GLOBAL_SCOPE as GLOBAL_SCOPE
from ansor.compat.tvm.missing import of_autotvm as __getattr__  # noqa: F401  # missing names raise
