"""The part of `two_versions.py` that runs in each version: a process that prepares a request the first time, and times it every further time.

Requests and answers are lines of JSON. It imports only the phases of the search from its version's `benchmarks`, so that it also runs in versions older than
itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ansor
from ansor.te.tensor import Tensor

BATCH = 2048
"""Candidates that one search pass draws."""


def prepared_kernel(tensors: list[Tensor]) -> tuple[Callable[[], object], str]:
    """A call on random numbers of the kernel that is chosen without measuring, and its C text."""
    kernel = ansor.auto_schedule(lambda: tensors, (), "cpu -threads=1", trials=0)
    rng = np.random.default_rng(0)
    values = [(rng.random(one.shape) * 2 - 1).astype(one.dtype) for one in tensors if one.is_placeholder]
    return lambda: kernel(*values), kernel.source


def prepared_network(name: str) -> tuple[Callable[[], object], str]:
    """A call of a built-in network that uses only our kernels, chosen without measuring, and a text that identifies its programs."""
    from ansor.zoo import catalogue

    entry = catalogue.NETWORKS[name]
    inputs = entry.example_inputs()
    states: list[ansor.TaskState] = []
    network = ansor.compile(entry.model(), inputs, "cpu -threads=1", trials=0, library=False, on_tasks=states.extend)
    programs = [state.guess.program for state in states if state.guess is not None]
    return lambda: network(*inputs), "\n".join(f"{one.sketch.name} {one.row}" for one in programs)


def prepared_search(name: str) -> tuple[Callable[[], object], str]:
    """One pass over a batch of candidates (draw, check, describe, score), and the number of spaces."""
    from search_throughput import TASKS, SampledSpace, first_use, one_pass

    from ansor.cost_model.pretrained import pretrained

    spaces = ansor.SearchTask(tensors=TASKS[name][1](), target="cpu -threads=1").spaces
    first_use(spaces)
    sampled, model, rng = [SampledSpace(space) for space in spaces], pretrained(), np.random.default_rng(0)
    return lambda: one_pass(sampled, model, BATCH, rng), f"{len(spaces)} spaces"


def prepare(kind: str, name: str) -> tuple[Callable[[], object], str]:
    """The call to time, and a text that is equal in two versions if they chose the same."""
    if kind == "network":
        return prepared_network(name)
    if kind == "search":
        return prepared_search(name)
    from twelve_operators import OPERATORS

    return prepared_kernel(OPERATORS[name]())


def seconds_of(function: Callable[[], object], least: float) -> float:
    """Mean seconds of a call, over as many calls as fill `least` seconds, after two that are not counted."""
    function()
    function()
    calls, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < least:
        function()
        calls += 1
    return passed / calls


def main() -> None:
    sys.path.insert(0, str(Path(sys.argv[1]) / "benchmarks"))  # each version has its own phases of a search
    answers = sys.stdout
    sys.stdout = sys.stderr  # keeps other output out of the answers
    known: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        kind, name, least = json.loads(line)
        key = f"{kind} {name}"
        if key not in known:
            known.clear()  # keep only one in memory and caches
            known[key], text = prepare(kind, name)
            reply: object = hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()
        else:
            reply = seconds_of(known[key], least)
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
