"""The thread pool through its C interface; bodies are Python functions, which any thread may call."""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansor.codegen.pool_library import SOURCE, open_pool, pool_library
from ansor.codegen.toolchain import find_compiler

pytestmark = pytest.mark.compiler
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
Body = Callable[[int | None, int, int], None]
Loop = Callable[[Body, int], None]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(pool_library(find_compiler())))


@contextmanager
def pool(library: ctypes.CDLL, threads: int) -> Iterator[Loop]:
    """A function that runs a body over [0, n) on `threads` threads."""
    opened = open_pool(Path(library._name), threads)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_long)(opened.parallel_for)
    yield lambda body, n: run(opened.handle, BODY(body), None, n)
    library.ansor_pool_destroy(ctypes.c_void_p(opened.handle))


def pieces(loop: Loop, n: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    loop(lambda _, begin, end: found.append((begin, end)), n)
    return sorted(found)


def covers(found: list[tuple[int, int]], n: int) -> bool:
    """Every iteration once: the pieces are not empty and lie end to end from 0 to n."""
    ends = [0, *(end for _, end in found)]
    return [begin for begin, _ in found] == ends[:-1] and ends[-1] == n and all(begin < end for begin, end in found)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 1000, (1 << 31) - 1, 1 << 31, (1 << 40) + 7, (1 << 62) + 1])
def test_every_iteration_runs_once(library: ctypes.CDLL, threads: int, n: int) -> None:
    with pool(library, threads) as loop:
        for _ in range(3):
            assert covers(pieces(loop, n), n)


def test_nothing_to_do_calls_nothing(library: ctypes.CDLL) -> None:
    with pool(library, 2) as loop:
        assert pieces(loop, 0) == pieces(loop, -5) == []


def test_many_loops_in_a_row_and_after_rests(library: ctypes.CDLL) -> None:
    with pool(library, 3) as loop:
        for number in range(1500):
            assert covers(pieces(loop, number % 40), number % 40)
            if number % 100 == 0:
                time.sleep(0.001)  # the workers fall asleep


def test_workers_take_part(library: ctypes.CDLL) -> None:
    """A body that waits for another thread to come ends only if one comes."""
    met = threading.Barrier(2, timeout=20)
    with pool(library, 2) as loop:
        for _ in range(20):
            loop(lambda *_: (met.wait(), None)[1], 2)
            time.sleep(0.0005)


def test_one_slow_piece_leaves_the_rest_to_others(library: ctypes.CDLL) -> None:
    """The caller is held up in its first piece until everything else is done, by somebody else."""
    done: list[int] = []
    here, held_up = threading.get_ident(), threading.Event()

    def body(_: int | None, begin: int, end: int) -> None:
        if threading.get_ident() != here:
            assert held_up.wait(20), "the caller has a piece, before others take from its share"
            done.extend(range(begin, end))
            return
        held_up.set()
        deadline = time.monotonic() + 20
        while len(done) < 64 - 8 and time.monotonic() < deadline:
            time.sleep(0.001)
        done.extend(range(begin, end))

    with pool(library, 2) as loop:
        loop(body, 64)
    assert done[-8:] == list(range(8)) and sorted(done) == list(range(64))


def test_a_loop_within_a_loop(library: ctypes.CDLL) -> None:
    inner: list[bool] = []
    with pool(library, 2) as loop:
        loop(lambda _, begin, end: inner.extend(covers(pieces(loop, 10), 10) for _ in range(begin, end)), 6)
    assert inner == [True] * 6


