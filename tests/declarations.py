"""Random small declarations, with inputs and the results NumPy gives: shared by the tests that compare schedules and generated code with an oracle.

`random_case(draw)` asks `draw` for every decision: `hypothesis_draw(data)` shrinks, `seeded_draw(seed)` is fast and runs anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor

Array = NDArray[np.generic]
T = TypeVar("T")


@dataclass(frozen=True)
class Draw:
    """Decisions: `integer(low, high)` inclusive."""

    integer: Callable[[int, int], int]

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about this percentage of cases. Shrinks to False."""
        return self.integer(1, 100) > 100 - percent

    def extent(self, high: int = 9) -> int:
        """A loop length; primes, 1 and round numbers."""
        return self.integer(1, high)


def hypothesis_draw(data: st.DataObject) -> Draw:
    """Decisions made by hypothesis."""
    return Draw(lambda low, high: data.draw(st.integers(low, high)))


def seeded_draw(seed: int) -> Draw:
    """Decisions made by a seed."""
    return Draw(random.Random(seed).randint)


@dataclass(frozen=True)
class Case:
    """A declaration, values for its inputs, and the expected outputs. All by the names of the Dag."""

    kind: str
    dag: Dag
    inputs: dict[str, Array]
    expected: dict[str, Array]

    @cached_property
    def precise(self) -> dict[str, Array]:
        """The outputs, those of float32 declarations from double precision. Computed once for all programs of the declaration."""
        found = evaluate(self.dag.outputs, self.inputs, "float64")
        return {tensor.name: value for tensor, value in zip(self.dag.outputs, found, strict=True)}

    def check(self, found: dict[str, Array], what: object) -> None:
        """AssertionError unless the outputs are as expected."""
        for name, expected in self.expected.items():
            same = np.allclose(found[name], expected, rtol=1e-4, atol=1e-5, equal_nan=True)
            assert same, f"{self.kind}: output {name} is wrong\n{self.dag}\n{what}\nfound\n{found[name]}\nexpected\n{expected}"


@dataclass(frozen=True)
class Given:
    """A declaration and the values of the inputs that are not free to choose (indices)."""

    tensors: list[Tensor]
    values: dict[str, Array]


def random_case(draw: Draw, kind: str | None = None) -> Case:
    """One declaration of `kind` (a name in KINDS), or of any."""
    kind = kind or draw.pick(sorted(KINDS))
    given = KINDS[kind](draw)
    dag = Dag(given.tensors)
    rng = np.random.default_rng(draw.integer(0, 1000))
    placeholders = [tensor for tensor in given.tensors if tensor.is_placeholder]
    inputs = {
        renamed.name: given.values.get(tensor.name, _values(rng, tensor)) for tensor, renamed in zip(placeholders, dag.inputs, strict=True)
    }
    results = evaluate(dag.outputs, dict(inputs))
    return Case(kind, dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, results, strict=True)})


def _values(rng: np.random.Generator, tensor: Tensor) -> Array:
    """Small whole numbers: sums and products are exact in every dtype and order."""
    if tensor.dtype == "bool":
        return np.asarray(rng.integers(0, 2, tensor.shape), dtype=np.bool_)
    low = 0 if tensor.dtype == "uint8" else -2
    return np.asarray(rng.integers(low, 4, tensor.shape)).astype(tensor.dtype)


def _after(draw: Draw, tensor: Tensor, extra: list[Tensor], names: str) -> list[Tensor]:
    """Elementwise stages after `tensor`; inputs that they need are added to `extra`. Returns the outputs."""
    outputs: list[Tensor] = []
    current = tensor
    for k in range(draw.integer(0, 3)):
        current = _elementwise(draw, current, extra, f"{names}{k}")
        if draw.chance(15):
            outputs.append(current)
    return [*(t for t in outputs if t is not current), current] if current is not tensor else [tensor]


