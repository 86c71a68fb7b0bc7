"""Runs a VTA core, `core.cl`, on any OpenCL device. Needs `pip install ansor[opencl]`, and an OpenCL driver for the device."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ansor.errors import ArgumentError, DeviceError
from ansor.vta.assembler import Words
from ansor.vta.configuration import DEFAULT, Configuration, Memory, check_core
from ansor.vta.functional import BoundsError, ProgramError
from ansor.vta.instructions import Opcode
from ansor.vta.layout import FLAGS, Field, instruction_fields, uop_fields
from ansor.vta.runtime.driver import Event, check_memory, check_range
from ansor.vta.runtime.simulators import DRAM_BYTES
from ansor.vta.tensors import Bytes

_CORE = Path(__file__).with_name("core.cl")
_SRAM, _DRAM = 1, 2


@dataclass(frozen=True, eq=False)
class _Pending:
    """An operation in flight; the device reads or writes `array` until it is done."""

    kind: str
    bytes: int
    event: Any
    array: Any = None


class OpenclDriver:
    """The first OpenCL device whose name ("platform: device") contains `device`, ignoring case. Instructions run in program order.

    Only `read`, `wait` and `events` wait for the device. Raises DeviceError if there is no such device, or it cannot run the core.
    """

    def __init__(self, configuration: Configuration = DEFAULT, dram_bytes: int = DRAM_BYTES, device: str = "") -> None:
        check_core(configuration)
        check_memory(dram_bytes)
        if not isinstance(device, str):
            raise ArgumentError(f"asked for an OpenCL device {device!r:.80}; pass a part of its name, or '' for the first one")
        self._cl, chosen = _pyopencl(), _chosen(device)
        self.name, self.configuration, self.dram_bytes = f"opencl:{_name(chosen)}", configuration, dram_bytes
        lanes = 1 << configuration.batch + configuration.block
        if chosen.max_work_group_size < lanes:
            raise DeviceError(f"{self.name} has at most {chosen.max_work_group_size} work-items in a group; this core needs {lanes}: choose another device")
        try:
            self._open(chosen)
        except self._cl.Error as error:
            raise DeviceError(f"{self.name} cannot run a core of {configuration}: {_first_lines(error)}") from error

    def _open(self, chosen: Any) -> None:
        cl = self._cl
        self._context = cl.Context([chosen])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # the driver's warnings about a core that it built do not concern the user
            program = cl.Program(self._context, core_text(self.configuration)).build(cache_dir=False)
        self._core = cl.Kernel(program, "ansor_vta_core")
        depths = [(memory, self.configuration.depth(memory) * self.configuration.element_bytes(memory)) for memory in list(Memory)[:5]]
        self._dram, self._status = self._zeros(self.dram_bytes), self._zeros(32)
        self._sram = [self._zeros(size) for _, size in depths]
        self._lanes = 1 << self.configuration.batch + self.configuration.block
        self._pending: list[_Pending] = []
        self._done: list[Event] = []
        self._ran = False

    def write(self, address: int, data: Bytes) -> None:
        """See `Driver`."""
        check_range(self, address, len(data))
        if len(data):
            self._copy("write", self._dram, np.array(data, np.uint8), dst_offset=address)

    def read(self, address: int, count: int) -> Bytes:
        """See `Driver`. Raises ProgramError if an earlier run failed."""
        check_range(self, address, count)
        found = np.empty(count, np.uint8)
        if count:
            event = self._cl.enqueue_copy(self._queue, found, self._dram, src_offset=address, is_blocking=False)
            self._pending.append(_Pending("read", count, event, found))
        self.wait()
        return found

    def run(self, words: Words) -> None:
        """See `Driver`."""
        given = np.ascontiguousarray(words, np.uint64)
        place = self._cl.Buffer(self._context, self._cl.mem_flags.READ_ONLY, max(given.nbytes, 16))
        if len(given):
            self._copy("instructions", place, given.copy())
        arguments = (place, np.int64(len(given)), self._dram, np.uint64(self.dram_bytes), *self._sram, self._status)
        self._pending.append(_Pending("run", 0, self._core(self._queue, (self._lanes,), (self._lanes,), *arguments), place))
        self._queue.flush()
        self._ran = True

    def wait(self) -> None:
        """See `Driver`. Raises ProgramError if an earlier run failed."""
        self._queue.finish()
        for one in self._pending:
            profile = one.event.profile
            self._done.append(Event(one.kind, one.bytes, profile.start * 1e-9, profile.end * 1e-9))
        self._pending.clear()
        if self._ran:
            self._ran = False
            self._check()

    def events(self) -> tuple[Event, ...]:
        """See `Driver`."""
        self.wait()
        return tuple(self._done)

    def _copy(self, kind: str, to: Any, array: Any, **place: int) -> None:
        event = self._cl.enqueue_copy(self._queue, to, array, is_blocking=False, **place)
        self._pending.append(_Pending(kind, array.nbytes, event, array))

    def _zeros(self, size: int) -> Any:
        buffer = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
        self._cl.enqueue_fill_buffer(self._queue, buffer, np.uint8(0), 0, size)
        return buffer

    def _check(self) -> None:
        status = np.zeros(4, np.int64)
        self._cl.enqueue_copy(self._queue, status, self._status)
        number, kind, memory, place = status.tolist()
        if not number:
            return
        self._cl.enqueue_copy(self._queue, self._status, np.zeros(4, np.int64))
        at, name = number - 1, Memory(memory).name if memory < len(Memory) else str(memory)
        if kind == _SRAM:
            raise BoundsError(f"instruction {at} uses {name}[{place}]; {name} holds {self.configuration.depth(Memory(memory))}", (at,))
        if kind == _DRAM:
            raise BoundsError(f"instruction {at} uses DRAM up to byte {place}, for {name}; DRAM has {self.dram_bytes}: give it more, or fix dram_base", (at,))
        raise ProgramError(f"instruction {at} is not an instruction of this core: assemble programs with `assemble`", (at,))


def core_text(configuration: Configuration) -> str:
    """The core in OpenCL C for a configuration."""
    sizes = {"BLOCK": 1 << configuration.block, "LANES": 1 << configuration.batch + configuration.block}
    sizes |= {f"{memory.name}_DEPTH": configuration.depth(memory) for memory in (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC)}
    lines = [f"#define {name} {size}" for name, size in sizes.items()]
    for opcode in Opcode:
        fields = instruction_fields(configuration, opcode)[len(FLAGS) + 1 :]  # without the fields common to all
        lines += [f"#define {opcode.name}_{field.name.upper()}(a, b) {_bits('ab'[field.word], field)}" for field in fields]
    lines += [f"#define UOP_{field.name.upper()}(a) {_bits('a', field)}" for field in uop_fields(configuration)]
    return "\n".join([*lines, _CORE.read_text()])


def _bits(word: str, field: Field) -> str:
    return f"((long)({word} >> {field.low} & {field.mask:#x}))"


@cache
def _pyopencl() -> ModuleType:
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        raise DeviceError("asked for an OpenCL device, but pyopencl is not installed: pip install 'ansor[opencl]', and a driver such as PoCL") from error


def _devices() -> list[Any]:
    cl = _pyopencl()
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # the loader raises this if no driver is installed
        return []


def _name(device: Any) -> str:
    return f"{device.platform.name}: {device.name}"


def _chosen(text: str) -> Any:
    devices = _devices()
    for device in devices:
        if text.lower() in _name(device).lower():
            return device
    there = "; ".join(map(_name, devices)) or "none: install a driver, such as PoCL"
    raise DeviceError(f"asked for an OpenCL device {text!r}; there are {there}")


def _first_lines(error: Exception) -> str:
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())[:400]
