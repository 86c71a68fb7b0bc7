"""Runs a saved network without PyTorch: NumPy arrays in, NumPy arrays out, one call into C for each run."""

from __future__ import annotations

import ctypes
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.library_cache import kept_library
from ansor.codegen.pool_library import bring_pool, shared_pool
from ansor.codegen.toolchain import find_compiler
from ansor.errors import ArgumentError, ArgumentTypeError, CacheError, MeasureError, ModelError, OutOfRangeError, ToolchainError
from ansor.graph.network_memory import NetworkMemory
from ansor.graph.plan import ARENA, NetworkPlan, Place, PlacedArray, nest, out_of_range
from ansor.measure.machine_identity import processor_identity
from ansor.networks.plan_code import ENTRY
from ansor.networks.saved_network import SavedNetwork
from ansor.networks.saving import built
from ansor.support.forked import Locked
from ansor.support.html_text import table
from ansor.support.text import counted, first_line, format_bytes

Array = NDArray[np.generic]


def loaded(saved: SavedNetwork, place: Path) -> LoadedNetwork:
    """A network that was read from a place. On another processor it is built again from its C, once. Raises MeasureError if that is impossible, or if it is
    damaged."""
    if not saved.constants and saved.plan.room.constants:
        raise MeasureError(f"{place}: this network is one of several sizes, which share their constants; load the folder {place.parent}")
    try:
        bring_pool(saved.pool)
        if saved.processor != processor_identity():
            return LoadedNetwork(saved, ctypes.CDLL(str(_rebuilt(saved, place))))
        with tempfile.TemporaryDirectory(prefix="ansor-network-") as private:  # a path that dlopen has never seen, and that no other process writes to
            library = Path(private) / "network.so"
            library.write_bytes(saved.library)
            return LoadedNetwork(saved, ctypes.CDLL(str(library)))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise MeasureError(f"{place}: the saved network cannot be loaded: {error}; save it again") from error


def _rebuilt(saved: SavedNetwork, place: Path) -> Path:
    """The library for this processor, from the cache folder if it was built before. The C texts are unchanged, so the places of the plan are still right."""
    try:
        toolchain = CToolchain(find_compiler(), saved.mcpu)
        words = (processor_identity(), toolchain.version, *toolchain.flags, *saved.texts.values())
        key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
        return kept_library(f"network-{key}", lambda output: _build(saved, toolchain, output))
    except (ToolchainError, CacheError) as error:
        raise MeasureError(f"{place}: the network is for {saved.processor}, and its C does not build for this processor, {processor_identity()} "
                           f"({first_line(error)}); compile and save it here") from error  # fmt: skip


def _build(saved: SavedNetwork, toolchain: CToolchain, output: Path) -> None:
    built(tuple(saved.texts.values()), toolchain, output)


