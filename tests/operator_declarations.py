"""Random declarations made with the operator library (`ansor.te.nn`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansor import te
from tests.declarations import Array, Draw, Given


def nn_conv(draw: Draw) -> Given:
    """te.nn convolutions: groups, dilation, asymmetric padding, transposed, one to three dimensions, both layouts."""
    groups = draw.integer(1, 3)
    ci, co = groups * draw.integer(1, 3), groups * draw.integer(1, 4)
    last = draw.chance(50)
    form = draw.integer(0, 4)
    rank = 2 if form in (0, 3) else draw.integer(1, 2)
    sizes = [draw.integer(3, 6) for _ in range(rank)]
    taps = [draw.integer(1, 3) for _ in range(rank)]
    data = te.placeholder((1, *sizes, ci) if last else (1, ci, *sizes), name="data")
    layout = ("NWC" if last else "NCW") if rank == 1 else ("NHWC" if last else "NCHW")
    stride = draw.integer(1, 2)
    if form >= 3:
        weight = te.placeholder((*taps, ci, co // groups) if last else (ci, co // groups, *taps), name="weight", constant=draw.chance(70))
        transposed = te.nn.conv1d_transpose if rank == 1 else te.nn.conv2d_transpose
        out = transposed(data, weight, stride, draw.integer(0, min(taps) // 2), output_padding=draw.integer(0, stride - 1), groups=groups, data_layout=layout)
    else:
        weight = te.placeholder((*taps, ci // groups, co) if last else (co, ci // groups, *taps), name="weight", constant=draw.chance(70))
        convolution = te.nn.conv1d if rank == 1 else te.nn.conv2d
        dilation = draw.integer(1, 2) if max(taps) < 3 else 1
        out = convolution(data, weight, stride, "SAME" if draw.chance(30) else draw.integer(0, 1), dilation, groups, data_layout=layout)
    if draw.chance(40):
        out = te.nn.relu(out)
    return Given([data, weight, out], {})


def nn_pool(draw: Draw) -> Given:
    """te.nn pooling: averages with and without padding counted, ceil mode, dilation, adaptive, global."""
    last = draw.chance(50)
    channels, sizes = draw.pick([1, 3, 8, 17]), (draw.integer(3, 8), draw.integer(3, 8))
    data = te.placeholder((1, *sizes, channels) if last else (1, channels, *sizes), name="data")
    layout = "NHWC" if last else "NCHW"
    kind = draw.pick(["max", "avg"])
    form = draw.integer(0, 3)
    if form == 0:
        out = te.nn.adaptive_pool(data, (draw.integer(1, 4), draw.integer(1, 4)), kind, layout)
    elif form == 1:
        out = te.nn.global_pool(data, kind, layout)
    else:
        taps = draw.integer(1, 3)
        out = te.nn.pool2d(data, taps, draw.integer(1, 2), 1, draw.integer(0, taps // 2), kind, draw.chance(50), layout, draw.chance(50))
    return Given([data, out], {})


def nn_norm(draw: Draw) -> Given:
    """te.nn normalisations over one or several axes."""
    n, m = draw.extent(5), draw.pick([2, 5, 16, 20])
    x = te.placeholder((n, m), name="x")
    form = draw.integer(0, 4)
    if form == 0:
        return Given([x, te.nn.softmax(x, axis=draw.pick([0, 1, -1]))], {})
    if form == 1:
        return Given([x, te.nn.log_softmax(x)], {})
    if form == 2:
        gamma, beta = te.placeholder((m,), name="gamma", constant=True), te.placeholder((m,), name="beta", constant=True)
        return Given([x, gamma, beta, te.nn.layer_norm(x, gamma, beta)], {})
    if form == 3:
        return Given([x, te.nn.l2_normalize(x)], {})
    return Given([x, te.nn.norm(x)], {})


def nn_shape(draw: Draw) -> Given:
    """te.nn copies: joined, padded, reshaped, transposed, sliced, broadcast, taken."""
    n, m = draw.extent(6), draw.extent(8)
    dtype = draw.pick(["float32", "int32", "int8", "bool", "float64"])
    x, y = te.placeholder((n, m), dtype, name="x"), te.placeholder((n, 3), dtype, name="y")
    form = draw.integer(0, 6)
    if form == 0:
        return Given([x, y, te.nn.concatenate([x, y, x], axis=1)], {})
    if form == 1:
        return Given([x, te.nn.pad(x, (draw.integer(0, 2), 1), (0, draw.integer(0, 3)))], {})
    if form == 2:
        return Given([x, te.nn.reshape(te.nn.transpose(x), (n * m,))], {})
    if form == 3:
        return Given([x, te.nn.reshape(te.nn.pad(x, (1, 1), (1, 1)), ((m + 2) * (n + 2), 1))], {})
    if form == 4:
        index = te.placeholder((4,), "int64", name="index")
        values: dict[str, Array] = {"index": np.asarray(np.random.default_rng(1).integers(0, n, 4), dtype=np.int64)}
        return Given([x, index, te.nn.take(x, index, 0)], values)
    if form == 5:
        flat = te.nn.flatten(te.nn.concatenate([x, x], axis=0))
        return Given([x, te.nn.expand_dims(flat, 1)], {})
    return Given([x, y, te.nn.concatenate([te.nn.pad(x, (0, 1), (0, 1)), te.nn.pad(y, (0, 1), (0, 0))], axis=1)], {})


def nn_dense(draw: Draw) -> Given:
    """te.nn dense, batched products and capsules, with what usually follows."""
    form = draw.integer(0, 2)
    if form == 0:
        n, m, k = draw.extent(6), draw.pick([3, 8, 16]), draw.extent(9)
        x, w, bias = te.placeholder((n, k), name="x"), te.placeholder((m, k), name="w", constant=True), te.placeholder((m,), name="bias", constant=True)
        out = te.nn.dense(x, w, bias)
        return Given([x, w, bias, te.nn.relu(out) if draw.chance(50) else out], {})
    if form == 1:
        batch, n, m, k = draw.extent(3), draw.extent(5), draw.extent(6), draw.extent(7)
        x, y = te.placeholder((batch, n, k), name="x"), te.placeholder((batch, m, k), name="y")
        return Given([x, y, te.nn.batch_matmul(x, y)], {})
    data = te.placeholder((1, 4, 4, 2, 2, 3), name="data")
    weight = te.placeholder((2, 2, 2, 3, 3, 2), name="weight", constant=draw.chance(50))
    return Given([data, weight, te.nn.capsule_conv2d(data, weight, draw.integer(1, 2), draw.integer(0, 1))], {})


OPERATOR_KINDS: dict[str, Callable[[Draw], Given]] = {"nn_conv": nn_conv, "nn_pool": nn_pool, "nn_norm": nn_norm, "nn_shape": nn_shape, "nn_dense": nn_dense}
