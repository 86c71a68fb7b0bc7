"""Declarations for several tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ansor import te
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.loop_state import State
from ansor.ir import interpreter
from ansor.ir.evaluate import evaluate
from ansor.schedule.sketch import Sketch
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor

Array = NDArray[np.generic]


def conv_relu() -> list[Tensor]:
    data, weight = te.placeholder((1, 2, 5, 5), name="data"), te.placeholder((3, 2, 3, 3), name="weight")
    return [data, weight, nn.relu(nn.conv2d(data, weight, 1, 1, data_layout="NCHW"))]


def norm() -> list[Tensor]:
    data = te.placeholder((3, 5, 4), name="data")
    return [data, nn.norm(data, axis=(1, 2))]


SMALL: dict[str, Callable[[], list[Tensor]]] = {
    "matmul": lambda: workloads.matmul(6, 7, 5), "conv_relu": conv_relu, "softmax": lambda: workloads.softmax_nm(4, 9), "norm": norm,
    "double_matmul": lambda: workloads.double_matmul(4),
}  # fmt: skip
"""Small enough for the interpreter."""


def matmul_dag(n: int = 512, m: int = 512, k: int = 512) -> tuple[ComputeDAG, Tensor, Tensor, Tensor]:
    """The DAG of a matrix product, and its tensors."""
    a, b, c = workloads.matmul(n, m, k)
    return ComputeDAG([a, b, c]), a, b, c


def tiled_matmul() -> tuple[ComputeDAG, State]:
    """A product scheduled like by the search: a private tile inside the output's tiles, threads, vectors, unrolling."""
    dag, _, _, c = matmul_dag()
    state = dag.get_init_state()
    local = state.cache_write(c, "local")
    i, j, k = state[local].iters
    parts = [state.split(local, loop, lengths) for loop, lengths in ((i, [4, 8, 2]), (j, [4, 8, 4]), (k, [16]))]
    (i0, i1, i2, i3), (j0, j1, j2, j3), (k0, k1) = parts
    state.reorder(local, [i0, j0, i1, j1, k0, i2, j2, k1, i3, j3])
    (i0, i1, i2), (j0, j1, j2) = (state.follow_split(c, loop, step, 2) for loop, step in zip(state[c].iters, (1, 2), strict=True))
    state.reorder(c, [i0, j0, i1, j1, i2, j2])
    state.compute_at(local, c, j1)
    state.parallel(c, state.fuse(c, [i0, j0]))
    state.vectorize(local, state[local].iters[-1])
    state.pragma(local, state[local].iters[0], "auto_unroll_max_step$64")
    return dag, state


def small_inputs(dag: ComputeDAG, seed: int = 0) -> dict[str, Array]:
    """Small integers, so that sums and products are exact in any order."""
    rng = np.random.default_rng(seed)
    return {tensor.name: np.asarray(rng.integers(-2, 4, tensor.shape)).astype(tensor.dtype) for tensor in dag.dag.inputs}


def check_interpreted(dag: ComputeDAG, program: Sketch, what: object = "") -> None:
    """AssertionError unless a program's loops compute the declaration."""
    inputs = small_inputs(dag)
    found = interpreter.run(program.lower_row(()), inputs)
    for tensor, expected in zip(dag.dag.outputs, evaluate(dag.dag.outputs, inputs), strict=True):
        assert np.allclose(found[tensor.name], expected, rtol=1e-4, atol=1e-5, equal_nan=True), f"{tensor.name} is wrong\n{program}\n{what}"