class LoadedNetwork(Locked):
    """Calls like the network that was saved, with the arrays of its inputs in their order, or by name. Calls from several threads take turns.

    `plan`: what a run does.
    """

    def __init__(self, saved: SavedNetwork, library: ctypes.CDLL) -> None:
        super().__init__()
        self.plan: NetworkPlan = saved.plan
        self._run = library[ENTRY]
        self._run.restype, self._run.argtypes = ctypes.c_int64, [ctypes.c_void_p] * 5
        room = self.plan.room
        memory = NetworkMemory(room.workspace)
        self._arena, self._workspace = memory.zeros((room.arena,), "uint8"), memory.workspace
        self._constants: Array = np.frombuffer(saved.constants, np.uint8)  # keeps the mapped file
        if self._constants.nbytes != room.constants:
            raise ValueError(f"it has {self._constants.nbytes} bytes of constants instead of {room.constants}")
        self._inputs = {one.name: self._view(one) for one in self.plan.inputs}
        self._outputs = [self._view(one) for one in self.plan.outputs]
        self._running = False
        if self.plan.threads > 1:
            shared_pool(self.plan.threads)  # built and started now, not at the first call

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{one.dtype}{list(one.shape)}" for one in several) for several in (self.plan.inputs, self.plan.outputs))
        room = self.plan.room
        memory = f"{format_bytes(room.arena)} of memory, {format_bytes(room.constants)} of constants"
        return f"LoadedNetwork({inputs} -> {outputs}; {counted(len(self.plan.calls), 'step')}; {memory})"

    def _repr_html_(self) -> str:
        every = [("input", one) for one in self.plan.inputs] + [("output", one) for one in self.plan.outputs]
        return table(repr(self), ("name", "role", "dtype", "shape"), [(one.name, role, one.dtype, " x ".join(map(str, one.shape))) for role, one in every])

    def __reduce__(self) -> NoReturn:
        refuse_to_copy()

    def __call__(self, *args: Array, **named: Array) -> object:
        """Raises ArgumentError or ArgumentTypeError, naming the input, for anything but arrays of the shapes and dtypes that the network is for, and
        OutOfRangeError, an IndexError, for indices outside the table that they look up."""
        return nest(self.plan.results, self.run(in_order(self.plan.inputs, args, named)))

    def run(self, given: Sequence[Array]) -> list[Array]:
        """The results, not nested, for the inputs in order; raises what a call raises."""
        for one, array in zip(self.plan.inputs, given, strict=True):
            check_array(one, array)
        with self.lock:
            if self._running:
                raise ModelError("asked to call a network while it is running, from a finalizer or a signal handler; call it afterwards")
            self._running = True
            try:
                for place, array in zip(self._inputs.values(), given, strict=True):
                    np.copyto(place, array)
                self._run_once()
                return [array.copy() for array in self._outputs]
            finally:
                self._running = False

    def after_fork(self) -> None:
        """Forget the calls of other threads: these threads do not exist in a forked child."""
        self._running = False

    def _run_once(self) -> None:
        pool = shared_pool(self.plan.threads) if self.plan.threads > 1 else None  # fetched for each run: a forked process has its own
        memories = (self._arena.ctypes.data, self._constants.ctypes.data, self._workspace.ctypes.data)
        failed = self._run(*memories, pool.parallel_for if pool else None, pool.handle if pool else None)
        if failed >= 0:
            check = self.plan.checks[failed]
            indices = self._bytes(check.place, check.count * np.dtype(check.dtype).itemsize).view(check.dtype)
            raise OutOfRangeError(out_of_range(check.name, indices, check.rows))

    def _view(self, one: PlacedArray) -> Array:
        size = int(np.prod(one.shape, dtype=np.int64)) * np.dtype(one.dtype).itemsize
        return self._bytes(one.place, size).view(one.dtype).reshape(one.shape)

    def _bytes(self, place: Place, size: int) -> Array:
        found = (self._arena if place.memory == ARENA else self._constants)[place.offset : place.offset + size]
        if found.nbytes != size:
            raise ValueError(f"{size} bytes at {place.offset} are outside the {place.memory}")
        return found


def in_order(inputs: Sequence[PlacedArray], args: tuple[Array, ...], named: Mapping[str, Array]) -> list[Array]:
    """The arrays of a call, in the order of the inputs. Raises ArgumentTypeError if there is one too many, or too few."""
    names = [one.name for one in inputs]
    late = names[len(args) :]
    if len(args) > len(names) or set(named) != set(late):
        found = f"{counted(len(args), 'array')} by position" + (f" and {', '.join(named)} by name" if named else "")
        raise ArgumentTypeError(f"the network was called with {found}; it takes {', '.join(names) or 'none'}, in this order or by name")
    return [*args, *(named[name] for name in late)]


def check_array(wanted: PlacedArray, array: object, axis: int | None = None) -> None:
    """Raises ArgumentError or ArgumentTypeError for anything but an array as wanted. axis: a dimension that may have any extent."""
    shape = ", ".join("any" if place == axis else str(extent) for place, extent in enumerate(wanted.shape))
    takes = f"the network takes {wanted.dtype} of shape ({shape}{',' * (len(wanted.shape) == 1)})"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ArgumentTypeError(f"{wanted.name} is a {type(array).__name__}; {takes}, as a NumPy array without a mask")
    if array.dtype != np.dtype(wanted.dtype):
        raise ArgumentTypeError(f"{wanted.name} is an array of {array.dtype}; {takes}: convert it with .astype({wanted.dtype!r})")
    fits = array.ndim == len(wanted.shape)
    if not fits or any(array.shape[place] != extent for place, extent in enumerate(wanted.shape) if place != axis):
        raise ArgumentError(f"{wanted.name} is an array of shape {array.shape}; {takes}")


def refuse_to_copy() -> NoReturn:
    """Raises ModelError for a loaded network."""
    raise ModelError("asked to copy or pickle a loaded network, which is bound to memory of this process; load it again where it is needed")
