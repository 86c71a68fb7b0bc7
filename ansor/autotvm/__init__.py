"""AutoTVM under the names its users know: those of `ansor.compat.autotvm`."""

from ansor.compat.autotvm import *  # noqa: F403  # all of its names
