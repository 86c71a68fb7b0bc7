"""What the commands share: the console, the target and the files in the options, saving kernels, comparing with PyTorch."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ansor.commands.subject import NetworkSubject, Subject
from ansor.errors import AnsorError, DeclarationError, ModelError, RecordError
from ansor.ir.dag import c_identifier, tidy_identifier
from ansor.measure.interleaved import interleaved
from ansor.measure.record import Loaded
from ansor.run.program import results
from ansor.run.progress import say
from ansor.run.states import TaskState
from ansor.support.loaded import torch_needed
from ansor.support.text import counted, first_line, with_article
from ansor.targets.base import Target, parse_target
from ansor.zoo.catalogue import NETWORKS, OPERATORS

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.step_seconds import CallSeconds

ROUNDS = 30
"""Interleaved runs of each side of a comparison."""

WARM = 0.05
"""Seconds of untimed calls before each timed turn: threads of the previous side may spin for this long."""


def make_console(stderr: bool = False) -> Console:
    """Where a command prints. Lines in a file or a pipe keep their length: tables are not cut to the width of a terminal.

    Text is printed as it is: `[b]` and `:c:` in a file name such as `a[b]:c:.jsonl` are not markup or emoji codes.
    """
    console = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not console.is_terminal:
        console.width = 10_000
    return console


def say_skipped(loaded: Loaded, console: Console, file: str = "") -> None:
    """Print how many lines of a record file do not count, and why. file: its name, if there are several."""
    of = f" of {file}" if file else ""
    for reason, count in loaded.skipped.items():
        console.print(f"left out: {counted(count, 'line')}{of} ({reason})", soft_wrap=True, markup=False)


def doing(console: Console, what: str) -> AbstractContextManager[object]:
    """Show on a terminal what is going on while a `with` block runs."""
    return console.status(what) if console.is_terminal else nullcontext()


def target_of(given: argparse.Namespace, text: str = "") -> Target:
    """The target that the options describe. text: one `--target`, if there are several."""
    text = text or given.target or "cpu"
    if given.threads is not None:
        text += f" -threads={given.threads}"
    if given.cc:
        text += f" -cc={shlex.quote(given.cc)}"
    return parse_target(text)


def put_in_order(given: argparse.Namespace) -> None:
    """`RECORDS NAME` and `NAME RECORDS` mean the same: the one that is a file, but not a Python or ONNX file, is the records.

    If neither is, a built-in name is not taken for the records, so that the error is about the missing file.
    """
    if given.subject and _likely_records(given.subject) > _likely_records(given.records):
        given.records, given.subject = given.subject, given.records


def _likely_records(text: str) -> int:
    if text.partition(":")[0].endswith((".py", ".onnx")):
        return 0
    return 2 if Path(text).is_file() else int(text not in OPERATORS and text not in NETWORKS)


def records_of(given: argparse.Namespace, subject: Subject) -> Path:
    """The record file: the one given, or one named after the file that holds the subject, or after the built-in name."""
    return Path(given.records) if given.records else Path(f"{c_identifier(subject.file or subject.name)}.jsonl")


def check_records_exist(given: argparse.Namespace, records: Path) -> None:
    """Raise RecordError if the options name a record file that does not exist, for commands that only read it."""
    if given.records and not records.exists():
        raise RecordError(f"asked to {given.command} with the records in {records}, which does not exist; tune first, or leave --records out")


def check_folder(folder: str | None, option: str = "--output") -> None:
    """Check, before hours are spent on results, that they can be written to the folder; a missing one is created and removed again.

    Raises AnsorError if nothing can be written there.
    """
    if folder is None:
        return
    path = Path(folder)
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
        finally:
            for one in missing:
                with suppress(OSError):  # it could not be created, or another process has put a file there
                    one.rmdir()
    except OSError as error:
        raise AnsorError(f"asked for {option} {folder}, which is not writable ({error.strerror or error}); name another folder") from error


def say_origin(states: Sequence[TaskState], target: Target, console: Console) -> None:
    """Print how many kernels are from records."""
    recorded = sum(state.best is not None for state in states)
    cure = "" if recorded or not states else "; `ansor tune` measures programs"
    say(console, f"{counted(len(states), 'kernel')} for {target}: {recorded} from records, {len(states) - recorded} picked by the model{cure}")


def save_kernels(states: Sequence[TaskState], folder: str | Path, target: Target, chosen: Callable[[TaskState], object]) -> int:
    """Save each kernel in a folder: C source, library, arguments and, for another machine, a self-test. Returns the number of kernels."""
    from ansor.run.states import Best

    bests = [best for state in states if isinstance(best := chosen(state), Best)]
    kernels = results([state.task for state in states], bests, target.toolchain())
    for number, (state, kernel) in enumerate(zip(states, kernels, strict=True)):
        kernel.save(Path(folder) / f"{number:02d}_{tidy_identifier(state.task.name)}")
    return len(kernels)


def made(subject: NetworkSubject) -> tuple[object, ExampleInputs]:
    """The subject's model and inputs. Raises DeclarationError if its functions return anything else."""
    with torch_needed(subject.name):
        import torch

        model, inputs = subject.model(), subject.example_inputs()
    if not callable(model):
        raise DeclarationError(f"{subject.name}: the function for the model returned {with_article(type(model).__name__)}; it has to return a torch.nn.Module")
    if not isinstance(inputs, (torch.Tensor, Sequence, Mapping)):
        raise DeclarationError(f"{subject.name}: example_inputs() returned {with_article(type(inputs).__name__)}; it has to return a tuple of tensors")
    return model, inputs


