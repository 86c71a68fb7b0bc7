"""Runs the operator tests of the package onnx through `ansor.compile`, and says which pass, which partly run in PyTorch, and which are refused.

    python benchmarks/onnx_operators.py                       # every node test of one operator: some minutes, nothing is built
    python benchmarks/onnx_operators.py --expanded            # also operators that are expanded into the graphs that define them
    python benchmarks/onnx_operators.py --only conv pool      # only tests whose names contain one of the words
    python benchmarks/onnx_operators.py --build               # build the kernels, as networks do

Each node test of `onnx.backend.test` is a model of one operator with inputs and outputs. Operands that shapes depend on are constants in exported models; the
tests pass them as inputs, so here they become constants of the model. A line counts the tests of one operator: `own` run only in our kernels, `torch` at
least partly in PyTorch; `refused` raised one of our errors; `wrong` gave another result; `raw` raised an error that is not ours. `none` are not networks of
tensors: training, sequences, optional values, strings, other domains, and dtypes that NumPy lacks. Exits with 1 if anything is wrong or raw.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from outcome_table import outcome_lines

import ansor
from ansor.errors import AnsorError, ModelError
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.support.text import first_line

OUTCOMES = ("own", "torch", "refused", "wrong", "raw", "none")
CONSTANT = re.compile(r"reads (\S+), which has to be a constant")
NUMBERS = "biuf"
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")
NOT_OF_NETWORKS = ("Adagrad", "Adam", "Momentum", "Gradient", "SequenceInsert", "SequenceMap", "Optional", "StringNormalizer", "StringConcat", "StringSplit",
                   "RegexFullMatch", "LabelEncoder", "ArrayFeatureExtractor", "Binarizer", "TreeEnsemble", "ImageDecoder", "TfIdfVectorizer",
                   "If", "Loop", "Scan")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test of an operator. said: the reason."""

    name: str
    operator: str
    outcome: str
    said: str = ""


@dataclass(frozen=True)
class Case:
    """A test: a model, its inputs and outputs."""

    name: str
    model: Any
    inputs: Sequence[NDArray[Any]]
    outputs: Sequence[NDArray[Any]]

    @property
    def operator(self) -> str:
        nodes = self.model.graph.node
        return str(nodes[0].op_type) if len(nodes) == 1 else re.sub(r"_.*", "", self.name.removeprefix("test_")) + " (expanded)"


def cases() -> list[Case | Outcome]:
    """All node tests; an outcome for those that are not networks of tensors."""
    from onnx.backend.test.loader import load_model_tests

    return [_case(test) for test in load_model_tests(kind="node")]


def _case(test: Any) -> Case | Outcome:
    model, operator = test.model, test.model.graph.node[0].op_type
    if any(node.op_type.startswith(NOT_OF_NETWORKS) for node in model.graph.node):
        return Outcome(test.name, operator, "none", "not of networks")
    inputs, outputs = test.data_sets[0]
    if not all(isinstance(one, np.ndarray) and one.dtype.kind in NUMBERS and one.dtype.name in DTYPES for one in (*inputs, *outputs)):
        return Outcome(test.name, operator, "none", "no arrays of a dtype that NumPy and PyTorch share")
    return Case(test.name, model, inputs, outputs)


def judged(case: Case, build: bool) -> Outcome:
    """Compile and call one model, after turning the inputs that have to be constants into constants."""
    model, inputs = case.model, dict(zip((one.name for one in case.model.graph.input), case.inputs, strict=False))
    while True:
        try:
            network = _network(model, list(inputs.values()), build)
            found = network(*inputs.values())
            break
        except ModelError as error:
            name = CONSTANT.search(str(error))
            if name is None or name[1] not in inputs:
                return Outcome(case.name, case.operator, "refused", str(error))
            model = _with_constant(model, name[1], inputs.pop(name[1]))
        except AnsorError as error:
            return Outcome(case.name, case.operator, "refused", str(error))
        except Exception as error:
            return Outcome(case.name, case.operator, "raw", f"{type(error).__name__}: {first_line(error)}")
    results = found if isinstance(found, tuple) else (found,)
    wrong = [place for place, (one, wanted) in enumerate(zip(results, case.outputs, strict=False)) if not _equal(np.asarray(one), wanted)]
    if wrong or len(results) != len(case.outputs):
        return Outcome(case.name, case.operator, "wrong", f"of {len(case.outputs)} results number {wrong}")
    in_torch = [step for step, _ in network.steps if step.startswith("torch ")]
    return Outcome(case.name, case.operator, "torch" if in_torch else "own", ", ".join(in_torch))


def _equal(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Whether results are equal within the tolerances of onnx's own test runner."""
    return found.shape == wanted.shape and found.dtype == wanted.dtype and bool(np.allclose(found, wanted, rtol=1e-3, atol=1e-5, equal_nan=True))


def _with_constant(model: Any, name: str, value: NDArray[Any]) -> Any:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = [one for one in changed.graph.input if one.name != name]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    changed.graph.initializer.append(numpy_helper.from_array(value, name))
    return changed


def _network(model: Any, inputs: Sequence[NDArray[Any]], build: bool) -> CompiledNetwork:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        tensors = tuple(torch.from_numpy(np.array(one, copy=True)) for one in inputs)
        if build:
            return ansor.compile(path, tensors, trials=0, library=False, progress=False)
        extracted = extract(path, tensors)
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])


def table(found: Sequence[Outcome]) -> list[str]:
    """A line for each operator, and one for the total."""
    return outcome_lines("operator", [(one.operator, one.outcome) for one in found], OUTCOMES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen tests, and print the table; see the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="tests whose names contain one of these words")
    parser.add_argument("--expanded", action="store_true", help="also operators that are expanded into others")
    parser.add_argument("--build", action="store_true", help="build kernels")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found: list[Outcome] = []
    for case in cases():
        chosen = not asked.only or any(word in case.name for word in asked.only)
        if chosen and (asked.expanded or "_expanded" not in case.name):
            found.append(case if isinstance(case, Outcome) else judged(case, asked.build))
            if found[-1].outcome in ("refused", "wrong", "raw"):
                print(f"{found[-1].outcome}: {found[-1].name}: {found[-1].said}", flush=True)
    print("\n".join(table(found)))
    return int(any(one.outcome in ("wrong", "raw") for one in found))


if __name__ == "__main__":
    sys.exit(main())
