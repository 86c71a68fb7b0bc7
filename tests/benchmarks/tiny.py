"""Each kind of operator in a tiny size, with the number of its operations counted by hand."""

from __future__ import annotations

from functools import partial

import kinds
from kinds import Operator

TINY: dict[str, tuple[partial[Operator], int]] = {
    "conv1d": (partial(kinds.conv, 2, 3, (9,), 4, 3, 2, 1), 2 * (2 * 4 * 5) * (3 * 3)),
    "conv2d": (partial(kinds.conv, 1, 3, (7, 5), 4, 3, 1, 1), 2 * (4 * 7 * 5) * (3 * 3 * 3)),
    "conv2d, strided": (partial(kinds.conv, 1, 3, (8, 8), 4, 7, 2, 3), 2 * (4 * 4 * 4) * (3 * 7 * 7)),
    "conv2d, pointwise": (partial(kinds.conv, 1, 5, (4, 4), 6, 1), 2 * (6 * 4 * 4) * 5),
    "conv2d, grouped": (partial(kinds.conv, 2, 4, (6, 6), 6, 3, 1, 1, 1, 2), 2 * (2 * 6 * 6 * 6) * (2 * 3 * 3)),
    "conv2d, dilated": (partial(kinds.conv, 1, 3, (9, 9), 2, 3, 1, 2, 2), 2 * (2 * 9 * 9) * (3 * 3 * 3)),
    "conv2d, depthwise": (partial(kinds.conv, 2, 4, (7, 7), 4, 3, 2, 1, 1, 4), 2 * (2 * 4 * 4 * 4) * (3 * 3)),
    "conv3d": (partial(kinds.conv, 1, 2, (4, 5, 6), 3, 3, 2, 1), 2 * (3 * 2 * 3 * 3) * (2 * 3 * 3 * 3)),
    "transposed": (partial(kinds.transposed_conv, 2, 3, 4, 5, 4, 2, 1), 2 * (2 * 5 * 8 * 8) * (3 * 2 * 2)),
    "capsule": (partial(kinds.capsule, 2, 6, 3, 5, 3, 2, 1, 2), 2 * (2 * 3 * 3 * 2 * 2 * 5) * (2 * 3 * 3 * 3)),
    "matrix norm": (partial(kinds.matrix_norm, 3, 5, 7), 2 * 3 * 5 * 7),
    "matmul": (partial(kinds.matmul, 3, 5, 7), 2 * 3 * 5 * 7),
    "matrix vector": (partial(kinds.matrix_vector, 5, 9), 2 * 5 * 9),
    "int8 matmul": (partial(kinds.int8_matmul, 24), 2 * 24 * 24 * 24),
    "batch matmul": (partial(kinds.batch_matmul, 2, 3, 5, 7), 2 * 2 * 3 * 5 * 7),
    "batch matmul, transposed": (partial(kinds.batch_matmul, 2, 3, 5, 7, True), 2 * 2 * 3 * 5 * 7),
    "dense": (partial(kinds.dense, 3, 5, 7), 2 * 3 * 5 * 7 + 3 * 7),
    "softmax": (partial(kinds.softmax, 2, 3, 7), 0),
    "layer norm": (partial(kinds.layer_norm, 3, 8), 0),
    "gelu": (partial(kinds.gelu, 3, 8), 0),
    "conv, batch norm, relu": (partial(kinds.conv_bn_relu, 1, 3, 6, 4, 3, 2, 1), 2 * (4 * 3 * 3) * (3 * 3 * 3) + 3 * (4 * 3 * 3)),
    "attention scores": (partial(kinds.attention_scores, 2, 5, 3, 4), 0),
}
"""Kind -> operator and operations; calls of functions (a root) do not count, and 0 means that there are hardly any others."""
