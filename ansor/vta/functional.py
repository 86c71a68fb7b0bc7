"""Runs VTA programs in a simulator (`functional.c`), and checks that their tokens order everything that has to be ordered."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from ansor.errors import AnsorError, ArgumentError
from ansor.support.text import with_article
from ansor.vta.assembler import Words
from ansor.vta.columns import columns_of
from ansor.vta.configuration import Configuration, Memory, check_core
from ansor.vta.instructions import Module
from ansor.vta.simulator_library import simulator_library

DramBytes = NDArray[np.uint8]
STREAMS = ("load->compute", "compute->load", "compute->store", "store->compute")
_RACE, _DEADLOCK, _SRAM, _DRAM, _LEFT_OVER = range(1, 6)
_IN_DRAM = len(Memory)
_SHADOW = 4  # numbers that functional.c keeps for each element


class ProgramError(AnsorError):
    """A VTA program fails while it runs. `instructions`: the numbers of the instructions involved. Cure: fix the program."""

    def __init__(self, text: str, instructions: tuple[int, ...]) -> None:
        super().__init__(text)
        self.instructions = instructions


class RaceError(ProgramError):
    """Two instructions of different modules use the same element, one of them writes, and no tokens order them."""


class DeadlockError(ProgramError):
    """Modules wait for tokens, instructions or queue space that never come."""


class LeftOverError(ProgramError):
    """A program posted tokens that it does not wait for: the next program would take them for its own."""


class BoundsError(ProgramError):
    """An instruction uses an element outside a memory, or outside DRAM."""


@dataclass(frozen=True)
class Queues:
    """The most instructions and tokens that can wait in each queue."""

    instructions: int = 512
    tokens: int = 1024


@dataclass(frozen=True)
class Counts:
    """What a program did. loaded: bytes read from DRAM, by memory; stored: bytes written to DRAM; gemm, reset, alu: micro-ops run; close_writes: how many of
    these write an element that one of the two micro-ops before them in the same instruction also writes (a pipeline without forwarding gets these wrong)."""

    loaded: Mapping[Memory, int]
    stored: int
    gemm: int
    reset: int
    alu: int
    close_writes: int


class Sram:
    """The memories of a core, initially zero. They keep their contents after a run: pass the same object to the next run."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.held = {memory: _room(configuration.depth(memory) * configuration.element_bytes(memory)) for memory in Memory if memory != Memory.ACC8}


def _room(bytes_: int) -> DramBytes:
    return np.zeros(bytes_ + 8, np.uint8)


class _Core(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64 * len(Memory)) for name in ("depth", "bytes")),
        *((name, ctypes.c_int64) for name in ("batch", "block", "dst", "src", "wgt", "dram_bytes", "random", "seed", "instruction_queue", "token_queue")),
        ("dram", ctypes.c_void_p), *((f"sram_{name}", ctypes.c_void_p) for name in ("acc", "inp", "wgt", "out", "uop")),
        ("shadow", ctypes.c_void_p * (len(Memory) + 1)), ("queue", ctypes.c_void_p * len(Module)), ("pushed", ctypes.c_void_p * len(STREAMS)),
    )  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("fault", "at", "other", "memory", "place", "limit")),
        ("waits", ctypes.c_int64 * 4), ("stream", ctypes.c_int64 * 4), ("loaded", ctypes.c_int64 * len(Memory)),
        *((name, ctypes.c_int64) for name in ("stored", "gemm", "reset", "alu", "close")), ("left", ctypes.c_int64 * len(STREAMS)),
    )  # fmt: skip


def run_in_order(words: Words, dram: DramBytes, configuration: Configuration, sram: Sram | None = None) -> Counts:
    """Run a program [n, 2] one instruction after the other, ignoring its tokens. Changes `dram` [bytes] and `sram`; without `sram`, memories start as zeros.

    Raises BoundsError, and InstructionError for words that are not a program.
    """
    return _run(words, dram, configuration, sram, None)


def run_in_random_order(
    words: Words, dram: DramBytes, configuration: Configuration, seed: int, queues: Queues = Queues(), sram: Sram | None = None
) -> Counts:
    """Run a program [n, 2] with the modules interleaved at random, as far as tokens and queues allow; otherwise like `run_in_order`.

    Races, deadlocks and left-over tokens are found with every seed; the seed decides only which of several races is found first. Raises RaceError,
    DeadlockError, LeftOverError, BoundsError, and InstructionError for words that are not a program.
    """
    if not isinstance(seed, Integral):
        raise ArgumentError(f"asked for a random order with seed={seed!r:.80}; pass a whole number")
    if queues.instructions < 1 or queues.tokens < 1:
        raise ArgumentError(f"asked for {queues}; every queue has to hold at least 1")
    return _run(words, dram, configuration, sram, (seed, queues))


