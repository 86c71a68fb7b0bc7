"""The thread pool on the threads of an OpenMP runtime: PyTorch's, and one that is pretended."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from ansor.codegen.pool_library import open_pool, pool_library, shared_pool, use_openmp
from ansor.codegen.toolchain import cached_library, find_compiler
from tests.codegen.test_pool_library import BODY, covers, pieces

pytestmark = pytest.mark.compiler
Loop = Callable[[Callable[[int | None, int, int], None], int], None]

PRETENDED = r"""
#include <pthread.h>
#include <time.h>
static int loops, threads = 2, within, late;
static _Thread_local int number;
static void (*work)(void *);
static void *second(void *data) {
  number = 1;
  work(data);
  return 0;
}
void run_second(void *data, int stack) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  pthread_create(&thread, &attributes, second, data);
  pthread_join(thread, 0);
  pthread_attr_destroy(&attributes);
}
static int stack;
void GOMP_parallel(void (*body)(void *), void *data, unsigned count, unsigned flags) {
  loops += count == (unsigned)threads && !flags;
  within = 1;
  work = body;
  if (stack) run_second(data, stack);
  body(data);
  within = 0;
  if (late) nanosleep(&(struct timespec){0, late * 1000000}, 0);
}
int omp_get_thread_num(void) { return number; }
int omp_get_max_threads(void) { return threads; }
int omp_in_parallel(void) { return within; }
int loops_run(void) { return loops; }
void set(int new_threads, int new_late) { threads = new_threads; late = new_late; }
void set_stack(int bytes) { stack = bytes; }
"""


@pytest.fixture(scope="module")
def library() -> Path:
    return pool_library(find_compiler())


@contextmanager
def pool(library: Path, threads: int, runtime: ctypes.CDLL) -> Iterator[Loop]:
    """A function that runs a body over [0, n) on `threads` threads of a runtime."""
    opened = open_pool(library, threads)
    assert use_openmp(library, opened, runtime)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_long)(opened.parallel_for)
    yield lambda body, n: run(opened.handle, BODY(body), None, n)
    ctypes.CDLL(str(library)).ansor_pool_destroy(ctypes.c_void_p(opened.handle))


@contextmanager
def torch_with(threads: int) -> Iterator[ctypes.CDLL]:
    """PyTorch with so many threads, which are there."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.ones(1 << 18).add_(1)
    try:
        yield ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def pretended() -> ctypes.CDLL:
    """A runtime of one thread that says it has two; of two after `set_stack`, the second of which has so many bytes of stack and comes first."""
    runtime = ctypes.CDLL(str(cached_library(find_compiler(), "pretended-openmp", PRETENDED, flags=("-pthread",))))
    runtime.set(2, 0)
    runtime.set_stack(0)
    return runtime


def native_threads() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}


def who_works(loop: Loop) -> set[int]:
    """Threads that meet in a loop of two pieces."""
    met, found = threading.Barrier(2, timeout=20), set[int]()

    def body(_: int | None, begin: int, end: int) -> None:
        found.add(threading.get_native_id())
        met.wait()

    loop(body, 2)
    return found


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 7, 1000, 1 << 31, (1 << 62) + 1])
def test_every_iteration_runs_once(library: Path, threads: int, n: int) -> None:
    with torch_with(threads) as runtime, pool(library, threads, runtime) as loop:
        for _ in range(20):
            assert covers(pieces(loop, n), n)


def test_torch_threads_work_where_there_are_as_many(library: Path) -> None:
    with torch_with(2) as runtime:
        before = native_threads()
        with pool(library, 2, runtime) as loop:
            assert who_works(loop) <= before
            torch.set_num_threads(1)
            assert len(who_works(loop) - before) == 1  # a worker of the pool


def test_a_loop_within_a_loop(library: Path) -> None:
    inner: list[bool] = []
    with torch_with(2) as runtime, pool(library, 2, runtime) as loop:
        loop(lambda _, begin, end: inner.extend(covers(pieces(loop, 10), 10) for _ in range(begin, end)), 6)
    assert inner == [True] * 6


def test_several_callers(library: Path) -> None:
    wrong: list[int] = []

    def call(loop: Loop) -> None:
        wrong.extend(n for _ in range(20) for n in range(12) if not covers(pieces(loop, n), n))

    with torch_with(2) as runtime, pool(library, 2, runtime) as loop:
        callers = [threading.Thread(target=call, args=(loop,)) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not wrong


def test_a_runtime_is_used_but_not_with_another_number_of_threads(library: Path, pretended: ctypes.CDLL) -> None:
    with pool(library, 2, pretended) as loop:
        before = pretended.loops_run()
        assert covers(pieces(loop, 100), 100) and pretended.loops_run() == before + 1
        pretended.set(3, 0)
        assert covers(pieces(loop, 100), 100) and pretended.loops_run() == before + 1


def test_a_runtime_whose_threads_come_late_is_left_alone_for_a_while(library: Path, pretended: ctypes.CDLL) -> None:
    with pool(library, 2, pretended) as loop:
        before = pretended.loops_run()
        pretended.set(2, 30)
        for _ in range(10):  # the first is 30 ms late: 600 ms without
            assert covers(pieces(loop, 100), 100)
        assert pretended.loops_run() == before + 1
        pretended.set(2, 0)
        deadline = time.monotonic() + 20
        while pretended.loops_run() == before + 1 and time.monotonic() < deadline:
            pieces(loop, 2)
        assert pretended.loops_run() == before + 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere stacks are not looked at")
@pytest.mark.parametrize(("stack", "enough"), [(64 << 10, False), (4 << 20, True)])
def test_threads_without_a_stack_for_tiles_do_not_work(stack: int, enough: bool, library: Path, pretended: ctypes.CDLL) -> None:
    here, before = threading.get_native_id(), pretended.loops_run()
    pretended.set_stack(stack)
    with pool(library, 2, pretended) as loop:
        found: set[int] = set()
        loop(lambda *_: found.add(threading.get_native_id()), 2)
        assert (found == {here}) is not enough
        assert covers(pieces(loop, 100), 100)
        assert enough or pretended.loops_run() == before + 1


def test_what_is_no_runtime_is_not_used(library: Path) -> None:
    opened = open_pool(library, 2)
    assert not use_openmp(library, opened, ctypes.CDLL(str(library)))
    ctypes.CDLL(str(library)).ansor_pool_destroy(ctypes.c_void_p(opened.handle))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_in_a_forked_process_nobody_waits_for_threads_of_its_parent(library: Path) -> None:
    with torch_with(2) as runtime, pool(library, 2, runtime) as loop:
        pieces(loop, 100)
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit(0 if pieces(loop, 100) == [(0, 100)] and _shared() else 1)
        assert os.waitpid(child, 0)[1] == 0


def _shared() -> bool:
    """Whether the pool of a process does its work."""
    shared = shared_pool(2)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_long)(shared.parallel_for)
    return covers(pieces(lambda body, n: run(shared.handle, BODY(body), None, n), 100), 100)


def test_the_pool_of_a_process_shares_torch_threads(library: Path) -> None:
    with torch_with(2) as runtime, pool(library, 2, runtime) as loop:
        shared = shared_pool(2)
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_long)(shared.parallel_for)
        assert who_works(lambda body, n: run(shared.handle, BODY(body), None, n)) == who_works(loop)
