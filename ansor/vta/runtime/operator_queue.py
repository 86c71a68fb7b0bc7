"""Queues operators for a device. A flush runs them in one batch; `Reason` lists what causes it.

    write, enqueue, enqueue, ... -> instructions, with barriers of tokens between operators -> at a flush: new micro-ops, instructions, one run
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ansor.errors import ArgumentError, MachineTrouble
from ansor.support.text import with_article
from ansor.vta.assembler import Uops, Words
from ansor.vta.compiled import Operator, alignment, barrier, finish, linked
from ansor.vta.configuration import UOP_BYTES, Memory
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.spaces import Residents, Space
from ansor.vta.tensors import Array, TensorLayout, pack, unpack

_COUNTED = ("operators", "barriers", "instructions", "kernels_loaded", "kernels_kept")
_MOVED = ("writes", "reads", "instructions", "uops")


class Reason(Enum):
    """Why a queue was flushed."""

    OVERFLOW = "no room for more instructions or micro-ops"
    READ = "the host reads what queued instructions write"
    WRITE = "the host writes what queued instructions use"
    FREE = "a buffer that queued instructions use is freed"
    TOLD = "the caller asked for it"


@dataclass(frozen=True)
class Limits:
    """The most instructions that wait in the queue, and the most micro-ops that are kept in the memory of the device."""

    instructions: int = 1 << 20
    uops: int = 1 << 20

    def __post_init__(self) -> None:
        for name, value in (("instructions", self.instructions), ("uops", self.uops)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"asked for a queue with a limit of {value!r:.80} {name}; pass a whole number of at least 1")


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array in the memory of a device, from byte `address` on."""

    address: int
    layout: TensorLayout


@dataclass(frozen=True)
class Transfers:
    """A number of transfers, and their total bytes."""

    count: int
    bytes: int


@dataclass(frozen=True)
class QueueCounts:
    """What a queue did. operators, barriers, instructions: how many were enqueued; runs: flushes, by reason; kernels_loaded: LOADs of an operator's micro-ops
    into the core; kernels_kept: LOADs that were saved, as the micro-ops were there; transfers: by kind, which is "writes" or "reads" of buffers,
    "instructions" or "uops"."""

    operators: int
    barriers: int
    instructions: int
    runs: Mapping[Reason, int]
    kernels_loaded: int
    kernels_kept: int
    transfers: Mapping[str, Transfers]

    @property
    def synchronisations(self) -> int:
        """The number of runs, for any reason."""
        return sum(self.runs.values())


