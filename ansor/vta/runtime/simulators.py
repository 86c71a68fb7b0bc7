"""Drivers for the simulators."""

from __future__ import annotations

from numbers import Integral
from time import perf_counter

import numpy as np

from ansor.errors import ArgumentError, MachineTrouble
from ansor.vta.assembler import Words
from ansor.vta.configuration import DEFAULT, Configuration, check_core
from ansor.vta.cycles import CHISEL, CycleModel, check_model, count_cycles
from ansor.vta.functional import Sram, run_in_order, run_in_random_order
from ansor.vta.runtime.driver import Event, check_memory, check_range
from ansor.vta.tensors import Bytes

DRAM_BYTES = 1 << 26


class FunctionalDriver:
    """The functional simulator. seed: interleave modules at random, and raise RaceError for accesses that no tokens order; None: run in program order."""

    def __init__(self, configuration: Configuration = DEFAULT, dram_bytes: int = DRAM_BYTES, seed: int | None = None) -> None:
        check_core(configuration)
        check_memory(dram_bytes)
        if seed is not None and not isinstance(seed, Integral):
            raise ArgumentError(f"asked for a simulator with seed={seed!r:.80}; pass a whole number, or None for program order")
        self.name, self.configuration, self.dram_bytes = "vta-functional", configuration, dram_bytes
        self._seed, self._dram, self._sram = seed, _zeros(dram_bytes), Sram(configuration)
        self._events: list[Event] = []

    def write(self, address: int, data: Bytes) -> None:
        """See `Driver`."""
        check_range(self, address, len(data))
        began = perf_counter()
        self._dram[address : address + len(data)] = data
        self._did("write", len(data), began)

    def read(self, address: int, count: int) -> Bytes:
        """See `Driver`."""
        check_range(self, address, count)
        began = perf_counter()
        found = self._dram[address : address + count].copy()
        self._did("read", count, began)
        return found

    def run(self, words: Words) -> None:
        """See `Driver`."""
        began = perf_counter()
        self._did("instructions", words.nbytes, began)
        if self._seed is None:
            run_in_order(words, self._dram, self.configuration, self._sram)
        else:
            self._seed += 1
            run_in_random_order(words, self._dram, self.configuration, self._seed, sram=self._sram)
        self._did("run", 0, began, self._cycles(words))

    def wait(self) -> None:
        """See `Driver`."""

    def events(self) -> tuple[Event, ...]:
        """See `Driver`."""
        return tuple(self._events)

    def _cycles(self, words: Words) -> int:
        """The cycles of a program that ran."""
        return 0

    def _did(self, kind: str, moved: int, began: float, cycles: int = 0) -> None:
        self._events.append(Event(kind, moved, began, perf_counter(), cycles))


class CycleDriver(FunctionalDriver):
    """The functional simulator in program order, with the cycles of each run as counted by a model."""

    def __init__(self, configuration: Configuration = DEFAULT, dram_bytes: int = DRAM_BYTES, model: CycleModel = CHISEL) -> None:
        check_model(model)
        super().__init__(configuration, dram_bytes)
        self.name, self.model = f"vta-cycles({model.name})", model

    def _cycles(self, words: Words) -> int:
        return count_cycles(words, self.configuration, self.model).total


def _zeros(dram_bytes: int) -> Bytes:
    try:
        return np.zeros(dram_bytes, np.uint8)
    except MemoryError as error:
        raise MachineTrouble(f"asked for a simulator with {dram_bytes} bytes of memory, which this machine does not have: pass fewer as dram_bytes") from error
