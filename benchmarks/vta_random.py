"""Runs random VTA programs on all simulators and devices, and compares them with the declaration in integers (NumPy).

    python benchmarks/vta_random.py [--programs 1000] [--core default] [--seed 0]     random operators: a line for each kind
    python benchmarks/vta_random.py --layers [--programs 20]                          the convolutions of ResNet-18: a line for each layer

"sampled": programs that the limits allow, as in a search. "valid": programs that become an operator, end without a race, a deadlock or leftover tokens with
modules in a random order, and give the right bytes. The other columns say how many gave these bytes in program order with the cycle model, and on an OpenCL
device (--opencl: a part of its name). "close": micro-ops that write the same element as one of the two before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansor.errors import AnsorError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.measure.devices.vta_sim import simulated
from ansor.schedule.legality import legal_rows
from ansor.targets.base import Target, parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.vta.compiled import Operator, operator_from_text
from ansor.vta.cycles import CHISEL
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.operator_queue import Limits, Queue
from ansor.vta.runtime.simulators import CycleDriver

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.vta_layers import LAYERS, declared
from tests.vta_declarations import added, conv2d, dense, depthwise, grouped, pool

Arrays = dict[str, NDArray[np.generic]]
EACH = 10
"""Programs of one declaration: preparing a declaration costs more than a program."""


@dataclass
class Found:
    """Counts of programs of one kind: sampled, valid, and right on each driver."""

    sampled: int = 0
    valid: int = 0
    close: int = 0
    right: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def drawn_shape(rng: np.random.Generator) -> tuple[int, int, int, int]:
    """The shape of one or two images."""
    return int(rng.integers(1, 3)), int(rng.integers(2, 60)), int(rng.integers(5, 13)), int(rng.integers(5, 13))


def drawn_conv(rng: np.random.Generator) -> list[Tensor]:
    """Convolutions of one to three images with any number of channels, kernels of 1, 3 and 5, strides, dilation, padding, with or without a residual."""
    kernel, dilation = int(rng.choice([1, 3, 5])), int(rng.integers(1, 3))
    pad = int(rng.integers(0, dilation * (kernel // 2) + 1))
    least = dilation * (kernel - 1) + 1 - 2 * pad
    rows, columns = (max(least, int(extent)) for extent in rng.integers(4, 15, 2))
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 70)), rows, columns)
    return conv2d(shape, int(rng.integers(1, 70)), kernel, stride=int(rng.integers(1, 4)), pad=pad, dilation=dilation, residual=bool(rng.integers(2)))


def drawn_dense(rng: np.random.Generator) -> list[Tensor]:
    """Dense layers with any number of rows, inputs and outputs."""
    return dense(*(int(one) for one in (rng.integers(1, 40), rng.integers(1, 200), rng.integers(1, 200))), turned=bool(rng.integers(2)))


def drawn_depthwise(rng: np.random.Generator) -> list[Tensor]:
    """Depthwise convolutions with kernels of 3 and 5."""
    kernel = int(rng.choice([3, 5]))
    return depthwise(drawn_shape(rng), kernel, stride=int(rng.integers(1, 3)), pad=int(rng.integers(0, kernel // 2 + 1)))


def drawn_groups(rng: np.random.Generator) -> list[Tensor]:
    """Grouped convolutions: groups of any number of channels, up to 70 in total."""
    groups = int(rng.integers(2, 13))
    n, _, rows, columns = drawn_shape(rng)
    inputs, outputs = (int(rng.integers(1, max(2, 70 // groups + 1))) for _ in range(2))
    kernel, stride = int(rng.choice([1, 3])) if inputs > 1 else 3, int(rng.integers(1, 3))
    shape = (n, groups * inputs, rows, columns)
    return grouped(shape, groups * outputs, groups, kernel, stride=stride, pad=kernel // 2, residual=bool(rng.integers(2)))


def drawn_pool(rng: np.random.Generator) -> list[Tensor]:
    """Pooling by maxima or sums, with any padding."""
    kernel, number = int(rng.integers(2, 4)), int(rng.choice([0, -128, 11]))
    return pool(drawn_shape(rng), kernel, stride=int(rng.integers(1, 3)), pad=int(rng.integers(0, 2)), mean=bool(rng.integers(2)), number=number)


def drawn_add(rng: np.random.Generator) -> list[Tensor]:
    """Additions of tensors with different scales."""
    return added(drawn_shape(rng))


KINDS: dict[str, tuple[Callable[[np.random.Generator], list[Tensor]], float]] = {
    "convolution": (drawn_conv, 0.4), "groups": (drawn_groups, 0.1), "dense": (drawn_dense, 0.2),
    "depthwise": (drawn_depthwise, 0.1), "pooling": (drawn_pool, 0.1), "add": (drawn_add, 0.1),
}  # fmt: skip
"""How each kind is drawn, and its share of the programs."""


def sampled(tensors: list[Tensor], target: Target, count: int, rng: np.random.Generator) -> Iterator[Operator | str]:
    """Operators of random rows of all sketches that the limits allow, or the text of an error instead. Nothing if the core refuses the declaration."""
    task = SearchTask(tensors=tensors, target=target)
    if target.refusal(task.dag):  # one channel: refused before anything is built
        return
    spaces = [space for space in task.spaces if len(space.sizes)]
    for space in rng.permutation(np.arange(count) % len(spaces)).tolist():
        sketch = spaces[space].sketch
        rows = rng.integers(0, sketch.sizes, (64, len(sketch.sizes)))
        legal = rows[np.broadcast_to(legal_rows(sketch.lower_rows(rows), target, len(rows)), len(rows))]
        if len(legal):
            try:
                yield operator_from_text(task.source(sketch, legal[0].tolist()).text)
            except AnsorError as error:
                yield str(error)


def run(operator: Operator, driver: Driver, inputs: Arrays) -> NDArray[np.generic]:
    """The result of an operator through a queue."""
    queue = Queue(driver, Limits(1 << 18, 1 << 18))
    buffers = [queue.buffer(one.layout) for one in operator.tensors]
    for tensor, buffer in zip(operator.tensors, buffers, strict=True):
        if tensor.role != "output":
            queue.write(buffer, inputs[tensor.name])
    queue.enqueue(operator, buffers)
    return queue.read(next(buffer for tensor, buffer in zip(operator.tensors, buffers, strict=True) if tensor.role == "output"))


def check(tensors: list[Tensor], target: Target, count: int, drivers: dict[str, Driver], rng: np.random.Generator, found: Found) -> None:
    """Run this many programs of a declaration, and count the outcomes in `found`."""
    dag = Dag(tensors)
    inputs = {one.name: rng.integers(*((-128, 128) if one.dtype == "int8" else (-3000, 3000)), one.shape).astype(one.dtype) for one in dag.inputs}
    (right,) = evaluate(dag.outputs, inputs)
    for operator in sampled(tensors, target, count, rng):
        found.sampled += 1
        try:
            if isinstance(operator, str):
                raise AnsorError(operator)
            outputs, counts, _ = simulated(operator, inputs, CHISEL, int(rng.integers(1 << 30)))
            if not np.array_equal(outputs[dag.outputs[0].name], right):
                raise AnsorError(f"wrong bytes: {dag.outputs[0].name} of {[one.layout.shape for one in operator.tensors]}")
            found.valid += 1
            found.close += counts.close_writes
            for name, driver in drivers.items():
                found.right[name] = found.right.get(name, 0) + bool(np.array_equal(run(operator, driver, inputs), right))
        except AnsorError as error:
            found.said.append(str(error))


def main() -> None:
    """Print the table; exits with 1 if a program is invalid or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, help="number of programs (default: 1000 in all; with --layers, 20 for each layer)")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--core", default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opencl", default="", help="a part of the device's name, or none to skip OpenCL")
    given = parser.parse_args()
    rng, target = np.random.default_rng(given.seed), parse_target(f"vta -core={given.core}")
    core, results = configuration_of(target), dict[str, Found]()
    drivers: dict[str, Driver] = {"cycles": CycleDriver(core, 1 << 24)}
    if given.opencl != "none":
        drivers["opencl"] = OpenclDriver(core, 1 << 24, given.opencl)
    if given.layers:
        for layer in LAYERS:
            check(declared(layer), target, given.programs or 20, drivers, rng, results.setdefault(layer.name, Found()))
            print(layer.name, results[layer.name], flush=True)
    else:
        total = given.programs or 1000
        for name, (draw, share) in KINDS.items():
            found = results.setdefault(name, Found())
            while found.sampled < round(total * share):
                check(draw(rng), target, min(EACH, round(total * share) - found.sampled), drivers, rng, found)
            print(name, found, flush=True)
    table = Table()
    for heading in ("", "sampled", "valid", *drivers, "close"):
        table.add_column(heading, justify="right")
    for name, one in results.items():
        right = (str(one.right.get(driver, 0)) for driver in drivers)
        table.add_row(name, str(one.sampled), f"{one.valid} ({one.valid / one.sampled:.1%})", *right, str(one.close))
    Console(width=120).print(table)
    sys.exit(any(count != one.sampled for one in results.values() for count in (one.valid, *one.right.values())))


if __name__ == "__main__":
    main()
