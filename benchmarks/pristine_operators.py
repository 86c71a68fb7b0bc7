"""Operators of families that were never used in development, in two sizes each: the model in the package was not trained on them, and no constant, rule or
algorithm was tried on them. They stand for users' own operators. `pristine.py` measures them.

Their families (`ansor.dataset.family`) are new, not only their sizes: a test compares them with those of the other two sets in `operator_sets.py`. If you
change anything because of a figure of one of these, move its family to the set "tuned on" there, and add another family here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """The gradient of an image at each point."""
    x = te.placeholder((rows + 2, columns + 2), name="x")

    def along(i: Expr, j: Expr) -> Expr:
        return x[i, j + 2] - x[i, j] + 2.0 * (x[i + 1, j + 2] - x[i + 1, j]) + x[i + 2, j + 2] - x[i + 2, j]

    def down(i: Expr, j: Expr) -> Expr:
        return x[i + 2, j] - x[i, j] + 2.0 * (x[i + 2, j + 1] - x[i, j + 1]) + x[i + 2, j + 2] - x[i, j + 2]

    return [x, te.compute((rows, columns), lambda i, j: te.sqrt(along(i, j) * along(i, j) + down(i, j) * down(i, j)), name="y")]


def correlogram(records: int, channels: int, length: int, lags: int) -> list[Tensor]:
    """The correlation of two signals at each lag, channel by channel, summed over recordings (seismology)."""
    a, b = te.placeholder((records, channels, length), name="a"), te.placeholder((records, channels, length + lags - 1), name="b")
    r, t = te.reduce_axis(records, "r"), te.reduce_axis(length, "t")
    return [a, b, te.compute((channels, lags), lambda c, s: te.sum(a[r, c, t] * b[r, c, t + s], axis=[r, t]), name="y")]


def mttkrp(i: int, j: int, k: int, rank: int) -> list[Tensor]:
    """A three-dimensional tensor times the Khatri-Rao product of two matrices."""
    t, b, c = te.placeholder((i, j, k), name="t"), te.placeholder((j, rank), name="b"), te.placeholder((k, rank), name="c")
    p, q = te.reduce_axis(j, "p"), te.reduce_axis(k, "q")
    return [t, b, c, te.compute((i, rank), lambda x, r: te.sum(t[x, p, q] * b[p, r] * c[q, r], axis=[p, q]), name="y")]


def contraction(n: int) -> list[Tensor]:
    """Contracts two four-dimensional tensors over two dimensions, in an order that is not that of a matrix product."""
    a, b = te.placeholder((n, n, n, n), name="a"), te.placeholder((n, n, n, n), name="b")
    e, f = te.reduce_axis(n, "e"), te.reduce_axis(n, "f")
    return [a, b, te.compute((n, n, n, n), lambda i, j, k, m: te.sum(a[i, e, j, f] * b[m, f, k, e], axis=[e, f]), name="y")]


def upsample(channels: int, size: int) -> list[Tensor]:
    """Doubles rows and columns, by bilinear interpolation."""
    x = te.placeholder((channels, size + 1, size + 1), name="x")

    def one(c: Expr, i: Expr, j: Expr) -> Expr:
        y, z = i // 2, j // 2
        return 0.25 * (x[c, y, z] + x[c, y + i % 2, z] + x[c, y, z + j % 2] + x[c, y + i % 2, z + j % 2])

    return [x, te.compute((channels, 2 * size, 2 * size), one, name="y")]


def group_norm(groups: int, channels: int, size: int) -> list[Tensor]:
    """Normalises each group of channels to mean 0 and deviation 1."""
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
    """The new state of an LSTM cell: four gates, computed from the input and the previous state."""
    x, h, c = (te.placeholder((batch, width), name=name) for name, width in (("x", inputs), ("h", hidden), ("c", hidden)))
    w, u = te.placeholder((4, hidden, inputs), name="w", constant=True), te.placeholder((4, hidden, hidden), name="u", constant=True)
    k, m = te.reduce_axis(inputs, "k"), te.reduce_axis(hidden, "m")
    new = te.compute((batch, 4, hidden), lambda b, g, j: te.sum(x[b, k] * w[g, j, k], axis=k), name="new")
    old = te.compute((batch, 4, hidden), lambda b, g, j: te.sum(h[b, m] * u[g, j, m], axis=m), name="old")
    gates = te.compute((batch, 4, hidden), lambda b, g, j: new[b, g, j] + old[b, g, j], name="gates")
    state = te.compute((batch, hidden), lambda b, j: te.sigmoid(gates[b, 0, j]) * c[b, j] + te.sigmoid(gates[b, 1, j]) * te.tanh(gates[b, 2, j]), name="state")
    return [x, h, c, w, u, te.compute((batch, hidden), lambda b, j: te.sigmoid(gates[b, 3, j]) * te.tanh(state[b, j]), name="y")]


def distances(rows: int, others: int, width: int) -> list[Tensor]:
    """Squared distances between two sets of points."""
    x, y, k = te.placeholder((rows, width), name="x"), te.placeholder((others, width), name="y"), te.reduce_axis(width, "k")
    return [x, y, te.compute((rows, others), lambda i, j: te.sum((x[i, k] - y[j, k]) * (x[i, k] - y[j, k]), axis=k), name="d")]


def response_norm(channels: int, size: int, window: int) -> list[Tensor]:
    """Each number divided by a function of the squares of its neighbours in other channels (AlexNet)."""
    x, c = te.placeholder((channels + window - 1, size, size), name="x"), te.reduce_axis(window, "c")
    near = te.compute((channels, size, size), lambda a, i, j: te.sum(x[a + c, i, j] * x[a + c, i, j], axis=c), name="near")
    return [x, te.compute((channels, size, size), lambda a, i, j: x[a + window // 2, i, j] / te.sqrt(1.0 + 1e-4 * near[a, i, j]), name="y")]


def block_matching(blocks: int, side: int, reach: int) -> list[Tensor]:
    """Sums of absolute differences between blocks of two images, for each shift (video)."""
    extent = blocks * side
    a = te.placeholder((extent, extent), "int16", name="a")
    b = te.placeholder((extent + reach - 1, extent + reach - 1), "int16", name="b")
    i, j = te.reduce_axis(side, "i"), te.reduce_axis(side, "j")

    def one(y: Expr, x: Expr, p: Expr, q: Expr) -> Expr:
        away = a[y * side + i, x * side + j].astype("int32") - b[y * side + i + p, x * side + j + q].astype("int32")
        return te.sum(te.abs(away), axis=[i, j])

    return [a, b, te.compute((blocks, blocks, reach, reach), one, name="y")]


def bilinear(batch: int, outputs: int, left: int, right: int) -> list[Tensor]:
    """A bilinear form of two vectors for each output."""
    x, y = te.placeholder((batch, left), name="x"), te.placeholder((batch, right), name="y")
    w = te.placeholder((outputs, left, right), name="w", constant=True)
    i, j = te.reduce_axis(left, "i"), te.reduce_axis(right, "j")
    return [x, y, w, te.compute((batch, outputs), lambda n, o: te.sum(x[n, i] * w[o, i, j] * y[n, j], axis=[i, j]), name="z")]


def complex_product(n: int) -> list[Tensor]:
    """The real part of a product of complex matrices, which store real and imaginary parts separately."""
    a, b, k = te.placeholder((2, n, n), name="a"), te.placeholder((2, n, n), name="b"), te.reduce_axis(n, "k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[0, i, k] * b[0, k, j] - a[1, i, k] * b[1, k, j], axis=k), name="y")]


def min_plus(rows: int, columns: int, inner: int) -> list[Tensor]:
    """A matrix product over the min-plus semiring: minima for sums, and sums for products (shortest paths)."""
    a, b, k = te.placeholder((rows, inner), name="a"), te.placeholder((inner, columns), name="b"), te.reduce_axis(inner, "k")
    return [a, b, te.compute((rows, columns), lambda i, j: te.min(a[i, k] + b[k, j], axis=k), name="y")]


def grouped_conv_3d(groups: int, channels: int, outputs: int, size: int) -> list[Tensor]:
    """A grouped 3-d convolution (video)."""
    x = te.placeholder((groups * channels, size + 2, size + 2, size + 2), name="x")
    w = te.placeholder((groups * outputs, channels, 3, 3, 3), name="w", constant=True)
    c, p, q, r = te.reduce_axis(channels, "c"), te.reduce_axis(3, "p"), te.reduce_axis(3, "q"), te.reduce_axis(3, "r")

    def one(o: Expr, i: Expr, j: Expr, k: Expr) -> Expr:
        return te.sum(x[o // outputs * channels + c, i + p, j + q, k + r] * w[o, c, p, q, r], axis=[c, p, q, r])

    return [x, w, te.compute((groups * outputs, size, size, size), one, name="y")]


def locally_connected(channels: int, outputs: int, size: int) -> list[Tensor]:
    """A convolution with different weights at each position (faces)."""
    x = te.placeholder((channels, size + 2, size + 2), name="x")
    w = te.placeholder((size, size, outputs, channels, 3, 3), name="w", constant=True)
    c, p, q = te.reduce_axis(channels, "c"), te.reduce_axis(3, "p"), te.reduce_axis(3, "q")
    return [x, w, te.compute((outputs, size, size), lambda o, i, j: te.sum(x[c, i + p, j + q] * w[i, j, o, c, p, q], axis=[c, p, q]), name="y")]


def involution(channels: int, size: int, window: int) -> list[Tensor]:
    """A filter for each position, shared by all channels."""
    x = te.placeholder((channels, size + window - 1, size + window - 1), name="x")
    w, p, q = te.placeholder((size, size, window, window), name="w"), te.reduce_axis(window, "p"), te.reduce_axis(window, "q")
    return [x, w, te.compute((channels, size, size), lambda c, i, j: te.sum(x[c, i + p, j + q] * w[i, j, p, q], axis=[p, q]), name="y")]


def toeplitz(batch: int, length: int) -> list[Tensor]:
    """A Toeplitz matrix, stored as its constant diagonals, times vectors (long convolutions over sequences)."""
    x, t, j = te.placeholder((batch, length), name="x"), te.placeholder((2 * length - 1,), name="t"), te.reduce_axis(length, "j")
    return [x, t, te.compute((batch, length), lambda b, i: te.sum(t[i - j + length - 1] * x[b, j], axis=j), name="y")]


def banded(rows: int, columns: int, band: int) -> list[Tensor]:
    """A banded matrix, stored as its diagonals, times a matrix."""
    a, x = te.placeholder((rows, band), name="a"), te.placeholder((rows + band - 1, columns), name="x")
    d = te.reduce_axis(band, "d")
    return [a, x, te.compute((rows, columns), lambda i, j: te.sum(a[i, d] * x[i + d, j], axis=d), name="y")]


def local_scores(heads: int, length: int, width: int, window: int) -> list[Tensor]:
    """Products of each query with the keys around it (attention in a window)."""
    q, k = te.placeholder((heads, length, width), name="q"), te.placeholder((heads, length + window - 1, width), name="k")
    d = te.reduce_axis(width, "d")
    return [q, k, te.compute((heads, length, window), lambda h, i, w: te.sum(q[h, i, d] * k[h, i + w, d], axis=d), name="y")]


def causal_depthwise(batch: int, channels: int, length: int, window: int) -> list[Tensor]:
    """A causal filter along each channel of a sequence, then SiLU (state space models)."""
    x, w = te.placeholder((batch, channels, length), name="x"), te.placeholder((channels, window), name="w", constant=True)
    p = te.reduce_axis(window, "p")
    before = te.compute((batch, channels, length + window - 1), lambda b, c, t: te.if_then_else(t >= window - 1, x[b, c, t - window + 1], 0.0), name="before")
    y = te.compute((batch, channels, length), lambda b, c, t: te.sum(before[b, c, t + p] * w[c, p], axis=p), name="y")
    return [x, w, te.compute((batch, channels, length), lambda b, c, t: y[b, c, t] * te.sigmoid(y[b, c, t]), name="z")]


def state_step(batch: int, channels: int, states: int) -> list[Tensor]:
    """One step of a state space model: the states decay, the input is added, and the output is read from them."""
    h, x = te.placeholder((batch, channels, states), name="h"), te.placeholder((batch, channels), name="x")
    a = te.placeholder((channels, states), name="a", constant=True)
    b, c, n = te.placeholder((batch, states), name="b"), te.placeholder((batch, states), name="c"), te.reduce_axis(states, "n")
    new = te.compute((batch, channels, states), lambda i, d, s: h[i, d, s] * te.exp(a[d, s]) + x[i, d] * b[i, s], name="new")
    return [h, x, a, b, c, new, te.compute((batch, channels), lambda i, d: te.sum(new[i, d, n] * c[i, n], axis=n), name="y")]


def polynomial(channels: int, places: int, degree: int) -> list[Tensor]:
    """A polynomial for each channel, by Horner's method."""
    x, a = te.placeholder((channels, places), name="x"), te.placeholder((channels, degree + 1), name="a", constant=True)

    def one(c: Expr, i: Expr) -> Expr:
        value: Expr = a[c, degree]
        for power in reversed(range(degree)):
            value = value * x[c, i] + a[c, power]
        return value

    return [x, a, te.compute((channels, places), one, name="y")]


