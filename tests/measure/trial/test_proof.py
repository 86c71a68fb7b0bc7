"""References that run on this machine end when the device is closed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from ansor.codegen.source import Argument
from ansor.measure.failure import Failure
from ansor.measure.trial.proof import Arrays, HostProof
from ansor.measure.trial.transport import CLOSED
from tests.trial_programs import kernel

pytestmark = pytest.mark.compiler
ARGUMENTS = [Argument("C", (4,), "float64", "output")]


def started(proof: HostProof, body: str) -> tuple[threading.Thread, list[list[Arrays] | Failure]]:
    found: list[list[Arrays] | Failure] = []
    thread = threading.Thread(target=lambda: found.append(proof.outputs(kernel(body, ARGUMENTS), [{}])))
    thread.start()
    return thread, found


def test_it_ends_while_the_reference_runs(tmp_path: Path) -> None:
    closing, begun = threading.Event(), tmp_path / "begun"
    body = f'extern int creat(const char *, unsigned); creat("{begun}", 384); while (args[0]) __asm__ volatile("");'
    thread, found = started(HostProof(closing=closing), body)
    while not begun.exists():
        time.sleep(0.001)
    closing.set()
    thread.join(20)
    assert found == [CLOSED]


def test_it_ends_while_the_reference_is_built() -> None:
    """A text that takes a compiler long: constants that are worked out one after the other."""
    closing = threading.Event()
    proof = HostProof(closing=closing)
    closing.set()
    thread, found = started(proof, "double *c = args[0]; " + "".join(f"c[{k % 4}] += c[{(k + 1) % 4}] * {k}.0;" for k in range(20_000)))
    thread.join(20)
    assert found == [CLOSED]
