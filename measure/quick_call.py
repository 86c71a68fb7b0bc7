"""Kernel calls with little overhead: C code checks all arguments, unless one must be converted or refused."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.source import Argument
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.errors import CacheError, ToolchainError

SOURCE = Path(__file__).with_name("quick_call.c")
MOST_COPIED = 1 << 20
"""The most bytes of an unaligned argument to copy. For larger ones, the slow path costs little in comparison, and keeps no memory."""
MOST_DIMENSIONS, MOST_ARGUMENTS = 16, 64
KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
"""NumPy's kinds -> DLPack's. DLPack has a number for bfloat16, too, but bfloat16 arrays do not give the buffer that this code needs."""

QuickCall = Callable[[tuple[object, ...], object], Any]
"""Inputs and `out` (or None) -> the call's result; None, with nothing done, if the slow path must be taken."""


@dataclass(frozen=True)
class Entry:
    """An entry point: addresses of the function, of its workspace, and of `parallel_for` and its pool (0 for one thread). `keep` is kept alive with it."""

    function: int
    workspace: int
    parallel_for: int
    pool: int
    keep: object


class _Argument(ctypes.Structure):
    _fields_ = (
        ("role", ctypes.c_int64), ("dimensions", ctypes.c_int64), ("bytes", ctypes.c_int64), ("shape", ctypes.c_int64 * MOST_DIMENSIONS),
        ("strides", ctypes.c_int64 * MOST_DIMENSIONS), ("format", ctypes.c_char * 8), ("code", ctypes.c_int64), ("bits", ctypes.c_int64),
        ("dtype", ctypes.c_void_p), ("tensor_dtype", ctypes.c_void_p), ("tensor_shape", ctypes.c_void_p), ("address", ctypes.c_void_p),
    )  # fmt: skip


class _Description(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("parallel_for", ctypes.c_void_p), ("pool", ctypes.c_void_p),
        ("arguments", ctypes.c_int64), ("most_copied", ctypes.c_int64), ("list", ctypes.c_void_p), ("array_type", ctypes.c_void_p),
        ("tensor_type", ctypes.c_void_p), ("parameter_type", ctypes.c_void_p), ("from_array", ctypes.c_void_p), ("keep", ctypes.py_object),
        ("numpy", ctypes.c_void_p), ("torch", ctypes.c_void_p),
    )  # fmt: skip


def quick_call_library(compiler: Compiler) -> Path:
    """The shared library of `quick_call.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "quick-call", SOURCE.read_text())


def quick_call(entry: Entry, arguments: Sequence[Argument], bound: Mapping[str, NDArray[np.generic]], tensors: bool) -> QuickCall | None:
    """A function that calls `entry`; None if these arguments, this NumPy or this machine need the slow path. tensors: it also takes PyTorch's.

    Not thread-safe: there is one workspace.
    """
    if len(arguments) > MOST_ARGUMENTS or not all(argument.name in bound or _is_plain(argument) for argument in arguments):
        return None
    make, numpy = _maker(), _numpy_functions()
    if make is None or not numpy:
        return None
    torch = sys.modules["torch"] if tensors else None
    kinds = [_Kind.of(argument, torch) for argument in arguments]
    items = [_described(argument, kind, bound.get(argument.name)) for argument, kind in zip(arguments, kinds, strict=True)]
    table = (_Argument * len(items))(*items)
    types = (np.ndarray, np.ndarray, np.ndarray, None) if torch is None else (np.ndarray, torch.Tensor, torch.nn.Parameter, torch.from_numpy)
    keep = (entry.keep, dict(bound), kinds, types)
    about = _Description(
        entry.function, entry.workspace, entry.parallel_for, entry.pool, len(items), MOST_COPIED, ctypes.addressof(table), *map(id, types), keep, numpy,
        _torch_functions(torch),
    )  # fmt: skip
    found: QuickCall | None = make(ctypes.addressof(about))
    return found


@dataclass(frozen=True)
class _Kind:
    """Objects whose addresses the C code compares with."""

    dtype: np.dtype[Any]
    tensor_dtype: object
    tensor_shape: tuple[int, ...]

    @classmethod
    def of(cls, argument: Argument, torch: Any) -> _Kind:
        return cls(np.dtype(argument.dtype), getattr(torch, argument.dtype, None), tuple(argument.shape))


@lru_cache
def _maker() -> Callable[[int], Any] | None:
    loaded = loaded_if_built(_library, "each call of a kernel takes tens of microseconds longer")
    if loaded is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    make = ctypes.PyDLL(loaded._name).ansor_quick_call  # holds the GIL
    make.argtypes, make.restype = [ctypes.c_void_p], ctypes.py_object
    found: Callable[[int], Any] = make
    return found


def _library() -> Path:
    try:
        return quick_call_library(find_compiler())
    except CacheError as error:  # a saved kernel needs neither compiler nor cache
        raise ToolchainError(str(error)) from error


def _is_plain(argument: Argument) -> bool:
    known = np.dtype(argument.dtype).kind in KINDS
    return known and argument.as_given and len(argument.shape) <= MOST_DIMENSIONS and 0 not in argument.shape


def _described(argument: Argument, kind: _Kind, bound: NDArray[np.generic] | None) -> _Argument:
    if bound is not None:
        return _Argument(role=2, bytes=bound.nbytes, address=bound.ctypes.data)
    empty = np.empty(argument.shape, kind.dtype)
    strides = tuple(stride // empty.itemsize for stride in empty.strides)
    return _Argument(
        role=int(argument.role == "output"), dimensions=empty.ndim, bytes=empty.nbytes, shape=empty.shape, strides=strides,
        format=empty.data.format.encode(), code=KINDS[kind.dtype.kind], bits=empty.itemsize * 8, dtype=id(kind.dtype),
        tensor_dtype=id(kind.tensor_dtype), tensor_shape=id(kind.tensor_shape),
    )  # fmt: skip


def _pointer(capsule: object, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name))


def _numpy_functions() -> int:
    """NumPy's C API table, found as extensions find it; 0 for versions whose table is unknown."""
    version = int(np.__version__.partition(".")[0])
    if version not in (1, 2):
        return 0
    module = importlib.import_module("numpy._core.multiarray" if version == 2 else "numpy.core.multiarray")
    return _pointer(module._ARRAY_API, None)


def _torch_functions(torch: Any) -> int:
    """PyTorch's DLPack C API table; 0 without PyTorch, or if the version has none or another layout."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None) if torch is not None else None
    if capsule is None:
        return 0
    address = _pointer(capsule, b"dlpack_exchange_api")
    return address if ctypes.c_uint32.from_address(address).value == 1 else 0
