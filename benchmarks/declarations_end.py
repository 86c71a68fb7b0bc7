"""Processor time, memory and C size of declarations that could make a compiler's work grow without bound, up to the C of the program that `trials=0` picks.

    python benchmarks/declarations_end.py [name ...]

Each runs in a separate process, for at most 60 s. The memory is the peak of that process; Python and NumPy take about 40 MB of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import reduce

from ansor import te
from ansor.errors import AnsorError
from ansor.te import nn
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor

SECONDS = 60
Tensors = list[Tensor]


def matmuls(count: int) -> Tensors:
    """A chain of dense layers of width 64, each with a ReLU."""
    given = [te.placeholder((8, 64), name="x")]
    value = given[0]
    for k in range(count):
        given.append(te.placeholder((64, 64), name=f"w{k}", constant=True))
        value = nn.relu(nn.dense(value, given[-1]))
    return [*given, value]


def row_sums(count: int) -> Tensors:
    """Adds each row's sum to the row, repeatedly."""
    x = value = te.placeholder((8, 64), name="x")
    for k in range(count):
        value = _row_sum(value, k)
    return [x, value]


def _row_sum(value: Tensor, k: int) -> Tensor:
    r = te.reduce_axis((0, 64), name=f"r{k}")
    total = te.compute((8,), lambda i: te.sum(value[i, r], axis=r), name=f"sum{k}")
    return te.compute((8, 64), lambda i, j: value[i, j] + total[i], name=f"added{k}")


def attention(batch: int = 8, length: int = 128, depth: int = 64) -> Tensors:
    """Scores, softmax and their product with the values, in one declaration."""
    q, k, v = (te.placeholder((batch, length, depth), name=name) for name in "qkv")
    r, t = te.reduce_axis((0, depth), name="r"), te.reduce_axis((0, length), name="t")
    scores = te.compute((batch, length, length), lambda b, i, j: te.sum(q[b, i, r] * k[b, j, r], axis=r), name="scores")
    weights = nn.softmax(scores)
    return [q, k, v, te.compute((batch, length, depth), lambda b, i, j: te.sum(weights[b, i, t] * v[b, t, j], axis=t), name="out")]


def read_twice(count: int) -> Tensors:
    """Stages that read the same element of the previous stage twice."""
    x = te.placeholder((64,), name="x")

    def stage(t: Tensor, k: int) -> Tensor:
        return te.compute((64,), lambda i: t[i] * t[i] + 1.0, name=f"s{k}")

    return [x, reduce(stage, range(count), x)]


def exponentials(count: int) -> Tensors:
    """Stages that are too expensive to be computed twice."""
    x = te.placeholder((256, 64), name="x")

    def stage(t: Tensor, k: int) -> Tensor:
        return te.compute((256, 64), lambda i, j: te.exp(t[i, j]) * t[i, j], name=f"s{k}")

    return [x, reduce(stage, range(count), x)]


def _elementwise(value: Callable[[Tensor, Expr], Expr], length: int = 64) -> Tensors:
    x = te.placeholder((length,), name="x")
    return [x, te.compute((64,), lambda i: value(x, i), name="y")]


def doubled(times: int) -> Tensors:
    """`e = e * e + 1`, repeated."""
    return _elementwise(lambda x, i: reduce(lambda e, _: e * e + 1.0, range(times), x[i]))


def nested(times: int) -> Tensors:
    """Nested additions."""
    return _elementwise(lambda x, i: reduce(lambda e, k: e + float(k), range(times), x[i]))


def choices(times: int) -> Tensors:
    """Nested conditionals in else branches, each of which guards a read."""
    def value(x: Tensor, i: Expr) -> Expr:
        return reduce(lambda e, k: te.if_then_else(i > k % 63, x[i - k % 63 - 1] * float(k), e), range(times), x[i])

    return _elementwise(value)


def index(times: int) -> Tensors:
    """An index that takes many operations to compute."""
    return _elementwise(lambda x, i: x[reduce(lambda e, k: te.min(e + k % 3, 63), range(times), i)])


