"""The core in OpenCL C against the functional simulator."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ansor.errors import DeviceError
from ansor.vta.assembler import assemble
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration
from ansor.vta.functional import ProgramError, Sram, run_in_order, run_in_random_order
from ansor.vta.runtime.opencl import OpenclDriver
from tests.opencl import need_opencl
from tests.vta_programs import DRAM_BYTES, in_series, random_dram, random_program

pytestmark = pytest.mark.compiler
NARROW = Configuration(block=3, weight_bytes=13, uop_bytes=10, input_bytes=12, accumulator_bytes=14)
CORES = [DEFAULT, CORE_32, CORE_64, Configuration(batch=1), NARROW]
PROGRAMS = 200


@pytest.mark.parametrize("core", CORES, ids=str)
def test_the_same_bytes_in_order_in_random_order_and_on_opencl(core: Configuration) -> None:
    need_opencl()
    driver, ordered, drawn = OpenclDriver(core, DRAM_BYTES), Sram(core), Sram(core)
    dram = random_dram(random.Random(0), core)
    other = dram.copy()
    driver.write(0, dram)
    for seed in range(PROGRAMS):
        program = in_series(random_program(random.Random(seed), core, 25))
        words = assemble(program, core)
        driver.run(words)
        run_in_order(words, dram, core, ordered)
        run_in_random_order(words, other, core, seed, sram=drawn)
        np.testing.assert_array_equal(driver.read(0, DRAM_BYTES), dram, f"program {seed}")
        np.testing.assert_array_equal(other, dram, f"program {seed}")


def test_devices_have_names() -> None:
    need_opencl()
    name = OpenclDriver(DEFAULT, 4096).name.removeprefix("opencl:")
    assert OpenclDriver(DEFAULT, 4096, name.upper()).name == f"opencl:{name}"
    with pytest.raises(DeviceError, match=f"^asked for an OpenCL device 'no such'; there are {name[:8]}"):
        OpenclDriver(DEFAULT, 4096, "no such")


def test_words_that_are_no_instruction_are_refused() -> None:
    need_opencl()
    driver = OpenclDriver(DEFAULT, 4096)
    for words in ([(7, 0)], [(3, 0), (7 << 7 | 0, 1 << 16 | 1)]):
        driver.run(np.array(words, np.uint64))
        with pytest.raises(ProgramError, match=f"^instruction {len(words) - 1} is not an instruction of this core: assemble programs with `assemble`$"):
            driver.read(0, 4)