def _elementwise(draw: Draw, x: Tensor, extra: list[Tensor], name: str) -> Tensor:
    choice = draw.integer(0, 6)
    if choice == 0:
        return te.compute(x.shape, lambda *i: te.max(x[i], 0), name=name)
    if choice == 1 and x.ndim:
        which = draw.integer(0, x.ndim - 1)
        bias = te.placeholder((x.shape[which],), x.dtype, name=f"{name}_bias", constant=draw.chance(50))
        extra.append(bias)
        return te.compute(x.shape, lambda *i: x[i] + bias[i[which]], name=name)
    if choice == 2:
        return te.compute(x.shape, lambda *i: x[i] * 2 + 1, name=name)
    if choice == 3 and x.dtype.startswith("float"):
        return te.compute(x.shape, lambda *i: te.exp(te.min(x[i], 1.0)), name=name)
    if choice == 4:
        return te.compute(x.shape, lambda *i: te.if_then_else(x[i] > 1, x[i], x[i] - 3), name=name)
    if choice == 5 and x.ndim >= 2:
        return te.compute((*x.shape[:-2], x.shape[-1], x.shape[-2]), lambda *i: x[(*i[:-2], i[-1], i[-2])], name=name)
    other = te.placeholder(x.shape, x.dtype, name=f"{name}_other")
    extra.append(other)
    return te.compute(x.shape, lambda *i: x[i] + other[i], name=name)


def matmul(draw: Draw) -> Given:
    """[batch,] n, m, k, with transposed operands, integer types and stages after it."""
    n, m, k = draw.extent(), draw.extent(), draw.extent()
    batch = (draw.extent(3),) if draw.chance(30) else ()
    dtype = draw.pick(["float32", "float32", "float64", "int32", "int8"])
    turned = draw.chance(50)
    a = te.placeholder((*batch, n, k), dtype, name="A")
    b = te.placeholder((*batch, m, k) if turned else (*batch, k, m), dtype, name="B", constant=draw.chance(60))
    r = te.reduce_axis((0, k), name="k")
    to = "int32" if dtype == "int8" else dtype

    def body(*i: Expr) -> Expr:
        left = a[(*i[:-2], i[-2], r)]
        right = b[(*i[:-2], i[-1], r)] if turned else b[(*i[:-2], r, i[-1])]
        return te.sum(left.astype(to) * right.astype(to), axis=r)

    c = te.compute((*batch, n, m), body, name="C")
    extra: list[Tensor] = []
    outputs = _after(draw, c, extra, "post")
    if draw.chance(15) and c not in outputs:
        outputs = [c, *outputs]
    return Given([a, b, *extra, *outputs], {})


def two_matmuls(draw: Draw) -> Given:
    """(A B) C, perhaps with relu in between."""
    n, m, k, p = (draw.extent(6) for _ in range(4))
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B", constant=draw.chance(50))
    c = te.placeholder((m, p), name="C", constant=draw.chance(50))
    r, s = te.reduce_axis((0, k), name="k"), te.reduce_axis((0, m), name="k")
    d = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="D")
    middle = te.compute((n, m), lambda i, j: te.max(d[i, j], 0.0), name="relu") if draw.chance(50) else d
    return Given([a, b, c, te.compute((n, p), lambda i, j: te.sum(middle[i, s] * c[s, j], axis=s), name="E")], {})


