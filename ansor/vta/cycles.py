"""Counts the cycles of a VTA program, by a model whose assumptions are parameters (`cycles.c`)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ArgumentError
from ansor.vta.assembler import Words
from ansor.vta.columns import columns_of
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.functional import STREAMS, DeadlockError, Queues
from ansor.vta.instructions import Module
from ansor.vta.simulator_library import simulator_library

_MAY_BE_ZERO = ("read_latency", "write_latency", "state_cycles", "token_cycles", "gemm_fill", "alu_fill")
PARTS = ("load", "compute", "store", "fetch")


@dataclass(frozen=True)
class Dram:
    """The bus and the DRAM behind it. bus_bytes: bytes of one beat, which takes beat_cycles; burst_bytes: the longest burst, no burst crosses a multiple of it;
    read_latency, write_latency: cycles from the last beat of a burst to its data or response; reads, writes: the most bursts in flight, for each module."""

    bus_bytes: int = 8
    beat_cycles: int = 1
    burst_bytes: int = 2048
    read_latency: int = 100
    write_latency: int = 50
    reads: int = 16
    writes: int = 1


@dataclass(frozen=True)
class Control:
    """fetch_burst: instructions fetched at once; state_cycles: cycles before an instruction starts to work; token_cycles: cycles from a push to its pop."""

    fetch_burst: int = 64
    state_cycles: int = 2
    token_cycles: int = 1


@dataclass(frozen=True)
class GemmPipeline:
    """Cycles until the pipeline is full, and for each micro-op."""

    gemm_fill: int = 5
    gemm_cycles: int = 1


@dataclass(frozen=True)
class AluPipeline:
    """Cycles until the pipeline is full, and for each micro-op with an immediate and with two tensors."""

    alu_fill: int = 5
    alu_immediate_cycles: int = 1
    alu_tensor_cycles: int = 2


@dataclass(frozen=True)
class CycleModel:
    """The assumptions about a core and its DRAM, in cycles, bytes or counts. Raises ArgumentError for values that no core has."""

    name: str
    dram: Dram = Dram()
    control: Control = Control()
    gemm: GemmPipeline = GemmPipeline()
    alu: AluPipeline = AluPipeline()
    queues: Queues = Queues()

    def __post_init__(self) -> None:
        for name, kind in (("dram", Dram), ("control", Control), ("gemm", GemmPipeline), ("alu", AluPipeline), ("queues", Queues)):
            if not isinstance(getattr(self, name), kind):
                raise ArgumentError(f"{name} of a cycle model is {getattr(self, name)!r}; pass {kind.__name__}(...)")
        for name, value in self.parameters().items():
            least = 0 if name in _MAY_BE_ZERO else 1
            if not isinstance(value, int) or not least <= value <= 1 << 20:
                raise ArgumentError(f"{name} of a cycle model is {value!r}; pass a whole number from {least} to {1 << 20}")
        if self.dram.burst_bytes % self.dram.bus_bytes:
            raise ArgumentError(f"burst_bytes of a cycle model is {self.dram.burst_bytes}; pass a multiple of bus_bytes, which is {self.dram.bus_bytes}")

    def parameters(self) -> dict[str, int]:
        """All parameters by name, in the order of `cycles.c`."""
        return {name: value for group in (self.dram, self.control, self.gemm, self.alu, self.queues) for name, value in vars(group).items()}

    def __str__(self) -> str:
        return f"cycles({self.name}: {', '.join(f'{name}={value}' for name, value in self.parameters().items())})"


CHISEL = CycleModel("chisel")
HLS = CycleModel("hls", Dram(reads=1), Control(fetch_burst=16), alu=AluPipeline(alu_immediate_cycles=2))


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles of a program. busy: cycles in which each of `PARTS` ran an instruction; bus: cycles in which the bus moved data; gemm, alu: cycles that their
    micro-ops took; times: the cycles in which each instruction began and ended, [n, 2]."""

    total: int
    busy: dict[str, int]
    bus: int
    gemm: int
    alu: int
    times: NDArray[np.int64]


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in CHISEL.parameters()), ("bytes", ctypes.c_int64 * len(Memory)),
        *((name, ctypes.c_void_p * len(Module)) for name in ("queue", "sent", "taken")), *((name, ctypes.c_void_p * len(STREAMS)) for name in ("push", "pop")),
        ("times", ctypes.c_void_p), ("flight", ctypes.c_void_p * len(PARTS)),
    )  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = (
        ("ok", ctypes.c_int64), ("total", ctypes.c_int64), ("busy", ctypes.c_int64 * 4), ("bus", ctypes.c_int64),
        ("gemm", ctypes.c_int64), ("alu", ctypes.c_int64), ("waits", ctypes.c_int64 * 4),
    )  # fmt: skip


def check_model(given: object) -> None:
    """Raises ArgumentError unless the value is a CycleModel."""
    if not isinstance(given, CycleModel):
        raise ArgumentError(f"asked for cycles by {given!r:.80}; pass a CycleModel, such as CHISEL or HLS of ansor.vta.cycles")


def count_cycles(words: Words, configuration: Configuration, model: CycleModel = CHISEL) -> Cycles:
    """Count the cycles of a program [n, 2]. Raises DeadlockError if it never ends, and InstructionError for words that are not a program."""
    check_model(model)
    program, result, given = columns_of(words, configuration), _Result(), _Model()
    count = len(program)
    for name, value in model.parameters().items():
        setattr(given, name, value)
    given.bytes[:] = [configuration.element_bytes(memory) for memory in Memory]
    rooms = np.zeros((3 * len(Module) + 2 * len(STREAMS), count + 1), np.int64)
    places = iter([int(row.ctypes.data) for row in rooms])
    for array in (given.queue, given.sent, given.taken, given.push, given.pop):
        array[:] = [next(places) for _ in array]
    flights, times = np.zeros((len(PARTS), max(model.dram.reads, model.dram.writes)), np.int64), np.zeros((count, 2), np.int64)
    given.flight[:], given.times = [int(row.ctypes.data) for row in flights], times.ctypes.data
    run = simulator_library("cycles").ansor_vta_cycles
    run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p], None
    run(ctypes.byref(given), program.ctypes.data, count, ctypes.byref(result))
    if not result.ok:
        waiting = [(name, number) for name, number in zip(PARTS, result.waits, strict=True) if number >= 0]
        text = ", ".join(f"{name} waits at instruction {number}" for name, number in waiting)
        raise DeadlockError(f"the program never ends: {text}; `run_in_random_order` reports what it waits for", tuple(number for _, number in waiting))
    return Cycles(result.total, dict(zip(PARTS, result.busy, strict=True)), result.bus, result.gemm, result.alu, times)
