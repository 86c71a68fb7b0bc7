"""`tvm.topi`: our operator library."""

from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # what is not here raises
from ansor.compat.tvm.topi import generic as generic
from ansor.compat.tvm.topi import nn as nn
from ansor.compat.tvm.topi import utils as utils
from ansor.te.nn import *  # noqa: F403  # all of its names
