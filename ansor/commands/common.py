"""What the commands share: the target from its options, the peak of the machine, saving, comparing with PyTorch."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorError, ToolchainError
from ansor.ir.dag import c_identifier
from ansor.kernels import built
from ansor.measure.peak import measure_peak
from ansor.subject import NetworkSubject, Subject
from ansor.targets.base import Target, parse_target
from ansor.tuning import TaskState

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork

ROUNDS = 30
"""Interleaved runs of each side of a comparison."""


def target_of(given: argparse.Namespace) -> Target:
    """The target the options describe."""
    text = given.target
    if given.threads is not None:
        text += f" -threads={given.threads}"
    if given.cc:
        text += f" -cc='{given.cc}'"
    return parse_target(text)


def records_of(given: argparse.Namespace, subject: Subject) -> Path:
    """The record file: named, or after the subject."""
    return Path(given.records) if given.records else Path(f"{c_identifier(subject.name)}.jsonl")


def peak_gflops(target: Target) -> float | None:
    """Measured peak of the target's threads; None when it cannot be measured."""
    try:
        return measure_peak(find_compiler(target.compiler), vector_bytes=target.vector_bytes, threads=target.threads, mcpu=target.mcpu).gflops
    except (ToolchainError, OSError):
        return None


def save_kernels(states: Sequence[TaskState], folder: str | Path, target: Target, chosen: Callable[[TaskState], object]) -> int:
    """One folder for each kernel: C text, library, arguments. Gives their number."""
    from ansor.tuning import Best

    bests = [best for state in states if isinstance(best := chosen(state), Best)]
    kernels = built([state.task for state in states], bests, find_compiler(target.compiler))
    for number, (state, kernel) in enumerate(zip(states, kernels, strict=True)):
        kernel.save(Path(folder) / f"{number:02d}_{c_identifier(state.task.name)}")
    return len(kernels)


@dataclass(frozen=True)
class Comparison:
    """A network beside PyTorch: medians of interleaved runs in seconds, and the largest difference relative to the largest output."""

    ours: float
    torch: float
    error: float


def compare(network: CompiledNetwork, subject: NetworkSubject, threads: int) -> Comparison:
    """Runs both on the example inputs, in turns, PyTorch on as many threads as we."""
    import torch

    model, inputs = subject.model(), subject.example_inputs()
    if not callable(model):
        raise AnsorError(f"{subject.name}: model() gave a {type(model).__name__}, which cannot be called")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            error = _error(network(*inputs), model(*inputs))
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(ROUNDS):
                ours.append(_seconds(lambda: network(*inputs)))
                theirs.append(_seconds(lambda: model(*inputs)))
    finally:
        torch.set_num_threads(before)
    return Comparison(statistics.median(ours), statistics.median(theirs), error)


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _error(ours: object, theirs: object) -> float:
    import torch
    from torch.utils import _pytree as pytree

    pairs = zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs), strict=True)
    found = [float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in pairs if isinstance(a, torch.Tensor)]
    return max(found, default=0.0)


