"""A fork while another thread is in a call: the child calls, too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.graph.library import library_kernels
from ansor.graph.network import CompiledNetwork, torch_threads
from ansor.graph.tasks import extract
from ansor.support.forked import Locked
from ansor.zoo.operators import matmul

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
CHILDREN = 8
SECONDS = 20


def children_finish(call: Callable[[], bool]) -> None:
    """Forks again and again while another thread calls; each child calls as well, and ends within a bounded time."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            call()

    other = threading.Thread(target=work)
    other.start()
    try:
        for _ in range(CHILDREN):
            child = os.fork()
            if not child:
                signal.alarm(SECONDS)
                os._exit(0 if call() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        other.join()


def test_a_lock_that_is_held_is_free_in_the_child() -> None:
    owner, held, done = Locked(), threading.Event(), threading.Event()

    def hold() -> None:
        with owner.lock:
            held.set()
            done.wait(SECONDS)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(SECONDS)
    child = os.fork()
    if not child:
        os._exit(0 if owner.lock.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0 and not owner.lock.acquire(blocking=False)
    done.set()
    other.join()


def test_a_thread_that_has_the_lock_gets_it_again() -> None:
    owner = Locked()
    with owner.lock:
        assert owner.lock.acquire(blocking=False)


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [16, 300])  # results of 360 kB come from memory that is used again
def test_kernels(threads: int, size: int) -> None:
    kernel = ansor.auto_schedule(matmul, (size, size, size), f"cpu -threads={threads}", trials=0)
    a, b = torch.randn(size, size), torch.randn(size, size)
    wanted = (a.double() @ b.double()).numpy()

    def call() -> bool:
        return bool(np.abs(np.asarray(kernel(a, b)) - wanted).max() < 1e-3)

    children_finish(call)


@pytest.mark.torch
def test_threads_of_pytorch() -> None:
    """They do not survive a fork either, and PyTorch would wait for them."""
    model, x = nn.Sequential(nn.Linear(600, 600), nn.ReLU()).eval(), torch.randn(600, 600)
    extracted = extract(model, x)
    network = CompiledNetwork(extracted, [one for one in library_kernels(extracted) if one is not None])
    wanted = model(x).detach().numpy()
    with torch_threads(2):
        children_finish(lambda: bool(np.abs(np.asarray(network(x)) - wanted).max() < 1e-3))


@pytest.mark.compiler
@pytest.mark.torch
def test_networks() -> None:
    model, x = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).eval(), torch.randint(0, 9, (2, 5))
    network = ansor.compile(model, x, "cpu -threads=1")
    wanted = model(x).detach().numpy()

    def call() -> bool:
        return bool(np.abs(np.asarray(network(x)) - wanted).max() < 1e-4)

    children_finish(call)
