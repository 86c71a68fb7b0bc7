"""Fourteen operators of families that nothing was ever chosen on: the model in the package did not learn from them, and no constant, rule or algorithm was
tried on them. They stand for what somebody else declares.

    python benchmarks/zero_tuning.py --set pristine --trials 200     what is picked without measuring, beside tuned kernels
    python benchmarks/few_trials.py --set pristine                   what short runs reach of long ones

The other two sets: what the model learned from (four fifths of `ansor.dataset.operators`, marked with a star in tables), and what the project looks at while
it is made (the last fifth, the suite, `twelve_operators`). Families, not sizes, keep this one apart: a test holds them against those of the others. Whoever
changes anything because of a figure of this set moves the operator to `twelve_operators`, and puts another family here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ansor import te
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor


def heat_3d(n: int) -> list[Tensor]:
    """One step of the heat equation: the six neighbours of each inner point."""
    x = te.placeholder((n + 2, n + 2, n + 2), name="x")

    def step(i: Expr, j: Expr, k: Expr) -> Expr:
        around = x[i, j + 1, k + 1] + x[i + 2, j + 1, k + 1] + x[i + 1, j, k + 1] + x[i + 1, j + 2, k + 1] + x[i + 1, j + 1, k] + x[i + 1, j + 1, k + 2]
        return 0.4 * x[i + 1, j + 1, k + 1] + 0.1 * around

    return [x, te.compute((n, n, n), step, name="y")]


def sobel(rows: int, columns: int) -> list[Tensor]:
    """How steep a picture is at each point."""
    x = te.placeholder((rows + 2, columns + 2), name="x")

    def along(i: Expr, j: Expr) -> Expr:
        return x[i, j + 2] - x[i, j] + 2.0 * (x[i + 1, j + 2] - x[i + 1, j]) + x[i + 2, j + 2] - x[i + 2, j]

    def down(i: Expr, j: Expr) -> Expr:
        return x[i + 2, j] - x[i, j] + 2.0 * (x[i + 2, j + 1] - x[i, j + 1]) + x[i + 2, j + 2] - x[i, j + 2]

    return [x, te.compute((rows, columns), lambda i, j: te.sqrt(along(i, j) * along(i, j) + down(i, j) * down(i, j)), name="y")]


def cost_volume(channels: int, rows: int, columns: int, reach: int) -> list[Tensor]:
    """What two pictures have in common at each place, for each shift of one of them (optical flow)."""
    a = te.placeholder((channels, rows, columns), name="a")
    b = te.placeholder((channels, rows + reach - 1, columns + reach - 1), name="b")
    c = te.reduce_axis(channels, "c")
    return [a, b, te.compute((reach, reach, rows, columns), lambda p, q, i, j: te.sum(a[c, i, j] * b[c, i + p, j + q], axis=c), name="y")]


def mttkrp(i: int, j: int, k: int, rank: int) -> list[Tensor]:
    """A tensor of three dimensions times the Khatri-Rao product of two matrices."""
    t, b, c = te.placeholder((i, j, k), name="t"), te.placeholder((j, rank), name="b"), te.placeholder((k, rank), name="c")
    p, q = te.reduce_axis(j, "p"), te.reduce_axis(k, "q")
    return [t, b, c, te.compute((i, rank), lambda x, r: te.sum(t[x, p, q] * b[p, r] * c[q, r], axis=[p, q]), name="y")]


def contraction(n: int) -> list[Tensor]:
    """Two tensors of four dimensions over two of them, in orders that no matrix product has."""
    a, b = te.placeholder((n, n, n, n), name="a"), te.placeholder((n, n, n, n), name="b")
    e, f = te.reduce_axis(n, "e"), te.reduce_axis(n, "f")
    return [a, b, te.compute((n, n, n, n), lambda i, j, k, m: te.sum(a[i, e, j, f] * b[m, f, k, e], axis=[e, f]), name="y")]


def upsample(channels: int, size: int) -> list[Tensor]:
    """Twice as many rows and columns, the new ones half way between the others."""
    x = te.placeholder((channels, size + 1, size + 1), name="x")

    def one(c: Expr, i: Expr, j: Expr) -> Expr:
        y, z = i // 2, j // 2
        return 0.25 * (x[c, y, z] + x[c, y + i % 2, z] + x[c, y, z + j % 2] + x[c, y + i % 2, z + j % 2])

    return [x, te.compute((channels, 2 * size, 2 * size), one, name="y")]


def group_norm(groups: int, channels: int, size: int) -> list[Tensor]:
    """Each group of channels with mean 0 and deviation 1."""
    x, count = te.placeholder((groups, channels, size, size), name="x"), channels * size * size

    def axes() -> list[te.Axis]:
        return [te.reduce_axis(channels, "c"), te.reduce_axis(size, "i"), te.reduce_axis(size, "j")]

    c, i, j = axes()
    total = te.compute((groups,), lambda g: te.sum(x[g, c, i, j], axis=[c, i, j]), name="total")
    d, k, m = axes()
    squares = te.compute((groups,), lambda g: te.sum(x[g, d, k, m] * x[g, d, k, m], axis=[d, k, m]), name="squares")

    def one(g: Expr, a: Expr, y: Expr, z: Expr) -> Expr:
        mean = total[g] / count
        return (x[g, a, y, z] - mean) * te.rsqrt(squares[g] / count - mean * mean + 1e-5)

    return [x, te.compute((groups, channels, size, size), one, name="y")]


def lstm(batch: int, inputs: int, hidden: int) -> list[Tensor]:
    """The new state of a cell: four gates, of the input and of the state before."""
    x, h, c = (te.placeholder((batch, width), name=name) for name, width in (("x", inputs), ("h", hidden), ("c", hidden)))
    w, u = te.placeholder((4, hidden, inputs), name="w", constant=True), te.placeholder((4, hidden, hidden), name="u", constant=True)
    k, m = te.reduce_axis(inputs, "k"), te.reduce_axis(hidden, "m")
    new = te.compute((batch, 4, hidden), lambda b, g, j: te.sum(x[b, k] * w[g, j, k], axis=k), name="new")
    old = te.compute((batch, 4, hidden), lambda b, g, j: te.sum(h[b, m] * u[g, j, m], axis=m), name="old")
    gates = te.compute((batch, 4, hidden), lambda b, g, j: new[b, g, j] + old[b, g, j], name="gates")
    state = te.compute((batch, hidden), lambda b, j: te.sigmoid(gates[b, 0, j]) * c[b, j] + te.sigmoid(gates[b, 1, j]) * te.tanh(gates[b, 2, j]), name="state")
    return [x, h, c, w, u, te.compute((batch, hidden), lambda b, j: te.sigmoid(gates[b, 3, j]) * te.tanh(state[b, j]), name="y")]


def gram(channels: int, places: int) -> list[Tensor]:
    """How often channels go together: a matrix times itself, turned."""
    x, p = te.placeholder((channels, places), name="x"), te.reduce_axis(places, "p")
    return [x, te.compute((channels, channels), lambda i, j: te.sum(x[i, p] * x[j, p], axis=p), name="y")]


def distances(rows: int, others: int, width: int) -> list[Tensor]:
    """Squared distances of points from others."""
    x, y, k = te.placeholder((rows, width), name="x"), te.placeholder((others, width), name="y"), te.reduce_axis(width, "k")
    return [x, y, te.compute((rows, others), lambda i, j: te.sum((x[i, k] - y[j, k]) * (x[i, k] - y[j, k]), axis=k), name="d")]


def response_norm(channels: int, size: int, window: int) -> list[Tensor]:
    """Each number less by the squares of its neighbours in other channels (AlexNet)."""
    x, c = te.placeholder((channels + window - 1, size, size), name="x"), te.reduce_axis(window, "c")
    near = te.compute((channels, size, size), lambda a, i, j: te.sum(x[a + c, i, j] * x[a + c, i, j], axis=c), name="near")
    return [x, te.compute((channels, size, size), lambda a, i, j: x[a + window // 2, i, j] / te.sqrt(1.0 + 1e-4 * near[a, i, j]), name="y")]


def block_matching(blocks: int, side: int, reach: int) -> list[Tensor]:
    """Sums of absolute differences of blocks of two pictures, for each shift (video)."""
    extent = blocks * side
    a = te.placeholder((extent, extent), "int16", name="a")
    b = te.placeholder((extent + reach - 1, extent + reach - 1), "int16", name="b")
    i, j = te.reduce_axis(side, "i"), te.reduce_axis(side, "j")

    def one(y: Expr, x: Expr, p: Expr, q: Expr) -> Expr:
        away = a[y * side + i, x * side + j].astype("int32") - b[y * side + i + p, x * side + j + q].astype("int32")
        return te.sum(te.abs(away), axis=[i, j])

    return [a, b, te.compute((blocks, blocks, reach, reach), one, name="y")]


def bilinear(batch: int, outputs: int, left: int, right: int) -> list[Tensor]:
    """A form of two vectors for each output."""
    x, y = te.placeholder((batch, left), name="x"), te.placeholder((batch, right), name="y")
    w = te.placeholder((outputs, left, right), name="w", constant=True)
    i, j = te.reduce_axis(left, "i"), te.reduce_axis(right, "j")
    return [x, y, w, te.compute((batch, outputs), lambda n, o: te.sum(x[n, i] * w[o, i, j] * y[n, j], axis=[i, j]), name="z")]


def complex_product(n: int) -> list[Tensor]:
    """The real part of a product of complex matrices, whose parts lie apart."""
    a, b, k = te.placeholder((2, n, n), name="a"), te.placeholder((2, n, n), name="b"), te.reduce_axis(n, "k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[0, i, k] * b[0, k, j] - a[1, i, k] * b[1, k, j], axis=k), name="y")]


OPERATORS: dict[str, Callable[[], list[Tensor]]] = {
    "heat_3d": partial(heat_3d, 96),
    "sobel": partial(sobel, 720, 1280),
    "cost_volume": partial(cost_volume, 64, 40, 56, 9),
    "mttkrp": partial(mttkrp, 128, 96, 64, 32),
    "contraction": partial(contraction, 24),
    "upsample": partial(upsample, 64, 56),
    "group_norm": partial(group_norm, 32, 4, 56),
    "lstm": partial(lstm, 16, 256, 256),
    "gram": partial(gram, 256, 784),
    "distances": partial(distances, 1024, 256, 64),
    "response_norm": partial(response_norm, 96, 27, 5),
    "block_matching": partial(block_matching, 24, 8, 8),
    "bilinear": partial(bilinear, 32, 64, 64, 64),
    "complex_product": partial(complex_product, 256),
}