def embedding_bag(bags: int, length: int, words: int, width: int) -> list[Tensor]:
    """Sums of rows of a table, given by their indices."""
    index, table = te.placeholder((bags, length), "int32", name="chosen"), te.placeholder((words, width), name="table")
    n = te.reduce_axis(length, "n")
    return [index, table, te.compute((bags, width), lambda b, d: te.sum(table[index[b, n], d], axis=n), name="y")]


def routing(batch: int, inputs: int, outputs: int, width: int, depth: int) -> list[Tensor]:
    """The predictions of each capsule for each capsule of the next layer, with a matrix for each pair."""
    u, w = te.placeholder((batch, inputs, depth), name="u"), te.placeholder((inputs, outputs, width, depth), name="w", constant=True)
    k = te.reduce_axis(depth, "k")
    return [u, w, te.compute((batch, inputs, outputs, width), lambda b, i, j, d: te.sum(u[b, i, k] * w[i, j, d, k], axis=k), name="y")]


def chain(n: int, rank: int) -> list[Tensor]:
    """A matrix times a low-rank matrix that is given as a product."""
    x, u, v = te.placeholder((n, n), name="x"), te.placeholder((n, rank), name="u"), te.placeholder((rank, n), name="v")
    k, r = te.reduce_axis(n, "k"), te.reduce_axis(rank, "r")
    inner = te.compute((n, rank), lambda i, j: te.sum(x[i, k] * u[k, j], axis=k), name="inner")
    return [x, u, v, te.compute((n, n), lambda i, j: te.sum(inner[i, r] * v[r, j], axis=r), name="y")]


