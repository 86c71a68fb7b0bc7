"""Generated operators in one queue: random orders of modules and the OpenCL core compute what the declaration means."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.vta.compiled import Operator, operator_from_text
from ansor.vta.configuration import Configuration
from ansor.vta.runtime.driver import Driver
from ansor.vta.runtime.opencl import OpenclDriver
from ansor.vta.runtime.operator_queue import Limits, Queue
from ansor.vta.runtime.simulators import FunctionalDriver
from tests.opencl import need_opencl
from tests.vta_declarations import added, conv2d, dense, depthwise, grouped, pool

pytestmark = pytest.mark.compiler
OPERATORS = {
    "dense": dense(33, 100, 200),
    "odd channels": conv2d((1, 40, 9, 11), 24, 3, pad=1),
    "stride, batch": conv2d((2, 32, 10, 10), 32, 1, stride=2),
    "5x5": conv2d((1, 16, 12, 12), 16, 5, pad=2),
    "dilated": conv2d((1, 32, 14, 14), 32, 3, pad=2, dilation=2),
    "residual": conv2d((1, 32, 9, 9), 32, 3, pad=1, residual=True),
    "depthwise": depthwise((1, 40, 9, 11), 3, pad=1),
    "max around -128": pool((1, 40, 12, 9), 3, stride=2, pad=1, number=-128),
    "groups": grouped((1, 48, 9, 7), 24, 6, residual=True),
    "add": added((1, 40, 9, 9)),
    "max": pool((1, 32, 13, 13), 3, stride=2),
}


def drawn(tensors: list[Tensor], core: str, rng: np.random.Generator) -> Operator:
    """A random program."""
    target = parse_target(f"vta -core={core}")
    task = SearchTask(tensors=tensors, target=target)
    space = task.spaces[-1]
    rows = rng.integers(0, space.sizes, (60, len(space.sizes)))
    return operator_from_text(task.source(space.sketch, rows[space.legal(rows)][0].tolist()).text)


def driver(kind: str, core: Configuration) -> Driver:
    if kind == "random order":
        return FunctionalDriver(core, 1 << 22, seed=3)
    need_opencl()
    return OpenclDriver(core, 1 << 22)


@pytest.mark.parametrize("core", ["default", "32", "64"])
@pytest.mark.parametrize("kind", ["random order", "opencl"])
def test_all_in_one_run(kind: str, core: str) -> None:
    rng, results = np.random.default_rng(4), []
    found = [drawn(tensors, core, rng) for tensors in OPERATORS.values()]
    queue = Queue(driver(kind, found[0].configuration), Limits(1 << 16, 1 << 16))
    for operator, tensors in zip(found, OPERATORS.values(), strict=True):
        dag = Dag(tensors)
        inputs = {one.name: rng.integers(-128, 128, one.shape).astype(one.dtype) for one in dag.inputs}
        buffers = [queue.buffer(one.layout) for one in operator.tensors]
        for tensor, buffer in zip(operator.tensors, buffers, strict=True):
            if tensor.role != "output":
                queue.write(buffer, inputs[tensor.name])
        queue.enqueue(operator, buffers)
        results.append((buffers[-1], evaluate(dag.outputs, inputs)[0]))
    for buffer, right in results:
        np.testing.assert_array_equal(queue.read(buffer), right)
    assert queue.counts.synchronisations == 1 and queue.counts.barriers == len(OPERATORS) - 1
