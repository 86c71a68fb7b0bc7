"""Whole int8 networks with their middle on a VTA core: operators, synchronisations and transfers, compared with synchronising after each operator.

    python benchmarks/vta_networks.py [powers any qdq] [--network resnet18] [--size 224] [--core default] [--opencl] [--by-cost] [--c] [--records vta.json]

powers: scales that are powers of two; any: this package's quantiser, with a zero point for each tensor; qdq: onnxruntime's quantiser. Every output is compared
with the integer reference, byte for byte. Cycles are those of the printed model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ansor.integer.from_onnx import from_onnx
from ansor.integer.from_torch import from_torch
from ansor.integer.network import IntegerNetwork
from ansor.integer.reference import run
from ansor.offload.annotation import middle
from ansor.offload.build import ByCost, build
from ansor.offload.program import PlacedNetwork, Running
from ansor.run.keywords import RunOptions
from ansor.targets.base import parse_target
from ansor.targets.vta import configuration_of
from ansor.vta.cycles import CHISEL
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.operator_queue import Queue, QueueCounts
from ansor.vta.runtime.simulators import DRAM_BYTES, CycleDriver
from ansor.zoo import resnet
from ansor.zoo.weights import images

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.integer.models import quantised_file

KINDS = ("powers", "any", "qdq")
HEADINGS = (
    "scales", "waits", "enqueued", "synchronised", "code transfers", "bytes", "data transfers", "bytes", "weights' bytes", "instructions", "cycles", "right",
)  # fmt: skip


def network_of(kind: str, name: str, size: int) -> IntegerNetwork:
    """One of the package's networks, quantised."""
    model, shape = getattr(resnet, name)(), (1, 3, size, size)
    if kind != "qdq":
        return from_torch(model, [images(size)[0]], name, powers_of_two=kind == "powers")
    with tempfile.TemporaryDirectory() as folder:
        return from_onnx(quantised_file(model, Path(folder), shape=shape))


def difference(before: QueueCounts, after: QueueCounts, names: tuple[str, ...]) -> tuple[int, int]:
    """The number of transfers of these kinds between two counts, and their bytes."""
    pairs = [(before.transfers[name], after.transfers[name]) for name in names]
    return sum(new.count - old.count for old, new in pairs), sum(new.bytes - old.bytes for old, new in pairs)


def row(placed: PlacedNetwork, driver: Driver, wait: bool) -> list[str]:
    """The row for one run, after the weights are on the device."""
    network = placed.network
    generator = np.random.default_rng(0)
    inputs = {name: network.tensors[name].stored(generator.normal(size=images_shape(network, name))) for name in network.inputs}
    running = Running(placed, Queue(driver))
    before, runs = running.queue.counts, len(driver.events())
    found, right = running.run(inputs, wait=wait), run(network, inputs)
    after = running.queue.counts
    instructions, data = (difference(before, after, names) for names in (("instructions", "uops"), ("writes", "reads")))
    cycles = sum(event.cycles for event in driver.events()[runs:])
    same = all(np.array_equal(found[name], right[name]) for name in network.outputs)
    numbers = [after.operators - before.operators, after.synchronisations - before.synchronisations, *instructions, *data]
    weights = before.transfers["writes"].bytes
    return [*map(str, numbers), str(weights), str(after.instructions - before.instructions), str(cycles) if cycles else "-", "every byte" if same else "NO"]


def images_shape(network: IntegerNetwork, name: str) -> tuple[int, ...]:
    """The shape of an input, in the model's order."""
    tensor = network.tensors[name]
    return tuple(tensor.shape[axis] for axis in np.argsort(tensor.axes)) if tensor.axes else tensor.shape


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="scales", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--network", default="resnet18", choices=("resnet18", "resnet34", "resnet50"))
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--core", default="default")
    parser.add_argument("--opencl", action="store_true", help="run on an OpenCL device instead of the simulator that counts cycles")
    parser.add_argument("--by-cost", action="store_true", help="place operators by cost, instead of all but the first and the last layer on the core")
    parser.add_argument("--c", action="store_true", help="run C on the host instead of NumPy")
    parser.add_argument("--records", help="record file of tuned operators")
    parser.add_argument("--trials", type=int, default=0)
    given = parser.parse_args()
    target, table, console = parse_target(f"vta -core={given.core}"), Table(), Console(width=190)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for kind in given.kinds or KINDS:
        asked = RunOptions.of({"trials": given.trials, "records": given.records})
        network = network_of(kind, given.network, given.size)
        placed = build(network, target, ByCost() if given.by_cost else middle, asked, "cpu -threads=1" if given.c else None)
        hosts = ", ".join(one.output for phase in placed.phases if not phase.on_device for one in phase.operators)
        print(f"{kind}: {len(placed.annotation.device)} operators on the core; on the host: {hosts}; copied: {', '.join(name for name, _ in placed.copies)}")
        for wait in (False, True):
            core = configuration_of(target)
            driver = OpenclDriver(core, DRAM_BYTES * 2) if given.opencl else CycleDriver(core, DRAM_BYTES * 2)
            table.add_row(kind, "each operator" if wait else "for a read", *row(placed, driver, wait))
    console.print(table)
    print(CHISEL)


if __name__ == "__main__":
    main()