def triangle(n: int, channels: int) -> list[Tensor]:
    """Edges of a graph from the two other edges of each triangle, channel by channel (protein structures)."""
    a, b, k = te.placeholder((n, n, channels), name="a"), te.placeholder((n, n, channels), name="b"), te.reduce_axis(n, "k")
    return [a, b, te.compute((n, n, channels), lambda i, j, c: te.sum(a[i, k, c] * b[j, k, c], axis=k), name="y")]


def bilateral(rows: int, columns: int, window: int) -> list[Tensor]:
    """A bilateral filter, which smooths an image but keeps its edges: means of neighbours, weighted by similarity."""
    x, half = te.placeholder((rows + window - 1, columns + window - 1), name="x"), window // 2

    def alike(i: Expr, j: Expr, p: Expr, q: Expr) -> Expr:
        away = x[i + p, j + q] - x[i + half, j + half]
        return te.exp(away * away * -8.0)

    p, q, r, s = (te.reduce_axis(window, name) for name in "pqrs")
    total = te.compute((rows, columns), lambda i, j: te.sum(alike(i, j, p, q) * x[i + p, j + q], axis=[p, q]), name="total")
    weight = te.compute((rows, columns), lambda i, j: te.sum(alike(i, j, r, s), axis=[r, s]), name="weight")
    return [x, te.compute((rows, columns), lambda i, j: total[i, j] / weight[i, j], name="y")]


