"""Targets. Those that come with the package are known once anything of it is imported; other packages offer theirs by entry points."""

from ansor.targets import arm as arm
from ansor.targets import cpu as cpu
from ansor.targets import micro as micro
from ansor.targets import vta as vta
