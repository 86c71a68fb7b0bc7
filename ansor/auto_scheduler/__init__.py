"""TVM's auto-scheduler under the names its users know: those of `ansor.compat.auto_scheduler`."""

from ansor.compat.auto_scheduler import *  # noqa: F403  # all of its names
