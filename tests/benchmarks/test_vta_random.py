"""A slice of the random programs: all kinds, on other cores, too."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.targets.base import parse_target
from ansor.targets.vta import configuration_of
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.simulators import CycleDriver
from benchmarks.vta_random import KINDS, Found, check
from tests.opencl import need_opencl

pytestmark = pytest.mark.compiler


@pytest.mark.parametrize("core", ["default", "32", "64"])
def test_everything_that_runs_programs_gives_the_bytes_of_numpy(core: str) -> None:
    need_opencl()
    rng, target, found = np.random.default_rng(0), parse_target(f"vta -core={core}"), Found()
    drivers: dict[str, Driver] = {"cycles": CycleDriver(configuration_of(target), 1 << 24), "opencl": OpenclDriver(configuration_of(target), 1 << 24)}
    for draw, _ in KINDS.values():
        for _ in range(3):
            check(draw(rng), target, 2, drivers, rng, found)
    assert found.said == [] and found.close == 0 and found.sampled >= 25
    assert found.valid == found.sampled and found.right == {"cycles": found.sampled, "opencl": found.sampled}
