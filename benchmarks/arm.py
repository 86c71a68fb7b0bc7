"""Tunes the convolution and dense tasks of ResNet-18, and two dense layers of BERT, for an ARM processor, by instruction counts.

    python benchmarks/arm.py [--mcpu cortex-a76] [--devices qemu-aarch64] [--trials 8] [--only TEXT]

Programs are built here for the processor and run on the device, which compares each with plain loops in double precision; no tensors are sent. The table has
the instructions of one run, for the first program (the pick without measuring) and for the best one, and the best one's multiply-adds per instruction.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ansor
from ansor.measure.record import load
from ansor.te import nn, placeholder
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import NETWORKS

BERT = {"BERT, attention output": (128, 768, 768), "BERT, feed forward": (128, 768, 3072)}


def dense(rows: int, inner: int, columns: int) -> list[Tensor]:
    """A dense layer with constant weights."""
    x, w = placeholder((rows, inner), name="x"), placeholder((columns, inner), name="w", constant=True)
    return [x, w, nn.dense(x, w)]


def tasks(target: str) -> list[ansor.SearchTask]:
    """The tasks of ResNet-18 that have a reduction, then the layers of BERT."""
    network = NETWORKS["resnet18"]
    model, inputs = network.model(), network.example_inputs()
    found, _ = ansor.extract_tasks(model, inputs, target)
    return [*found, *(ansor.SearchTask(dense, sizes, target, name=name) for name, sizes in BERT.items())]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mcpu", default="cortex-a76")
    parser.add_argument("--devices", default=None, help="devices (default: the target's own)")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--only", default="", help="only tasks whose names contain this")
    asked = parser.parse_args()
    table = Table(box=None, pad_edge=False)
    for heading in ("task", "MFLOP", "first", "best", "multiply-adds per instruction", "trials", "failed", "tensor bytes sent"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    chosen = [task for task in tasks(f"arm -mcpu={asked.mcpu} -threads=1") if asked.only in task.name]
    for number, task in enumerate(chosen, 1):
        table.add_row(*row(task, asked.devices, asked.trials))
        print(f"{number} of {len(chosen)}: {task.name}", flush=True)
    Console(width=150).print(table)


def row(task: ansor.SearchTask, devices: str | None, trials: int) -> list[str]:
    """The row of the table for one tuned task."""
    with tempfile.TemporaryDirectory() as folder:
        path, sent = Path(folder) / "trials.jsonl", 0.0

        def count(progress: ansor.Progress) -> None:
            nonlocal sent
            sent += dict(progress.latest.counters).get("tensor_bytes_sent", 0.0)

        (state,) = ansor.tune_tasks(
            task, trials=trials, records=path, devices=devices, progress=False, on_progress=count, timing=ansor.TimingOptions(timeout_seconds=120)
        )
        records = load(path).records
    first = next((record.cost for record in records if record.costs), float("nan"))
    best = float("nan") if state.cost is None else state.cost
    failed = sum(record.failure is not None for record in records)
    costs = [state.unit.text(first), state.unit.text(best)]
    return [task.name, f"{task.flop / 1e6:.0f}", *costs, f"{task.flop / 2 / best:.2f}", str(len(records)), str(failed), f"{sent:.0f}"]


if __name__ == "__main__":
    main()
