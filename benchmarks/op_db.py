"""Runs PyTorch's own database of operators through `ansor.compile`, and says which run in our kernels and whether all results are right.

    python benchmarks/op_db.py                                # every operator: some minutes
    python benchmarks/op_db.py --only softmax linalg          # only operators whose names contain one of the words
    python benchmarks/op_db.py --numpy                        # run our declarations in NumPy, without building anything: a minute or two
    python benchmarks/op_db.py --results build/op_db.jsonl    # also a line for each operator

Each entry of `torch.testing._internal.common_methods_invocations.op_db` with float32 samples becomes a module with that one operator, compiled for the first
sample, without PyTorch's kernels and without measuring. A line counts the operators of one group: `own` run only in our kernels, `mixed` partly in PyTorch,
`torch` wholly in PyTorch; `refused` raised one of our errors; `wrong` gave another result than PyTorch; `raw` raised an error that is not ours; `late` did not
answer in time. `none` have nothing to compare: no float32 sample, or an error in PyTorch itself. Random results are compared by shape and dtype. Exits with 1
if anything is wrong, raw or late.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from outcome_table import outcome_lines
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import ansor
from ansor.errors import AnsorError
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.support.text import first_line

SECONDS = 90.0
TOLERANCE = 1e-4
OUTCOMES = ("own", "mixed", "torch", "refused", "wrong", "raw", "late", "none")
BAD = ("wrong", "raw", "late")
KINDS = {"UnaryUfuncInfo": "elementwise, one operand", "BinaryUfuncInfo": "elementwise, two operands", "ReductionOpInfo": "reductions",
         "SpectralFuncInfo": "fft", "ShapeFuncInfo": "shapes"}
PREFIXES = ("nn.functional", "linalg", "special", "masked", "fft", "signal", "sparse")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one operator, by its name and variant. said: the reason."""

    name: str
    group: str
    outcome: str
    said: str = ""


class Single(torch.nn.Module):
    """A module with one operator. The sample's tensors are its inputs; all other arguments are fixed."""

    def __init__(self, operator: Callable[..., object], arguments: object) -> None:
        super().__init__()
        leaves, self.tree = pytree.tree_flatten(arguments)
        self.operator = operator
        self.fixed = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> object:
        leaves = list(self.fixed)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return self.operator(*args, **kwargs)


class Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch's own omission
    """Detects whether an operator draws random numbers. The database seeds PyTorch for each operator, so two calls give the same results."""

    random = False

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: object, args: Sequence[object] = (), kwargs: dict[str, object] | None = None) -> object:
        self.random |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def entries() -> dict[str, object]:
    """Every entry of the database by its name and variant."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{entry.name}.{entry.variant_test_name}".rstrip("."): entry for entry in op_db}


def group_of(entry: object) -> str:
    """The group of an operator, by its name, or else by its kind in PyTorch's database."""
    name = getattr(entry, "name", "")
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return prefix
    return KINDS.get(type(entry).__name__, "others")


def judged(name: str, entry: object, by_numpy: bool) -> Outcome:
    """Compile and call one operator."""
    group = group_of(entry)
    made = _sample(entry)
    if isinstance(made, str):
        return Outcome(name, group, "none", made)
    module, tensors = made
    try:
        with Seen() as seen, torch.no_grad():  # type: ignore[no-untyped-call]  # as above
            wanted = module(*(tensor.clone() for tensor in tensors))
    except Exception as error:  # PyTorch's database has samples that PyTorch refuses
        return Outcome(name, group, "none", f"PyTorch: {first_line(error)}")
    anything = seen.random or name.startswith(("empty", "new_empty"))
    try:
        network = _network(module, tensors, by_numpy)
        found = network(*tensors)
    except AnsorError as error:
        return Outcome(name, group, "refused", str(error))
    except Exception as error:
        return Outcome(name, group, "raw", f"{type(error).__name__}: {first_line(error)}")
    if not _equal(wanted, found, float("inf") if anything else TOLERANCE):
        return Outcome(name, group, "wrong", f"{_shown(wanted)} became {_shown(found)}")
    in_torch = [step for step, _ in network.steps if step.startswith("torch ")]
    outcome = "own" if not in_torch else "torch" if len(in_torch) == len(network.steps) else "mixed"
    return Outcome(name, group, outcome, ", ".join(dict.fromkeys(in_torch)))