def conv(draw: Draw) -> Given:
    """1-D or 2-D convolution in either layout, padded, strided, dilated, depthwise, with stages behind."""
    rank = draw.integer(1, 2)
    high = 9 if rank == 1 else 6
    taps = [draw.integer(1, 3) for _ in range(rank)]
    stride, dilation, padding = draw.integer(1, 2), draw.integer(1, 2), draw.integer(0, 1)
    sizes = [max(draw.extent(high), (t - 1) * dilation + 1 - 2 * padding) for t in taps]
    n, ci, co = draw.integer(1, 2), draw.extent(4), draw.extent(5)
    last = draw.chance(50)
    depthwise = draw.chance(25)
    data = te.placeholder((n, *sizes, ci) if last else (n, ci, *sizes), name="data")
    weight_shape = (*taps, ci) if depthwise else (*taps, ci, co)
    weight = te.placeholder(weight_shape, name="weight", constant=draw.chance(70))
    source = _padded(data, padding, rank, last) if padding else data
    places = [(size + 2 * padding - (tap - 1) * dilation - 1) // stride + 1 for size, tap in zip(sizes, taps, strict=True)]
    channels = ci if depthwise else co
    rc = te.reduce_axis((0, ci), name="rc")
    rs = [te.reduce_axis((0, tap), name=f"r{k}") for k, tap in enumerate(taps)]

    def body(*i: Expr) -> Expr:
        batch, channel = i[0], (i[-1] if last else i[1])
        where = [p * stride + r * dilation for p, r in zip(i[1:-1] if last else i[2:], rs, strict=True)]
        read = channel if depthwise else rc
        value = source[(batch, *where, read)] if last else source[(batch, read, *where)]
        filter_index = (*rs, channel) if depthwise else (*rs, rc, channel)
        return te.sum(value * weight[filter_index], axis=rs if depthwise else [rc, *rs])

    shape = (n, *places, channels) if last else (n, channels, *places)
    return _with_posts(draw, [data, weight], te.compute(shape, body, name="conv"))


def _with_posts(draw: Draw, inputs: list[Tensor], out: Tensor) -> Given:
    extra: list[Tensor] = []
    outputs = _after(draw, out, extra, "post")
    return Given([*inputs, *extra, *outputs], {})


def _padded(x: Tensor, padding: int, rank: int, last: bool) -> Tensor:
    first = 1 if last else 2
    shape = [e + 2 * padding if first <= d < first + rank else e for d, e in enumerate(x.shape)]

    def body(*i: Expr) -> Expr:
        inner = [p - padding if first <= d < first + rank else p for d, p in enumerate(i)]
        tests = [test for d in range(first, first + rank) for test in (i[d] >= padding, i[d] < x.shape[d] + padding)]
        return te.if_then_else(te.all(*tests), x[tuple(inner)], te.const(0.0, x.dtype))

    return te.compute(tuple(shape), body, name="pad")


def _combine(draw: Draw) -> Callable[[Expr, list[Axis]], Expr]:
    return draw.pick([lambda x, axes: te.sum(x, axis=axes), lambda x, axes: te.max(x, axis=axes), lambda x, axes: te.min(x, axis=axes)])


def pool(draw: Draw) -> Given:
    """Windows over padded data, maximum or sum, in either layout."""
    taps = [draw.integer(1, 3), draw.integer(1, 3)]
    stride, padding = draw.integer(1, 2), draw.integer(0, 1)
    sizes = [max(draw.extent(8), t) for t in taps]
    last = draw.chance(50)
    channels = draw.extent(40) if draw.chance(30) else draw.extent(5)
    data = te.placeholder((1, *sizes, channels) if last else (1, channels, *sizes), name="data")
    source = _padded(data, padding, 2, last) if padding else data
    places = [(size + 2 * padding - tap) // stride + 1 for size, tap in zip(sizes, taps, strict=True)]
    rs = [te.reduce_axis((0, tap), name=f"r{k}") for k, tap in enumerate(taps)]
    combine = _combine(draw)

    def body(*i: Expr) -> Expr:
        where = [p * stride + r for p, r in zip(i[1:-1] if last else i[2:], rs, strict=True)]
        return combine(source[(i[0], *where, i[-1]) if last else (i[0], i[1], *where)], rs)

    return _with_posts(draw, [data], te.compute((1, *places, channels) if last else (1, channels, *places), body, name="pool"))


def elementwise(draw: Draw) -> Given:
    """A chain of elementwise stages of rank 0 to 3, some of them outputs."""
    dtype = draw.pick(["float32", "float64", "int8", "uint8", "int16", "int32", "int64"])
    shape = tuple(draw.extent(7) for _ in range(draw.integer(0, 3)))
    x = te.placeholder(shape, dtype, name="x")
    extra: list[Tensor] = []
    current, outputs = x, []
    for k in range(draw.integer(1, 4)):
        current = _elementwise(draw, current, extra, f"e{k}")
        if draw.chance(20):
            outputs.append(current)
    kept = [t for t in outputs if t is not current]
    return Given([x, *extra, *kept, current], {})


def reduction(draw: Draw) -> Given:
    """Sum, product, maximum or minimum over some dimensions, sometimes long enough to be split in two."""
    dtype = draw.pick(["float32", "float64", "int32", "int16"])
    rank = draw.integer(1, 3)
    shape = [draw.extent(6) for _ in range(rank)]
    dims = [d for d in range(rank) if draw.chance(60)] or [draw.integer(0, rank - 1)]
    shape[dims[0]] = draw.pick([1, 7, 16, 24, 36, 60])
    x = te.placeholder(tuple(shape), dtype, name="x")
    start = 1 if shape[dims[0]] > 3 and draw.chance(20) else 0
    axes = {d: te.reduce_axis((start if d == dims[0] else 0, shape[d]), name=f"r{d}") for d in dims}
    combine = _combine(draw)
    rest = [d for d in range(rank) if d not in dims]
    plain = draw.chance(50)

    def body(*i: Expr) -> Expr:
        named = dict(zip(rest, i, strict=True))
        value = x[tuple(axes[d] if d in axes else named[d] for d in range(rank))]
        return combine(value if plain else value * 2, list(axes.values()))

    return _with_posts(draw, [x], te.compute(tuple(shape[d] for d in rest), body, name="reduced"))


def softmax(draw: Draw) -> Given:
    """Maximum, exponential, sum, quotient along the last dimension."""
    shape = (*(draw.extent(5) for _ in range(draw.integer(1, 2))), draw.pick([1, 5, 16, 21, 32]))
    x = te.placeholder(shape, name="x")
    return Given([x, te.nn.softmax(x)], {})


def normalised(draw: Draw) -> Given:
    """(x - mean) * scale, where mean is a reduction that the last stage reads."""
    n, m = draw.extent(6), draw.extent(20)
    x, scale = te.placeholder((n, m), name="x"), te.placeholder((m,), name="scale", constant=True)
    r = te.reduce_axis((0, m), name="r")
    total = te.compute((n,), lambda i: te.sum(x[i, r], axis=r), name="total")
    mean = te.compute((n,), lambda i: total[i] * (1.0 / m), name="mean")
    centred = te.compute((n, m), lambda i, j: x[i, j] - mean[i], name="centred")
    return Given([x, scale, te.compute((n, m), lambda i, j: centred[i, j] * scale[j], name="out")], {})


def moved(draw: Draw) -> Given:
    """Copies in another order: flattened, sliced, shifted, joined, reversed, triangular; with a stage before or after."""
    n, m = draw.extent(), draw.extent()
    x = te.placeholder((n, m), name="x")
    first = te.compute((n, m), lambda i, j: te.max(x[i, j], 0.0), name="first") if draw.chance(50) else x
    choice = draw.integer(0, 5)
    if choice == 0:
        out = te.compute((n * m,), lambda i: first[te.floordiv(i, m), te.floormod(i, m)] + 1.0, name="flat")
    elif choice == 1:
        out = te.compute((m, n), lambda i, j: first[j, i], name="turned")
    elif choice == 2:
        y = te.placeholder((n, m), name="y")
        out = te.compute((n, 2 * m), lambda i, j: te.if_then_else(j < m, first[i, j], y[i, j - m]), name="joined")
        return _with_posts(draw, [x, y], out)
    elif choice == 3:
        out = te.compute((n, m), lambda i, j: first[n - 1 - i, m - 1 - j], name="reversed")
    elif choice == 4:
        out = te.compute((n, m), lambda i, j: te.if_then_else(te.any(i >= j, i == 0), first[i, j] * 2.0, 0.0), name="lower")
    else:
        out = te.compute((n, m), lambda i, j: first[te.floordiv(i, 2), te.floormod(j * 3, m)] + first[i, j], name="mixed")
    return _with_posts(draw, [x], out)


def gather(draw: Draw) -> Given:
    """Rows of a table chosen by data, alone, summed, or multiplied."""
    rows, width, count = draw.extent(), draw.extent(), draw.extent()
    dtype = draw.pick(["int32", "int64"])
    table, index = te.placeholder((rows, width), name="table"), te.placeholder((count,), dtype, name="chosen")
    values = {"chosen": np.asarray(np.random.default_rng(draw.integer(0, 99)).integers(0, rows, count)).astype(dtype)}
    choice = draw.integer(0, 2)
    if choice == 0:
        found = te.compute((count, width), lambda i, j: table[index[i], j], name="found")
        extra: list[Tensor] = []
        outputs = _after(draw, found, extra, "post")
        return Given([table, index, *extra, *outputs], values)
    r = te.reduce_axis((0, count), name="r")
    if choice == 1:
        return Given([table, index, te.compute((width,), lambda j: te.sum(table[index[r], j], axis=r), name="total")], values)
    doubled = te.compute((rows, width), lambda i, j: table[i, j] * 2.0, name="doubled")
    guarded = te.compute((count, width), lambda i, j: te.if_then_else(index[i] > 0, doubled[index[i] - 1, j], 0.0), name="found")
    return Given([table, index, guarded], values)


KINDS: dict[str, Callable[[Draw], Given]] = {
    "matmul": matmul, "two_matmuls": two_matmuls, "conv": conv, "pool": pool, "elementwise": elementwise, "reduction": reduction,
    "softmax": softmax, "normalised": normalised, "moved": moved, "gather": gather,
}  # fmt: skip