class Queue:
    """The pending work of one device. Buffers are arrays in its memory; operators use them, in the order of `enqueue`."""

    def __init__(self, driver: Driver, limits: Limits = Limits()) -> None:
        if not all(hasattr(driver, name) for name in ("configuration", "dram_bytes", "run")):
            raise ArgumentError(f"asked for a queue of {driver!r:.80}; pass a driver, such as FunctionalDriver() or OpenclDriver()")
        configuration, unit = driver.configuration, alignment(driver.configuration)
        first = -(-limits.uops * UOP_BYTES // unit) * unit
        if first >= driver.dram_bytes:
            raise ArgumentError(f"asked for {limits.uops} micro-ops in the {driver.dram_bytes} bytes of {driver.name}: leave space for buffers")
        self.driver, self.limits = driver, limits
        self._space, self._live = Space(first, driver.dram_bytes, unit), set[Buffer]()
        self._residents, self._counts = Residents(configuration.depth(Memory.UOP)), Counter[str | Reason]()
        self._transfers: dict[str, list[int]] = {kind: [] for kind in _MOVED}
        self._recorded: dict[bytes, int] = {}
        self._new_uops: list[Uops] = []
        self._uop_end = 0
        self._words: list[Words] = []
        self._length = 0
        self._used, self._changed = set[Buffer](), set[Buffer]()

    def buffer(self, layout: TensorLayout) -> Buffer:
        """Allocate an array with undefined contents. Raises MachineTrouble if the device has no space."""
        if not isinstance(layout, TensorLayout):
            raise ArgumentError(f"asked for a buffer of {layout!r:.80}; pass a TensorLayout, such as that of an operator's tensor")
        size = layout.bytes(self.driver.configuration)
        address = self._space.take(size)
        if address is None:
            free = self._space.free
            raise MachineTrouble(f"asked for {size} bytes of {self.driver.name}, which has {free} left, in gaps: free buffers, or give it more memory")
        self._live.add(found := Buffer(address, layout))
        return found

    def free(self, buffer: Buffer) -> None:
        """Free a buffer. Flushes if queued instructions use it."""
        self._check(buffer)
        if buffer in self._used:
            self._flush(Reason.FREE)
        self._live.remove(buffer)
        self._space.give_back(buffer.address)

    def write(self, buffer: Buffer, array: Array) -> None:
        """Set the values of a buffer. Flushes if queued instructions use it. Raises ArgumentError for an array of another shape or type."""
        self._check(buffer)
        if not hasattr(array, "dtype"):
            raise ArgumentError(f"asked to write {with_article(type(array).__name__)} to a buffer; pass an array of {_dtype(buffer.layout)}")
        if array.dtype != _dtype(buffer.layout):
            raise ArgumentError(f"asked to write an array of {array.dtype} to a buffer of {_dtype(buffer.layout)}: convert it")
        data = pack(array, buffer.layout)
        if buffer in self._used:
            self._flush(Reason.WRITE)
        self.driver.write(buffer.address, data)
        self._moved("writes", len(data))

    def read(self, buffer: Buffer) -> Array:
        """The values of a buffer. Flushes if queued instructions write it."""
        self._check(buffer)
        if buffer in self._changed:
            self._flush(Reason.READ)
        with self._running():
            data = self.driver.read(buffer.address, buffer.layout.bytes(self.driver.configuration))
        self._moved("reads", len(data))
        return unpack(data, buffer.layout, _dtype(buffer.layout))

    def enqueue(self, operator: Operator, buffers: Sequence[Buffer]) -> None:
        """Queue an operator, with a buffer for each of its tensors. Flushes first if there is no space. Raises ArgumentError for buffers that do not fit it."""
        self._check_call(operator, buffers)
        edge, end = barrier(operator.configuration), finish(operator.configuration)
        loads, longest = -(-len(operator.uops) // (1 << 15)), self.limits.instructions
        needed = len(operator.words) + loads + len(end)
        if needed > longest or len(operator.uops) > min(self.limits.uops, self._residents.depth):
            room = f"{longest} instructions and {min(self.limits.uops, self._residents.depth)} micro-ops: raise the limits, or split the operator"
            raise ArgumentError(f"asked to run an operator of {needed} instructions and {len(operator.uops)} micro-ops in a queue for {room}")
        key = operator.uops.tobytes()
        no_uops = key not in self._recorded and self._uop_end + len(operator.uops) > self.limits.uops
        if self._words and (no_uops or self._length + len(edge) + needed > longest):
            self._flush(Reason.OVERFLOW)
        if no_uops:
            self._recorded, self._uop_end = {}, 0
        if self._words:
            self._append(edge)
            self._counts.update(barriers=1)
        self._append(self._placed(operator, key, [buffer.address for buffer in buffers]))
        self._used.update(buffers)
        self._changed.update(buffer for buffer, tensor in zip(buffers, operator.tensors, strict=True) if tensor.role == "output")
        self._counts.update(operators=1)

    def synchronise(self) -> None:
        """Flush, and wait until all enqueued operators are done."""
        self._flush(Reason.TOLD)
        with self._running():
            self.driver.wait()

    @property
    def counts(self) -> QueueCounts:
        """The counts so far."""
        runs = {reason: self._counts[reason] for reason in Reason}
        transfers = {kind: Transfers(len(sizes), sum(sizes)) for kind, sizes in self._transfers.items()}
        operators, barriers, instructions, loaded, kept = (self._counts[name] for name in _COUNTED)
        return QueueCounts(operators, barriers, instructions, runs, loaded, kept, transfers)

    def _placed(self, operator: Operator, key: bytes, addresses: list[int]) -> Words:
        """The instructions of an operator, with a LOAD of its micro-ops if they are not in the core."""
        if not key:
            return linked(operator, addresses)
        if key not in self._recorded:
            self._recorded[key] = self._uop_end
            self._uop_end += len(operator.uops)
            self._new_uops.append(operator.uops)
        start, there = self._residents.place(key, len(operator.uops))
        self._counts["kernels_kept" if there else "kernels_loaded"] += 1
        return linked(operator, addresses, start, None if there else self._recorded[key] * UOP_BYTES)

    def _moved(self, kind: str, size: int) -> None:
        self._transfers[kind].append(size)

    def _append(self, words: Words) -> None:
        self._words.append(words)
        self._length += len(words)
        self._counts["instructions"] += len(words)

    def _flush(self, reason: Reason) -> None:
        if not self._words:
            return
        if self._new_uops:
            uops = np.concatenate(self._new_uops)
            self.driver.write((self._uop_end - len(uops)) * UOP_BYTES, uops.view(np.uint8))
            self._moved("uops", uops.nbytes)
        self._append(finish(self.driver.configuration))
        words = np.concatenate(self._words)
        self._words, self._new_uops, self._length = [], [], 0
        self._used, self._changed = set(), set()
        self._counts[reason] += 1
        self._moved("instructions", words.nbytes)
        with self._running():
            self.driver.run(words)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Surrounds calls that run the device or wait for it. After an error or Ctrl-C it is unknown how far programs got, so the record of micro-ops in
        the core is reset."""
        try:
            yield
        except BaseException:
            self._residents = Residents(self._residents.depth)
            raise

    def _check(self, buffer: Buffer) -> None:
        if not isinstance(buffer, Buffer):
            raise ArgumentError(f"asked to use {with_article(type(buffer).__name__)} as a buffer; pass what Queue.buffer returned, and write the array to it")
        if buffer not in self._live:
            raise ArgumentError(f"asked to use a buffer at byte {buffer.address} that this queue does not have: it was freed, or belongs to another queue")

    def _check_call(self, operator: Operator, buffers: Sequence[Buffer]) -> None:
        if not isinstance(operator, Operator):
            raise ArgumentError(f"asked to run {with_article(type(operator).__name__)}; pass an Operator: operator_from_text(program.source)")
        if operator.configuration != self.driver.configuration:
            raise ArgumentError(f"asked to run an operator for {operator.configuration} on {self.driver.configuration}: compile it for that core")
        if len(buffers) != len(operator.tensors):
            raise ArgumentError(f"asked to run an operator with {len(buffers)} buffers, but it has {len(operator.tensors)} tensors: pass a buffer for each")
        for tensor, buffer in zip(operator.tensors, buffers, strict=True):
            self._check(buffer)
            sizes = [one.bytes(operator.configuration) for one in (tensor.layout, buffer.layout)]
            if sizes[0] != sizes[1]:
                raise ArgumentError(f"{tensor.name} is {tensor.layout}, of {sizes[0]} bytes; the buffer has {sizes[1]}: pass one of the same size")
            if tensor.role == "output" and sum(one is buffer for one in buffers) > 1:
                raise ArgumentError(f"{tensor.name} is written, and its buffer is passed for another tensor, too: pass a buffer of its own")


def _dtype(layout: TensorLayout) -> str:
    return "int32" if layout.memory == Memory.ACC else "int8"