def _sample(entry: object) -> tuple[Single, tuple[torch.Tensor, ...]] | str:
    """The operator as a module, with its inputs; or the reason why there is none."""
    if torch.float32 not in getattr(entry, "dtypes", ()):
        return "no samples of float32"
    torch.manual_seed(0)
    # Take all samples: PyTorch would close an unfinished generator while tracing, and trace that too.
    samples = list(entry.sample_inputs("cpu", torch.float32, requires_grad=False))  # type: ignore[attr-defined]
    if not samples:
        return "no samples of float32"
    sample = samples[0]
    arguments = ((sample.input, *sample.args), dict(sample.kwargs))
    module = Single(entry.op, arguments).eval()  # type: ignore[attr-defined]
    return module, tuple(leaf.detach() for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor))


def _network(module: Single, tensors: tuple[torch.Tensor, ...], by_numpy: bool) -> CompiledNetwork:
    if not by_numpy:
        return ansor.compile(module, tensors, trials=0, library=False, progress=False)
    extracted = extract(module, tensors)
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])


def _equal(wanted: object, found: object, tolerance: float) -> bool:
    """Whether results have the same number of leaves, shapes and dtypes, and values within this tolerance relative to the largest. Infinite: any values."""
    ones, tree = pytree.tree_flatten(wanted)
    others, other_tree = pytree.tree_flatten(found)
    return len(ones) == len(others) and all(map(lambda one, other: _equal_leaves(one, other, tolerance), ones, others))


def _equal_leaves(one: object, other: object, tolerance: float) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return one == other or tolerance == float("inf")
    if one.layout is not torch.strided or one.is_quantized:
        return one.layout == other.layout and one.dtype == other.dtype and (one.is_quantized or _equal_leaves(one.to_dense(), other.to_dense(), tolerance))
    if one.is_nested:
        return other.is_nested
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if tolerance == float("inf"):
        return True
    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        return torch.equal(one, other)
    finite = one[torch.isfinite(one)]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    try:
        torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * max(scale, 1e-6), equal_nan=True)
    except AssertionError:
        return False
    return True


def _shown(result: object) -> str:
    return str(pytree.tree_leaves(result)[:1]).replace("\n", " ")[:200]


def work(connection: Connection, by_numpy: bool) -> None:
    """The child process: receives names, sends outcomes."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known = entries()
    connection.send(None)
    while (name := connection.recv()) is not None:
        connection.send(judged(name, known[name], by_numpy))


class Child:
    """A process that is replaced if an operator takes too long, or crashes it."""

    def __init__(self, by_numpy: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, by_numpy), daemon=True)
        self.process.start()
        other.close()
        self.connection.recv()

    def end(self) -> None:
        """End the process, and wait for it."""
        self.process.join(timeout=1.0)
        self.process.kill()
        self.process.join()

    def outcome(self, name: str, group: str, seconds: float) -> Outcome:
        """The outcome of one operator. If the operator was late or crashed the process, the process has ended."""
        self.connection.send(name)
        if not self.connection.poll(seconds):
            self.end()
            return Outcome(name, group, "late", f"no answer in {seconds:.0f} s")
        try:
            found: Outcome = self.connection.recv()
        except EOFError:
            self.end()
            return Outcome(name, group, "raw", f"the process ended with {self.process.exitcode}")
        return found


def judge_all(names: Sequence[str], by_numpy: bool, seconds: float, each: Callable[[Outcome], None]) -> list[Outcome]:
    """The outcomes of all operators, one after another."""
    known = entries()
    found: list[Outcome] = []
    child = Child(by_numpy)
    for name in names:
        if not child.process.is_alive():
            child = Child(by_numpy)
        found.append(child.outcome(name, group_of(known[name]), seconds))
        each(found[-1])
    child.connection.send(None)
    return found


def table(found: Sequence[Outcome]) -> list[str]:
    """A line for each group, and one for the total."""
    return outcome_lines("group", [(one.group, one.outcome) for one in found], OUTCOMES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile the chosen operators, and print the table; see the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="operators whose names contain one of these words")
    parser.add_argument("--numpy", action="store_true", help="run declarations in NumPy; build nothing")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit for one operator (default: %(default)s)")
    parser.add_argument("--results", type=Path, help="a file of JSON lines")
    asked = parser.parse_args(arguments)
    names = [name for name in entries() if not asked.only or any(word in name for word in asked.only)]
    lines: list[str] = []

    def said(one: Outcome) -> None:
        lines.append(json.dumps(asdict(one)))
        if asked.results is not None:
            asked.results.write_text("\n".join(lines) + "\n")
        if one.outcome in (*BAD, "refused"):
            print(f"{one.outcome}: {one.name}: {one.said}", flush=True)

    found = judge_all(names, asked.numpy, asked.seconds, said)
    print("\n".join(table(found)))
    return int(any(one.outcome in BAD for one in found))


if __name__ == "__main__":
    sys.exit(main())
