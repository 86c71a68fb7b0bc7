"""A typed interface to the C half of measuring (`harness.c`)."""

import ctypes
from pathlib import Path

from ansor.codegen.toolchain import Compiler, cached_library

SOURCE = Path(__file__).with_name("harness.c")


def harness_library(compiler: Compiler) -> Path:
    """The shared library of `harness.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "harness", SOURCE.read_text())


class Harness:
    """The functions of `harness.c`; addresses are plain integers."""

    def __init__(self, library: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        address, size = ctypes.c_void_p, ctypes.c_size_t
        self._seconds = loaded.ansor_seconds
        self._seconds.argtypes, self._seconds.restype = [address] * 5 + [ctypes.c_long, ctypes.c_int], ctypes.c_double
        self._spoil_stack = loaded.ansor_spoil_stack
        self._spoil_stack.argtypes, self._spoil_stack.restype = [], None
        self._spin = loaded.ansor_spin
        self._spin.argtypes, self._spin.restype = [ctypes.c_long], ctypes.c_double
        self._guarded = loaded.ansor_guarded
        self._guarded.argtypes, self._guarded.restype = [size] * 3, address
        self._flush = loaded.ansor_flush
        self._flush.argtypes, self._flush.restype = [address, size], None
        self._note_faults = loaded.ansor_note_faults
        self._note_faults.argtypes, self._note_faults.restype = [ctypes.c_int], None
        self._die_with_parent = loaded.ansor_die_with_parent
        self._die_with_parent.argtypes, self._die_with_parent.restype = [], None

    def seconds(self, entry: int, arguments: int, workspace: int, parallel_for: int, pool: int, number: int, wall: bool) -> float:
        """Seconds for `number` calls in a row, in wall time or this thread's CPU time."""
        return float(self._seconds(entry, arguments, workspace, parallel_for, pool, number, wall))

    def spoil_stack(self) -> None:
        """Fill the next 256 KiB of this thread's stack with NaN, so that it shows if a program reads a variable before initialising it."""
        self._spoil_stack()

    def spin(self, length: int) -> float:
        """Seconds for a fixed chain of `length` dependent multiplications."""
        return float(self._spin(length))

    def guarded(self, size: int, band: int, far: int) -> int:
        """Address of `size` bytes with guard bands; raises MemoryError."""
        found = self._guarded(size, band, far)
        if not found:
            raise MemoryError(f"not enough memory for a buffer of {size} bytes")
        return int(found)

    def flush(self, address: int, size: int) -> None:
        """Write through a buffer, one byte in each cache line."""
        self._flush(address, size)

    def note_faults(self, descriptor: int) -> None:
        """On a fatal signal, write one JSON line to `descriptor` before this process dies."""
        self._note_faults(descriptor)

    def die_with_parent(self) -> None:
        """Have this process killed when its parent dies (Linux)."""
        self._die_with_parent()
