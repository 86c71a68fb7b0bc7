"""What every driver does, the OpenCL one too."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from ansor.errors import ArgumentError, MachineTrouble
from ansor.vta.assembler import assemble
from ansor.vta.configuration import DEFAULT, Configuration, Memory
from ansor.vta.cycles import CHISEL, count_cycles
from ansor.vta.functional import BoundsError, Sram, run_in_order, run_in_random_order
from ansor.vta.instructions import Finish, Gemm, Load, Loop, Rows, UopRange
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.simulators import CycleDriver, FunctionalDriver
from tests.opencl import need_opencl
from tests.vta_programs import DRAM_BYTES, random_dram, random_program

pytestmark = pytest.mark.compiler
Opened = Callable[[Configuration, int], Driver]


def opencl(configuration: Configuration, dram_bytes: int) -> Driver:
    need_opencl()
    return OpenclDriver(configuration, dram_bytes)


every = pytest.mark.parametrize("opened", [FunctionalDriver, CycleDriver, opencl], ids=["functional", "cycles", "opencl"])


@every
def test_runs_leave_the_memories_of_the_core_to_the_next(opened: Opened) -> None:
    driver, sram, runs = opened(DEFAULT, DRAM_BYTES), Sram(DEFAULT), 4
    for seed in range(runs):
        chance = random.Random(seed)
        dram, words = random_dram(chance, DEFAULT), assemble(random_program(chance, DEFAULT, 25), DEFAULT)
        driver.write(0, dram)
        driver.run(words)
        run_in_order(words, dram, DEFAULT, sram)
        np.testing.assert_array_equal(driver.read(0, DRAM_BYTES), dram)
    kinds = [event.kind for event in driver.events()]
    assert [kinds.count(kind) for kind in ("write", "instructions", "run", "read")] == [runs] * 4
    assert all(event.began <= event.ended for event in driver.events())
    assert sum(event.bytes for event in driver.events() if event.kind in ("read", "write")) == 2 * runs * DRAM_BYTES


@every
def test_what_goes_wrong_is_said_the_same_way(opened: Opened) -> None:
    driver = opened(DEFAULT, DRAM_BYTES)
    for program, text in (
        ([Gemm(UopRange(0, 1), Loop(2, dst=2047)), Gemm(UopRange(0, 1), inner=Loop(3, dst=1024))], r"^instruction 1 uses ACC\[2048\]; ACC holds 2048$"),
        ([Load(Memory.INP, 0, 8191, Rows(1, 2, 2))], "^instruction 0 uses DRAM up to byte 131088, for INP; DRAM has 131072: give it more, or fix dram_base$"),
    ):
        with pytest.raises(BoundsError, match=text):
            driver.run(assemble(program, DEFAULT))
            driver.wait()
    driver.run(assemble([Finish()], DEFAULT))
    driver.wait()
    with pytest.raises(ArgumentError, match="^asked for bytes 131072 to 131073 of "):
        driver.read(DRAM_BYTES, 1)
    with pytest.raises(ArgumentError, match="pass a range inside$"):
        driver.write(-1, np.zeros(4, np.uint8))


def test_cycles_are_those_of_the_model() -> None:
    driver, words = CycleDriver(DEFAULT, DRAM_BYTES), assemble([*random_program(random.Random(3), DEFAULT, 9), Finish()], DEFAULT)
    driver.run(words)
    assert [event.cycles for event in driver.events() if event.kind == "run"] == [count_cycles(words, DEFAULT, CHISEL).total]


def test_memories_are_those_of_one_core() -> None:
    with pytest.raises(ArgumentError, match="pass those of one core$"):
        run_in_random_order(assemble([Finish()], DEFAULT), np.zeros(4, np.uint8), DEFAULT, 1, sram=Sram(Configuration(batch=1)))


@every
def test_arguments_that_cannot_be_meant(opened: Opened) -> None:
    for size in (-1, "64M", 0):
        with pytest.raises(ArgumentError, match=f"^asked for a device with dram_bytes={size!r}; pass how many bytes"):
            opened(DEFAULT, size)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^asked for 'default' as a VTA core"):
        opened("default", DRAM_BYTES)  # type: ignore[arg-type]


def test_seeds_and_models_and_too_much_memory() -> None:
    with pytest.raises(ArgumentError, match="^asked for a simulator with seed='x'; pass a whole number, or None"):
        FunctionalDriver(seed="x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^asked for cycles by 'hls'; pass a CycleModel"):
        CycleDriver(model="hls")  # type: ignore[arg-type]
    with pytest.raises(MachineTrouble, match="^asked for a simulator with .* bytes of memory, which this machine does not have: pass fewer"):
        FunctionalDriver(dram_bytes=1 << 60)
