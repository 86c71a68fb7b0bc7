"""In the child process: load a candidate, lay out its guarded buffers, call it, and inspect the results."""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.pool_library import open_pool
from ansor.measure.buffers import GuardedBuffer
from ansor.measure.failure import Failure
from ansor.measure.harness import Harness
from ansor.measure.protocol import BufferReport, CallData, arguments_of
from ansor.measure.verify import epsilon, fill_unwritten, fill_workspace


class Call:
    """A loaded entry point with filled buffers. `wall`: time it by wall time. Raises OSError or AttributeError if it cannot be loaded."""

    def __init__(self, harness: Harness, data: CallData, inputs: Mapping[str, NDArray[np.generic]], pool: Path | None, wall: bool = True) -> None:
        self._harness = harness
        self._wall = wall
        self._library = ctypes.CDLL(data["library"])
        entry = ctypes.cast(getattr(self._library, data["entry"]), ctypes.c_void_p).value
        self.arguments = arguments_of(data["arguments"])
        self._originals: dict[str, NDArray[np.generic]] = {}
        self._buffers: dict[str, GuardedBuffer] = {}
        for number, argument in enumerate(self.arguments):
            size = argument.physical_size * np.dtype(argument.physical_dtype).itemsize
            buffer = self._buffers[argument.name] = GuardedBuffer(harness, argument.name, size, number)
            if argument.role == "output":
                fill_unwritten(buffer.view(argument.dtype))
                continue
            # float32 inputs of a double precision reference are widened here.
            original = argument.physical(inputs[argument.name].astype(argument.dtype, copy=False))
            self._originals[argument.name] = original
            buffer.view(argument.physical_dtype)[...] = original
        self._workspace = GuardedBuffer(harness, "workspace", data["workspace_bytes"], len(self.arguments))
        fill_workspace(self._workspace.bytes)
        pointers = [self._buffers[argument.name].address for argument in self.arguments]
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        parallel_for, handle = 0, 0
        if data["threads"] > 1:
            if pool is None:
                raise OSError(f"{data['entry']} needs {data['threads']} threads, but there is no thread pool library")
            opened = open_pool(pool, data["threads"])
            parallel_for, handle = opened.parallel_for, opened.handle
        self._fixed = (entry or 0, ctypes.addressof(self._pointers), self._workspace.address, parallel_for, handle)

    def buffers(self) -> list[BufferReport]:
        """Where the buffers are."""
        every = (*self._buffers.values(), self._workspace)
        return [{"name": b.name, "low": b.reach[0], "high": b.reach[1]} for b in every]

    def forget(self) -> None:
        """Refill outputs and workspace before a second call, each place with a different value than before the first."""
        for argument in self.arguments:
            if argument.role == "output":
                fill_unwritten(self._buffers[argument.name].view(argument.dtype), 1)
        fill_workspace(self._workspace.bytes, 1)

    def run(self, number: int) -> float:
        """Seconds for `number` calls."""
        return self._harness.seconds(*self._fixed, number, self._wall)

    def move_inputs(self, seed: int, dtype: str = "float32") -> None:
        """Move every float input towards zero by up to one eps of `dtype`, relative to its original value, so that it stays in range."""
        generator = np.random.default_rng(seed)
        for name, original in self._originals.items():
            if original.dtype.kind == "f":
                share = generator.random(original.shape) * epsilon(dtype)
                self._buffers[name].view(original.dtype.name)[...] = np.multiply(original, 1 - share, dtype=np.float64)

    def trespass(self) -> Failure | None:
        """A failure if a buffer's guard bands or an input were changed."""
        for buffer in (*self._buffers.values(), self._workspace):
            damage = buffer.damage()
            if damage:
                return Failure("out_of_bounds", damage)
        for argument in self.arguments:
            original = self._originals.get(argument.name)
            if original is None:
                continue
            now = self._buffers[argument.name].view("uint8")
            if not np.array_equal(now, original.view(np.uint8)):
                return Failure("wrong_answer", f"input {argument.name!r} was changed")
        return None

    def output(self, name: str) -> NDArray[np.generic]:
        """The contents of an output, in its logical shape (a view)."""
        argument = next(argument for argument in self.arguments if argument.name == name)
        return self._buffers[name].view(argument.dtype).reshape(argument.shape)