def test_several_callers(library: ctypes.CDLL) -> None:
    wrong: list[int] = []

    def call(loop: Loop) -> None:
        wrong.extend(n for _ in range(30) for n in range(12) if not covers(pieces(loop, n), n))

    with pool(library, 3) as loop:
        callers = [threading.Thread(target=call, args=(loop,)) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_in_a_forked_process_the_caller_runs_alone(library: ctypes.CDLL) -> None:
    with pool(library, 3) as loop:
        pieces(loop, 100)
        child = os.fork()
        if not child:
            signal.alarm(20)
            alone = pieces(loop, 100) == [(0, 100)]
            library.ansor_pool_destroy(ctypes.c_void_p(open_pool(Path(library._name), 3).handle))
            os._exit(0 if alone else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert covers(pieces(loop, 100), 100)


def test_a_pool_ends_at_once_or_while_it_sleeps(library: ctypes.CDLL) -> None:
    before = _threads()
    for rest in (0, 0, 0.001):
        with pool(library, 4):
            assert _threads() == before + 3
            time.sleep(rest)
    assert _threads() == before


def _threads() -> int:
    """Threads of this process, those of C included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        pytest.skip("this system does not say how many threads a process has")


STRESS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
void *ansor_pool_create(int); void ansor_pool_destroy(void *); void ansor_parallel_for(void *, void (*)(void *, long, long), void *, long);
static void add(void *count, long begin, long end) { for (long i = begin; i < end; i++) ((int *)count)[i]++; }
static int wrong(void *pool, long n) {
  int bad = 0, *count = calloc((size_t)n + 1, sizeof *count);
  ansor_parallel_for(pool, add, count, n);
  for (long i = 0; i <= n; i++) bad |= count[i] != (i < n);
  free(count);
  return bad;
}
static _Thread_local int number, within;
static int most;
struct team { void (*body)(void *); void *data; int number; };
static void *member(void *given) {
  struct team *team = given;
  number = team->number;
  within = 1;
  team->body(team->data);
  number = within = 0;
  return NULL;
}
static void parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
  pthread_t others[8];
  struct team teams[8];
  (void)flags;
  for (unsigned t = 0; t < threads; t++) teams[t] = (struct team){body, data, (int)t};
  for (unsigned t = 1; t < threads; t++) pthread_create(&others[t], NULL, member, &teams[t]);
  member(&teams[0]);
  for (unsigned t = 1; t < threads; t++) pthread_join(others[t], NULL);
}
static int thread_num(void) { return number; }
static int max_threads(void) { return most; }
static int in_parallel(void) { return within; }
static void *const openmp[] = {parallel, thread_num, max_threads, in_parallel};
void ansor_pool_use_openmp(void *, void *const *);
static void *caller(void *pool) {
  long bad = 0;
  for (long i = 0; i < 3000; i++) bad |= wrong(pool, i % 37);
  return (void *)bad;
}
int main(void) {
  int bad = 0;
  for (int threads = 1; threads < 5; threads++) {
    void *pool = ansor_pool_create(threads), *other_bad;
    for (int i = 0; i < 500; i++) bad |= wrong(pool, 50);
    pthread_t other;
    pthread_create(&other, NULL, caller, pool);
    bad |= caller(pool) != NULL;
    pthread_join(other, &other_bad);
    bad |= other_bad != NULL;
    most = threads;
    ansor_pool_use_openmp(pool, openmp);
    pthread_create(&other, NULL, caller, pool);
    ansor_pool_use_openmp(pool, openmp);
    for (int i = 0; i < 100; i++) bad |= wrong(pool, 50);
    pthread_join(other, &other_bad);
    usleep(300);
    bad |= other_bad != NULL || wrong(pool, 1000);
    ansor_pool_destroy(pool);
  }
  for (int i = 0; i < 50; i++) ansor_pool_destroy(ansor_pool_create(4));
  return bad;
}
"""


def test_no_data_races(tmp_path: Path) -> None:
    """The thread sanitizer of the system's compiler watches many loops of two callers, on workers and on threads that a runtime of OpenMP would make."""
    system = shutil.which("gcc") or shutil.which("clang")
    source, program = tmp_path / "stress.c", tmp_path / "stress"
    source.write_text(STRESS)
    built = system and subprocess.run(
        [system, "-O1", "-g", "-fsanitize=thread", "-pthread", "-DLATE_NANOSECONDS=1000000000", str(source), str(SOURCE), "-o", str(program)],
        capture_output=True, timeout=60,
    )
    if not built or built.returncode:
        pytest.skip("this system has no compiler with a thread sanitizer")
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("the thread sanitizer does not run on this system")
    assert (ran.returncode, ran.stderr) == (0, "")


PLACES = r"""
#include SOURCE
#include <stdio.h>
/* Where a thread that runs on `here`, where the caller was seen, is afterwards. */
static int moved_to(struct pool *pool, int here) {
  atomic_store(&pool->shares[0].place, here);
  step_aside(pool, 1);
  return sched_getcpu();
}
int main(void) {
  struct pool *pool = ansor_pool_create(2);
  cpu_set_t allowed, after;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int here = 0; here < CPU_SETSIZE; here++) {
    if (!CPU_ISSET(here, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    sched_setaffinity(0, sizeof one, &one);
    int alone = moved_to(pool, here), moved = 0;
    sched_getaffinity(0, sizeof after, &after);
    int stays = alone == here && CPU_EQUAL(&after, &one);
    for (int k = 0; k < 20 && !moved; k++) { /* a busy system may move it back at any time */
      sched_setaffinity(0, sizeof one, &one);
      sched_setaffinity(0, sizeof allowed, &allowed);
      moved = moved_to(pool, here) != here;
    }
    sched_getaffinity(0, sizeof after, &after);
    int undisturbed = moved_to(pool, (here + 1) % CPU_SETSIZE) >= 0 && CPU_EQUAL(&after, &allowed);
    printf("%d%d%d ", stays, moved || CPU_COUNT(&allowed) == 1, undisturbed);
  }
  return 0;
}
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not let threads choose their processors")
def test_a_thread_where_the_caller_runs_moves_elsewhere_within_its_affinity(tmp_path: Path) -> None:
    source, program = tmp_path / "places.c", tmp_path / "places"
    source.write_text(PLACES)
    command = [*find_compiler().command, "-O1", "-std=gnu11", "-pthread", f'-DSOURCE="{SOURCE}"', str(source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout.split()) == (0, ["111"] * len(os.sched_getaffinity(0)))


def test_it_builds_without_warnings(tmp_path: Path) -> None:
    """Not linked: without our cache folder, the embedded compiler would build its runtime first."""
    command = [*find_compiler().command, "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-c", "-fPIC", "-pthread", "-fno-sanitize=all"]
    built = subprocess.run([*command, str(SOURCE), "-o", str(tmp_path / "pool.o")], capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stderr