def block_cosines(blocks: int, across: int) -> list[Tensor]:
    """A cosine transform of each 8 x 8 block: a product with a matrix on either side (JPEG)."""
    x, d = te.placeholder((8 * blocks, 8 * across), name="x"), te.placeholder((8, 8), name="d", constant=True)
    i, j = te.reduce_axis(8, "i"), te.reduce_axis(8, "j")
    half = te.compute((blocks, across, 8, 8), lambda y, z, u, q: te.sum(d[u, i] * x[8 * y + i, 8 * z + q], axis=i), name="half")
    return [x, d, te.compute((blocks, across, 8, 8), lambda y, z, u, v: te.sum(half[y, z, u, j] * d[v, j], axis=j), name="y")]


def morphology(rows: int, columns: int, window: int) -> list[Tensor]:
    """The difference between dilation and erosion of an image."""
    x = te.placeholder((rows + window - 1, columns + window - 1), name="x")
    shape = te.placeholder((window, window), name="shape", constant=True)
    p, q, r, s = (te.reduce_axis(window, name) for name in "pqrs")
    most = te.compute((rows, columns), lambda i, j: te.max(x[i + p, j + q] + shape[p, q], axis=[p, q]), name="most")
    least = te.compute((rows, columns), lambda i, j: te.min(x[i + r, j + s] - shape[r, s], axis=[r, s]), name="least")
    return [x, shape, te.compute((rows, columns), lambda i, j: most[i, j] - least[i, j], name="y")]