@dataclass(frozen=True)
class Comparison:
    """A network compared with PyTorch: medians of interleaved runs in seconds, and the largest difference relative to the largest output.

    parts: where the seconds of our calls go, in the same turns.
    """

    ours: float
    torch: float
    error: float
    parts: CallSeconds


def compare(network: CompiledNetwork, model: object, inputs: ExampleInputs, threads: int) -> Comparison:
    """Run both on the inputs, alternately. PyTorch runs on the same number of threads and in evaluation mode. Raises ModelError if it refuses the inputs."""
    import torch

    from ansor.graph.export import split_inputs
    from ansor.graph.step_seconds import StepClock

    if not callable(model):
        raise AnsorError(f"asked to compare with a {type(model).__name__}, which cannot be called; give a torch.nn.Module")
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    args, kwargs = split_inputs(inputs)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad(), evaluating(model):
            error = largest_error(network(*args, **kwargs), _called(model, args, kwargs))
            steps = StepClock(network, (args, kwargs))
            sides: dict[str, Callable[[], object]] = {"ours": lambda: network(*args, **kwargs), "steps": steps, "torch": lambda: model(*args, **kwargs)}
            times = interleaved(sides, ROUNDS, warm=WARM)
    finally:
        torch.set_num_threads(before)
    return Comparison(times["ours"].median, times["torch"].median, error, steps.seconds)


def _called(model: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """The model's result. Raises ModelError if it fails."""
    try:
        return model(*args, **kwargs)
    except Exception as error:  # the model's own code runs here, so any error may be raised
        why = f"the model itself fails on its example inputs with {type(error).__name__}: {first_line(error)}"
        raise ModelError(f"asked to compare the compiled network with PyTorch, but {why}; give inputs that the model takes") from error


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Inside this block, the model is in evaluation mode, as it was when the network was read."""
    import torch

    training = [part for part in model.modules() if part.training] if isinstance(model, torch.nn.Module) else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def largest_error(ours: object, theirs: object) -> float:
    """The largest difference between equally nested results, relative to the largest element, over all tensors."""
    import torch
    from torch.utils import _pytree as pytree

    pairs = zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs), strict=True)
    found = [float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in pairs if isinstance(a, torch.Tensor)]
    return max(found, default=0.0)
