"""The thread pool of generated code: built once, one pool for each number of threads in a process."""

import ctypes
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.errors import ToolchainError

SOURCE = Path(__file__).with_name("thread_pool.c")


def pool_library(compiler: Compiler) -> Path:
    """The shared library of `thread_pool.c`. Raises ToolchainError when it does not build."""
    return cached_library(compiler, "thread-pool", SOURCE.read_text(), flags=("-pthread",))


@dataclass(frozen=True, slots=True)
class Pool:
    """A running pool. Several callers may use it at once: one of them gets the workers, the others run alone."""

    parallel_for: int  # address of ansor_parallel_for
    handle: int  # what ansor_pool_create returned


def open_pool(library: Path, threads: int) -> Pool:
    """A new pool of `threads` threads (the caller is one of them). Raises OSError when it cannot be made."""
    loaded = ctypes.CDLL(str(library))
    loaded.ansor_pool_create.restype = ctypes.c_void_p
    loaded.ansor_pool_create.argtypes = [ctypes.c_int]
    handle = loaded.ansor_pool_create(threads)
    address = ctypes.cast(loaded.ansor_parallel_for, ctypes.c_void_p).value
    if not handle or not address:
        raise OSError(f"a pool of {threads} threads could not be made")
    return Pool(address, handle)


_pools: dict[int, Pool] = {}
_pools_lock = threading.Lock()


def shared_pool(threads: int, compiler: Compiler | None = None) -> Pool:
    """This process's pool of `threads` threads; it lives as long as the process. Raises ToolchainError when it cannot be made."""
    known = _pools.get(threads)  # the usual case, for which no lock is needed
    if known is not None:
        return known
    with _pools_lock:
        if threads not in _pools:
            try:
                _pools[threads] = open_pool(pool_library(compiler or find_compiler()), threads)
            except OSError as error:
                raise ToolchainError(f"asked for a pool of {threads} threads, which cannot be made: {error}; ask for fewer threads") from error
        return _pools[threads]


def _forget_pools() -> None:
    """After a fork: threads do not survive it, so the child must make its own pools."""
    global _pools_lock
    _pools.clear()
    _pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
