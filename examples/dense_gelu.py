"""A custom operator in plain te: a dense layer with bias and GELU.

    ansor tune examples/dense_gelu.py                        tune it with the sizes below
    ansor tune examples/dense_gelu.py --args 32,768,768      or with other sizes
    python examples/dense_gelu.py                            tune, build and call it from Python

A file to tune has a function that returns the tensors of a declaration, inputs first. `constant=True` says that a weight is known ahead of time, so the search
may choose its layout.
"""

import sys

import numpy as np

import ansor
from ansor import te


def dense_gelu(rows: int = 128, inputs: int = 768, outputs: int = 3072) -> list[te.Tensor]:
    data = te.placeholder((rows, inputs), name="data")
    weight = te.placeholder((inputs, outputs), name="weight", constant=True)
    bias = te.placeholder((outputs,), name="bias", constant=True)
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute((rows, outputs), lambda i, j: te.sum(data[i, k] * weight[k, j], axis=k), name="dense")
    shifted = te.compute((rows, outputs), lambda i, j: dense[i, j] + bias[j], name="shifted")
    gelu = te.compute((rows, outputs), lambda i, j: shifted[i, j] * (te.erf(shifted[i, j] * 0.5**0.5) + 1) * 0.5, name="gelu")
    return [data, weight, bias, gelu]


def main(trials: int = 64) -> None:
    kernel = ansor.auto_schedule(dense_gelu, target="cpu -threads=1", trials=trials, records="dense_gelu.jsonl", report=print)
    print(kernel.schedule)

    random = np.random.default_rng(0)
    data, weight, bias = (random.standard_normal(shape, dtype=np.float32) for shape in ((128, 768), (768, 3072), (3072,)))
    kernel.bind_constants({"weight": weight, "bias": bias})  # packed once; later calls omit them
    print(kernel(data).shape, f"{kernel.latency_s:.2e} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