FAMILIES: dict[str, tuple[Callable[..., list[Tensor]], tuple[int, ...], tuple[int, ...]]] = {
    "heat_3d": (heat_3d, (96,), (40,)),
    "sobel": (sobel, (720, 1280), (250, 333)),
    "correlogram": (correlogram, (16, 24, 1000, 32), (6, 50, 333, 20)),
    "mttkrp": (mttkrp, (128, 96, 64, 32), (50, 60, 70, 16)),
    "contraction": (contraction, (24,), (15,)),
    "upsample": (upsample, (64, 56), (24, 100)),
    "group_norm": (group_norm, (32, 4, 56), (8, 12, 28)),
    "lstm": (lstm, (16, 256, 256), (1, 128, 512)),
    "distances": (distances, (1024, 256, 64), (300, 500, 3)),
    "response_norm": (response_norm, (96, 27, 5), (64, 55, 9)),
    "block_matching": (block_matching, (24, 8, 8), (10, 16, 12)),
    "bilinear": (bilinear, (32, 64, 64, 64), (8, 100, 48, 96)),
    "complex_product": (complex_product, (256,), (150,)),
    "min_plus": (min_plus, (256, 256, 256), (200, 320, 100)),
    "grouped_conv_3d": (grouped_conv_3d, (8, 16, 16, 14), (32, 4, 4, 16)),
    "locally_connected": (locally_connected, (16, 16, 24), (8, 32, 14)),
    "involution": (involution, (64, 56, 7), (96, 28, 3)),
    "toeplitz": (toeplitz, (64, 512), (7, 1000)),
    "banded": (banded, (2048, 128, 17), (600, 333, 9)),
    "local_scores": (local_scores, (8, 1024, 64, 65), (12, 300, 32, 33)),
    "causal_depthwise": (causal_depthwise, (1, 1536, 512, 4), (4, 256, 1000, 4)),
    "state_step": (state_step, (8, 1536, 16), (64, 256, 64)),
    "polynomial": (polynomial, (256, 4096, 7), (30, 9999, 12)),
    "embedding_bag": (embedding_bag, (256, 32, 10000, 64), (1000, 8, 2000, 96)),
    "routing": (routing, (16, 288, 10, 16, 8), (4, 512, 32, 8, 12)),
    "chain": (chain, (512, 32), (700, 8)),
    "triangle": (triangle, (64, 64), (100, 24)),
    "bilateral": (bilateral, (256, 256, 5), (120, 500, 7)),
    "block_cosines": (block_cosines, (64, 64), (30, 50)),
    "morphology": (morphology, (360, 640, 5), (200, 150, 9)),
}
"""Each family with its two sizes, a usual and an odd one."""


def _named() -> Iterator[tuple[str, Callable[[], list[Tensor]]]]:
    for name, (declare, *sizes) in FAMILIES.items():
        for size in sizes:
            yield f"{name}_{'x'.join(map(str, size))}", partial(declare, *size)


OPERATORS: dict[str, Callable[[], list[Tensor]]] = dict(_named())
