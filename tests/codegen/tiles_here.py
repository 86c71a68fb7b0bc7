"""Whether this machine can run instructions on matrix registers, or only the plain C in their place."""

from pathlib import Path

import pytest

from ansor.targets.cpu import TILES, _cpu_flags, features_of, tiles_allowed

PLAIN = ("-U__AMX_TILE__",)
"""Flags to build the plain C."""

REFUSED = pytest.mark.skipif(
    bool(features_of(_cpu_flags(Path("/proc/cpuinfo"))) & TILES) and not tiles_allowed(), reason="this system refuses the registers that the processor has"
)