def wide(terms: int) -> Tensors:
    """A sum of many elements as one long expression."""
    return _elementwise(lambda x, i: reduce(lambda e, k: e + x[i + k], range(1, terms), x[i]), 64 + terms)


def maxima(times: int) -> Tensors:
    """The maximum of many values."""
    return _elementwise(lambda x, i: reduce(lambda e, k: te.max(e, x[i] * float(k)), range(times), x[i]))


def long_reduction(log2: int) -> Tensors:
    """The maximum of 2^log2 bytes."""
    x, r = te.placeholder((1 << log2,), "int8", name="x"), te.reduce_axis((0, 1 << log2), name="r")
    return [x, te.compute((1,), lambda i: te.max(x[r], axis=r), name="y")]


def huge(*shape: int) -> Tensors:
    """A huge tensor with the same value in every element."""
    x = te.placeholder((1,), name="x")
    return [x, te.compute(shape, lambda *at: x[0] + 1.0, name="y")]


def huge_matmul(extent: int) -> Tensors:
    """A product of matrices of this size."""
    a, b = te.placeholder((extent, extent), name="A"), te.placeholder((extent, extent), name="B")
    return [a, b, nn.matmul(a, b, name="C")]


DECLARATIONS: dict[str, Callable[[], Tensors]] = {
    **{f"{count} matmuls with ReLU": lambda count=count: matmuls(count) for count in (2, 6, 8, 12)},  # type: ignore[misc]
    **{f"{count} row sums": lambda count=count: row_sums(count) for count in (6, 12)},  # type: ignore[misc]
    "attention": attention,
    "20 exponentials": lambda: exponentials(20),
    **{f"{count} stages that read twice": lambda count=count: read_twice(count) for count in (5, 20, 60)},  # type: ignore[misc]
    **{f"{count} x e * e + 1": lambda count=count: doubled(count) for count in (12, 30, 200)},  # type: ignore[misc]
    **{f"{count} nested additions": lambda count=count: nested(count) for count in (100, 3000, 20000)},  # type: ignore[misc]
    "3000 nested choices": lambda: choices(3000),
    "index of 1000 operations": lambda: index(1000),
    "sum of 5000 terms": lambda: wide(5000),
    "greatest of 3000": lambda: maxima(3000),
    "greatest of 2^33 bytes": lambda: long_reduction(33),
    "2^31-1 elements": lambda: huge(2**31 - 1),
    "2^16 x 2^16 elements": lambda: huge(2**16, 2**16),
    "10^18 x 10^18 elements": lambda: huge(10**18, 10**18),
    "10^9 x ... elements, 10^36": lambda: huge(10**9, 10**9, 10**9, 10**9),
    "matmul of 10^6": lambda: huge_matmul(10**6),
    "matmul of 10^9": lambda: huge_matmul(10**9),
}


def run(name: str) -> None:
    """Print the costs of one declaration as JSON."""
    from ansor.cost_model.pretrained import pretrained
    from ansor.run.zero_tuning import pick
    from ansor.tasks.task import SearchTask

    pretrained()  # loaded once per process, so its time is not counted
    start = time.process_time()
    said, sketches, lines = "", 0, 0
    try:
        task = SearchTask(tensors=DECLARATIONS[name](), target="cpu -threads=1")
        guess = pick(task).program
        sketches = len(task.spaces)
        lines = len(task.source(guess.sketch, guess.row).text)
    except AnsorError as problem:
        said = str(problem)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, memory, sketches, lines, said]))


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"| {'declaration':28s} | seconds | memory, MB | sketches | C, kB | |\n|{'-' * 30}|---:|---:|---:|---:|---|")
    for name in names or DECLARATIONS:
        try:
            done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, timeout=SECONDS)
            seconds, memory, sketches, size, said = json.loads(done.stdout) if done.returncode == 0 else (0, 0, 0, 0, done.stderr.strip().splitlines()[-1])
        except subprocess.TimeoutExpired:
            seconds, memory, sketches, size, said = SECONDS, 0, 0, 0, "stopped"
        print(f"| {name:28s} | {seconds:7.2f} | {memory:10.0f} | {sketches:8d} | {size / 1000:5.0f} | {said} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2])
    else:
        main(sys.argv[1:])
