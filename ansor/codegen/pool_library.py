"""The thread pool of generated code: built once; a process has one pool per number of threads."""

import ctypes
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.errors import ToolchainError
from ansor.support.loaded import loaded_torch

SOURCE = Path(__file__).with_name("thread_pool.c")


def pool_library(compiler: Compiler) -> Path:
    """The shared library of `thread_pool.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "thread-pool", SOURCE.read_text(), flags=("-pthread",))


@dataclass(frozen=True, slots=True)
class Pool:
    """A running pool. Several callers may use it at once: one of them gets the workers, the others run alone."""

    parallel_for: int  # address of ansor_parallel_for
    handle: int  # what ansor_pool_create returned


def open_pool(library: Path | ctypes.CDLL, threads: int) -> Pool:
    """A new pool of `threads` threads (the caller is one of them). Raises OSError if it cannot be created."""
    loaded = _loaded(library)
    loaded.ansor_pool_create.restype = ctypes.c_void_p
    loaded.ansor_pool_create.argtypes = [ctypes.c_int]
    handle = loaded.ansor_pool_create(threads)
    address = ctypes.cast(loaded.ansor_parallel_for, ctypes.c_void_p).value
    if not handle or not address:
        raise OSError(f"a pool of {threads} threads could not be created")
    return Pool(address, handle)


OPENMP = ("GOMP_parallel", "omp_get_thread_num", "omp_get_max_threads", "omp_in_parallel")
"""The functions of an OpenMP runtime that the pool needs. `GOMP_parallel` is GCC's; LLVM's and Intel's runtimes have it too."""


def _loaded(library: Path | ctypes.CDLL) -> ctypes.CDLL:
    return ctypes.CDLL(str(library)) if isinstance(library, Path) else library


def use_openmp(library: Path | ctypes.CDLL, pool: Pool, runtime: ctypes.CDLL) -> bool:
    """Let the threads of an OpenMP runtime do a pool's work if it has as many; False if `runtime`, with its dependencies, is no such runtime."""
    try:
        functions = [ctypes.cast(getattr(runtime, name), ctypes.c_void_p) for name in OPENMP]
    except AttributeError:
        return False
    table = (ctypes.c_void_p * len(functions))(*functions)
    _loaded(library).ansor_pool_use_openmp(ctypes.c_void_p(pool.handle), table)
    return True


@dataclass(frozen=True, slots=True)
class _BundledLibrary:
    """A library brought by something saved. It stays loaded; its file is gone."""

    content: bytes
    loaded: ctypes.CDLL


_bundled: _BundledLibrary | None = None
_pools: dict[int, Pool] = {}
_apart: set[int] = set()  # pools created before PyTorch was loaded, which do not use its threads
_forked = False
_pools_lock = threading.Lock()


def shared_pool(threads: int, compiler: Compiler | None = None) -> Pool:
    """This process's pool of `threads` threads; it lives as long as the process. Raises ToolchainError if it cannot be created.

    If PyTorch is loaded, its OpenMP threads do the work of a pool of equal size.
    """
    known = _pools.get(threads)  # the usual case, without a lock
    if known is not None and (threads not in _apart or loaded_torch() is None):
        return known
    with _pools_lock:
        library = _library(compiler)
        if threads not in _pools:
            try:
                _pools[threads] = open_pool(library, threads)
            except OSError as error:
                raise ToolchainError(f"asked for a pool of {threads} threads, which cannot be created: {error}; ask for fewer threads") from error
            if not _forked:
                _apart.add(threads)
        torch = loaded_torch()
        if threads in _apart and torch is not None:
            _apart.remove(threads)
            _share_with_torch(library, _pools[threads], torch)
        return _pools[threads]


def _library(compiler: Compiler | None) -> Path | ctypes.CDLL:
    """Build the library here; without a compiler, use the saved one."""
    try:
        return pool_library(compiler or find_compiler())
    except ToolchainError:
        if _bundled is None:
            raise
        return _bundled.loaded


def bring_pool(content: bytes) -> None:
    """Keep the library of a saved kernel or network, for a process without a compiler; b"" brings none.

    Raises OSError if it does not load.
    """
    global _bundled
    if content and _bundled is None:
        with tempfile.TemporaryDirectory(prefix="ansor-pool-") as private:  # no other user writes to it
            library = Path(private) / "pool.so"
            library.write_bytes(content)
            _bundled = _BundledLibrary(content, ctypes.CDLL(str(library)))


def pool_bytes(threads: int) -> bytes:
    """The library to save for `bring_pool`: b"" for one thread. Raises ToolchainError if it can neither be built nor was brought."""
    if threads == 1:
        return b""
    try:
        return pool_library(find_compiler()).read_bytes()
    except ToolchainError:
        if _bundled is None:
            raise
        return _bundled.content


def _share_with_torch(library: Path | ctypes.CDLL, pool: Pool, torch: ModuleType) -> None:
    where = Path(str(torch.__file__)).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (where / name).exists():
            use_openmp(library, pool, ctypes.CDLL(str(where / name)))


def _forget_pools() -> None:
    """Reset after a fork: threads do not survive it, so the child must create its own pools. OpenMP's are not recreated: a loop would wait forever."""
    global _pools_lock, _forked
    _pools.clear()
    _apart.clear()
    _forked = True
    _pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