def _run(words: Words, dram: DramBytes, configuration: Configuration, sram: Sram | None, drawn: tuple[int, Queues] | None) -> Counts:
    """drawn: the seed of a random order, and the lengths of the queues."""
    if not isinstance(dram, np.ndarray):
        raise ArgumentError(f"DRAM is {with_article(type(dram).__name__)}; pass a writeable vector of uint8 without gaps")
    if dram.dtype != np.uint8 or dram.ndim != 1 or not dram.flags.c_contiguous or not dram.flags.writeable:
        raise ArgumentError(f"DRAM is an array of {dram.dtype} of shape {dram.shape}; pass a writeable vector of uint8 without gaps")
    check_core(configuration)
    held = sram or Sram(configuration)
    if held.configuration != configuration:
        raise ArgumentError(f"asked to run a program for {configuration} with the memories of {held.configuration}: pass those of one core")
    program, result = columns_of(words, configuration), _Result()
    core, kept = _core(held, len(program), len(dram), drawn is not None)
    seed, queues = drawn or (0, Queues())
    core.dram, core.seed = dram.ctypes.data, int(seed) & 2**63 - 1
    core.instruction_queue, core.token_queue = queues.instructions, queues.tokens
    run = simulator_library("functional").ansor_vta_run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    if not run(ctypes.byref(core), program.ctypes.data, len(program), ctypes.byref(result)):
        raise _error(result)
    del kept
    return Counts({memory: result.loaded[memory] for memory in Memory}, result.stored, result.gemm, result.reset, result.alu, result.close)


def _core(sram: Sram, count: int, dram_bytes: int, random: bool) -> tuple[_Core, list[DramBytes]]:
    """A core with these memories, and the arrays that it also points to."""
    core, configuration = _Core(), sram.configuration
    kept: list[DramBytes] = []
    core.batch, core.block, core.dram_bytes, core.random = 1 << configuration.batch, 1 << configuration.block, dram_bytes, random
    core.dst, core.src, core.wgt = (configuration.index_bits(memory) for memory in (Memory.ACC, Memory.INP, Memory.WGT))

    def room(bytes_: int) -> int:
        kept.append(_room(bytes_))
        return int(kept[-1].ctypes.data)

    for memory in Memory:
        core.depth[memory], core.bytes[memory] = configuration.depth(memory), configuration.element_bytes(memory)
        if memory != Memory.ACC8:
            setattr(core, f"sram_{memory.name.lower()}", int(sram.held[memory].ctypes.data))
            core.shadow[memory] = room(core.depth[memory] * _SHADOW * 8) if random else None
    if random:
        core.shadow[_IN_DRAM] = room((dram_bytes // 4 + 2) * _SHADOW * 8)
        for module in Module:
            core.queue[module] = room(count * 8)
        for stream in range(len(STREAMS)):
            core.pushed[stream] = room(count * len(Module) * 8)
    return core, kept


def _error(result: _Result) -> ProgramError:
    if result.fault == _DEADLOCK:
        return _deadlock(result)
    if result.fault == _LEFT_OVER:
        left = ", ".join(f"{count} {name}" for name, count in zip(STREAMS, result.left, strict=True) if count)
        return LeftOverError(f"tokens are left over at the end of the program ({left}): pop each of them", ())
    at = result.at
    if result.fault == _RACE:
        where = f"byte {4 * result.place} of DRAM" if result.memory == _IN_DRAM else f"{Memory(result.memory).name}[{result.place}]"
        first, second = sorted((at, result.other))
        return RaceError(f"instructions {first} and {second} both use {where}, one writes it, and no tokens order them: add a push and a pop", (first, second))
    memory = Memory(result.memory).name
    if result.fault == _SRAM:
        return BoundsError(f"instruction {at} uses {memory}[{result.place}]; {memory} holds {result.limit}", (at,))
    return BoundsError(f"instruction {at} uses DRAM up to byte {result.place}, for {memory}; DRAM has {result.limit}: give it more, or fix dram_base", (at,))


def _deadlock(result: _Result) -> DeadlockError:
    parts = []
    for module, number, stream in zip(("load", "compute", "store", "fetch"), result.waits, result.stream, strict=True):
        if number >= 0:
            parts.append(f"{module} waits at instruction {number} for {f'a token {STREAMS[stream]}' if stream < 4 else 'space in a queue'}")
    return DeadlockError(f"the program never ends: {'; '.join(parts)}", tuple(number for number in result.waits if number >= 0))
