"""Operators that wait in a queue: what flushes it, what is copied, and that what comes out is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from ansor.errors import ArgumentError, MachineTrouble
from ansor.vta.configuration import CORE_32, DEFAULT, Configuration, Memory
from ansor.vta.functional import RaceError
from ansor.vta.runtime import operator_queue
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.operator_queue import Buffer, Limits, Queue, Reason
from ansor.vta.runtime.simulators import CycleDriver, FunctionalDriver
from tests.opencl import need_opencl
from tests.vta_operators import Int8, added, adding, multiplied, multiplying, rows_layout, weights_layout

pytestmark = pytest.mark.compiler
DRAM_BYTES = 1 << 19
LIMITS = Limits(4096, 4096)
ROWS, WIDTH = 5, 40


def int8(chance: random.Random, *shape: int) -> Int8:
    return np.random.default_rng(chance.getrandbits(32)).integers(-128, 128, shape, np.int8)


def opened(driver: Driver | None = None, limits: Limits = LIMITS) -> Queue:
    return Queue(driver or FunctionalDriver(DEFAULT, DRAM_BYTES, seed=1), limits)


def filled(queue: Queue, array: Int8) -> Buffer:
    found = queue.buffer(rows_layout(queue.driver.configuration, *array.shape))
    queue.write(found, array)
    return found


def room(queue: Queue, rows: int = ROWS, width: int = WIDTH) -> Buffer:
    return queue.buffer(rows_layout(queue.driver.configuration, rows, width))


def weights(queue: Queue, array: Int8) -> Buffer:
    found = queue.buffer(weights_layout(queue.driver.configuration, *array.shape))
    queue.write(found, array)
    return found


def opencl(core: Configuration) -> Driver:
    need_opencl()
    return OpenclDriver(core, DRAM_BYTES)


DRIVERS: dict[str, Callable[[Configuration], Driver]] = {
    "random order": lambda core: FunctionalDriver(core, DRAM_BYTES, seed=7), "cycles": lambda core: CycleDriver(core, DRAM_BYTES), "opencl": opencl,
}  # fmt: skip


@pytest.mark.parametrize("core", [DEFAULT, CORE_32, Configuration(batch=1, uop_bytes=7)], ids=str)
@pytest.mark.parametrize("driver", DRIVERS)
def test_random_chains_compute_what_numpy_does(driver: str, core: Configuration) -> None:
    """With reads, writes and frees between operators, queues that are short, and a core that does not hold all micro-ops."""
    chance, queue = random.Random(3), opened(DRIVERS[driver](core), Limits(300, 100))
    known = {}
    for _ in range(4):
        array = int8(chance, ROWS, WIDTH)
        known[filled(queue, array)] = array
    matrix = int8(chance, WIDTH, WIDTH)
    held = weights(queue, matrix)
    for _ in range(120):
        one, other = chance.choice(list(known)), chance.choice(list(known))
        done = chance.random()
        if done < 0.1:
            np.testing.assert_array_equal(queue.read(one), known[one])
        elif done < 0.2:
            known[one] = int8(chance, ROWS, WIDTH)
            queue.write(one, known[one])
        elif done < 0.3 and len(known) > 3:
            queue.free(one)
            del known[one]
        elif done < 0.65:
            known[target := room(queue)] = added(known[one], known[other])
            queue.enqueue(adding(core, ROWS, WIDTH), (one, other, target))
        else:
            shift = chance.choice([6, 7, 8])
            known[target := room(queue)] = multiplied(known[one], matrix, shift)
            queue.enqueue(multiplying(core, ROWS, WIDTH, WIDTH, shift), (one, held, target))
    for buffer, array in known.items():
        np.testing.assert_array_equal(queue.read(buffer), array)
    counts = queue.counts
    assert all(counts.runs[reason] for reason in Reason if reason != Reason.TOLD), counts
    assert counts.kernels_kept and counts.kernels_loaded


def test_each_reason_flushes_once_and_nothing_else_does() -> None:
    chance, queue = random.Random(1), opened()
    x, y = (filled(queue, int8(chance, ROWS, WIDTH)) for _ in range(2))
    z, spare, one = room(queue), room(queue), adding(DEFAULT, ROWS, WIDTH)

    def runs() -> dict[Reason, int]:
        return {reason: count for reason, count in queue.counts.runs.items() if count}

    def enqueue() -> None:
        queue.enqueue(one, (x, y, z))

    enqueue()
    enqueue()
    queue.read(x)  # nothing queued writes it
    queue.write(spare, int8(chance, ROWS, WIDTH))  # nothing queued uses it
    queue.free(spare)
    assert not runs()
    queue.read(z)
    queue.read(z)
    assert runs() == {Reason.READ: 1}
    enqueue()
    queue.write(x, int8(chance, ROWS, WIDTH))
    queue.write(x, int8(chance, ROWS, WIDTH))
    assert runs() == {Reason.READ: 1, Reason.WRITE: 1}
    enqueue()
    queue.free(y)
    assert runs() == {Reason.READ: 1, Reason.WRITE: 1, Reason.FREE: 1}
    queue.enqueue(one, (x, x, z))
    queue.synchronise()
    queue.synchronise()
    assert runs() == {Reason.READ: 1, Reason.WRITE: 1, Reason.FREE: 1, Reason.TOLD: 1}


@pytest.mark.parametrize("limits", [Limits(40, 4096), Limits(4096, 5)], ids=["instructions", "micro-ops"])
def test_a_queue_that_is_full_runs(limits: Limits) -> None:
    chance, queue = random.Random(1), opened(limits=limits)
    array = int8(chance, 8, WIDTH)
    x = filled(queue, array)
    for rows in range(1, 9):
        source = filled(queue, array[:rows])
        for _ in range(2):
            queue.enqueue(adding(DEFAULT, rows, WIDTH), (source, source, target := room(queue, rows)))
        np.testing.assert_array_equal(queue.read(target), added(array[:rows], array[:rows])) if rows == 8 else None
    assert queue.counts.runs[Reason.OVERFLOW] >= 1 and queue.counts.runs[Reason.READ] == 1
    np.testing.assert_array_equal(queue.read(x), array)


def residual_block(queue: Queue, chance: random.Random, wait: bool) -> tuple[Buffer, Int8]:
    """add(dense(dense(x)), x)."""
    array, matrices = int8(chance, ROWS, WIDTH), [int8(chance, WIDTH, WIDTH) for _ in range(2)]
    x, held = filled(queue, array), [weights(queue, matrix) for matrix in matrices]
    steps = [(multiplying(DEFAULT, ROWS, WIDTH, WIDTH), held[0]), (multiplying(DEFAULT, ROWS, WIDTH, WIDTH), held[1])]
    last = x
    for operator, constant in steps:
        queue.enqueue(operator, (last, constant, last := room(queue)))
        if wait:
            queue.synchronise()
    queue.enqueue(adding(DEFAULT, ROWS, WIDTH), (last, x, total := room(queue)))
    return total, added(multiplied(multiplied(array, matrices[0]), matrices[1]), array)


def test_a_residual_block_runs_with_one_synchronisation() -> None:
    queue = opened()
    total, expected = residual_block(queue, random.Random(5), wait=False)
    np.testing.assert_array_equal(queue.read(total), expected)
    counts = queue.counts
    assert (counts.synchronisations, counts.runs[Reason.READ], counts.operators, counts.barriers) == (1, 1, 3, 2)
    assert {kind: moved.count for kind, moved in counts.transfers.items()} == {"writes": 3, "reads": 1, "instructions": 1, "uops": 1}
    assert (counts.kernels_loaded, counts.kernels_kept) == (2, 1)
    events = queue.driver.events()
    assert sum(event.kind == "run" for event in events) == 1
    assert sum(event.bytes for event in events if event.kind == "instructions") == counts.transfers["instructions"].bytes == 16 * counts.instructions
    assert sum(event.bytes for event in events if event.kind == "write") == counts.transfers["writes"].bytes + counts.transfers["uops"].bytes


def test_many_operators_need_a_tenth_of_the_synchronisations() -> None:
    found = {}
    for wait in (False, True):
        queue, chance = opened(limits=Limits(1 << 14, 4096)), random.Random(2)
        array = int8(chance, ROWS, WIDTH)
        last, matrix = filled(queue, array), int8(chance, WIDTH, WIDTH)
        held = weights(queue, matrix)
        for _ in range(30):
            queue.enqueue(multiplying(DEFAULT, ROWS, WIDTH, WIDTH), (last, held, last := room(queue)))
            array = multiplied(array, matrix)
            if wait:
                queue.synchronise()
        np.testing.assert_array_equal(queue.read(last), array)
        counts = queue.counts
        found[wait] = (counts.synchronisations, counts.transfers["instructions"].count)
        assert (counts.transfers["uops"].count, counts.kernels_loaded, counts.kernels_kept) == (1, 1, 29)
    assert found == {False: (1, 1), True: (30, 30)}


def test_after_a_run_that_was_stopped_micro_ops_are_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queue, chance = opened(), random.Random(3)
    arrays = int8(chance, ROWS, WIDTH), int8(chance, ROWS, WIDTH)
    buffers = (*(filled(queue, one) for one in arrays), room(queue))
    operator = adding(DEFAULT, ROWS, WIDTH)

    def stopped(words: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(queue.driver, "run", stopped)
        queue.enqueue(operator, buffers)
        with pytest.raises(KeyboardInterrupt):
            queue.synchronise()
    queue.enqueue(operator, buffers)
    assert np.array_equal(queue.read(buffers[-1]), added(*arrays)) and queue.counts.kernels_loaded == 2


def test_without_barriers_operators_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_queue, "barrier", lambda core: np.zeros((0, 2), np.uint64))
    queue = opened()
    total, _ = residual_block(queue, random.Random(5), wait=False)
    with pytest.raises(RaceError):
        queue.read(total)


def test_what_does_not_fit_is_refused() -> None:
    queue, layout = opened(), rows_layout(DEFAULT, ROWS, WIDTH)
    x, y, z = (queue.buffer(layout) for _ in range(3))
    one, any_queue = adding(DEFAULT, ROWS, WIDTH), cast(Any, queue)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: queue.enqueue(one, (x, y)), "^asked to run an operator with 2 buffers, but it has 3 tensors: pass a buffer for each$"),
        (lambda: queue.enqueue(one, (x, y, x)), "^z is written, and its buffer is passed for another tensor, too: pass a buffer of its own$"),
        (lambda: queue.enqueue(one, (x, y, room(queue, 1, 16))), "^z is INP.*, of 240 bytes; the buffer has 16: pass one of the same size$"),
        (lambda: queue.enqueue(adding(CORE_32, ROWS, WIDTH), (x, y, z)), "^asked to run an operator for VTA 1x32x32"),
        (lambda: queue.write(x, np.zeros((ROWS, WIDTH), np.int32)), "^asked to write an array of int32 to a buffer of int8: convert it$"),
        (lambda: queue.write(x, np.zeros((2, 2), np.int8)), "^asked to lay out an array of shape"),
        (lambda: opened().read(x), "^asked to use a buffer at byte .* that this queue does not have: it was freed, or belongs to another queue$"),
        (lambda: any_queue.write(x, [[1]]), "^asked to write a list to a buffer; pass an array of int8$"),
        (lambda: any_queue.enqueue(one, (np.zeros((ROWS, WIDTH), np.int8), y, z)), "^asked to use an ndarray as a buffer; pass what Queue.buffer returned"),
        (lambda: any_queue.enqueue(one.to_text(), (x, y, z)), r"^asked to run a str; pass an Operator: operator_from_text\(program.source\)$"),
        (lambda: any_queue.buffer((ROWS, WIDTH)), r"^asked for a buffer of \(5, 40\); pass a TensorLayout"),
        (lambda: type(any_queue)("opencl"), "^asked for a queue of 'opencl'; pass a driver"),
        (lambda: Limits(0, 4), "^asked for a queue with a limit of 0 instructions; pass a whole number of at least 1$"),
        (lambda: opened(limits=Limits(8, 64)).enqueue(one, ()), "an operator with 0 buffers"),
        (lambda: opened(limits=Limits(10, DRAM_BYTES)), "^asked for 524288 micro-ops in the 524288 bytes of vta-functional: leave space for buffers$"),
    ]  # fmt: skip
    for asked, text in refused:
        with pytest.raises(ArgumentError, match=text):
            asked()
    short = opened(limits=Limits(8, 64))
    buffers = [short.buffer(layout) for _ in range(3)]
    with pytest.raises(ArgumentError, match="an operator of 11 instructions and 1 micro-ops in a queue for 8 instructions and 64 micro-ops: raise"):
        short.enqueue(one, buffers)
    with pytest.raises(MachineTrouble, match="free buffers, or give it more memory$"):
        room(queue, 1 << 15, 32)
    queue.free(x)
    with pytest.raises(ArgumentError, match="it was freed"):
        queue.free(x)
    assert queue.counts.operators == 0 and rows_layout(DEFAULT, 1, 1).memory == Memory.INP
