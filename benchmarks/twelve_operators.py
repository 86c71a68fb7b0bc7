"""Twelve operators that are not in the data set of the pretrained model."""

from __future__ import annotations

from collections.abc import Callable

from ansor.te import workloads
from ansor.te.tensor import Tensor
from ansor.zoo import operators

OPERATORS: dict[str, Callable[[], list[Tensor]]] = {
    "matmul": lambda: operators.matmul(480, 480, 480),
    "conv2d": lambda: workloads.conv2d_nchw_bn_relu(1, 28, 28, 96, 96, 3, 1, 1),
    "strided": lambda: workloads.conv2d_nchw_bn_relu(1, 56, 56, 48, 96, 3, 2, 1),
    "pointwise": lambda: workloads.conv2d(1, 14, 14, 320, 320, 1),
    "depthwise": lambda: workloads.depthwise_conv2d(1, 28, 28, 160, 3, 1, 1),
    "dense": lambda: operators.dense(96, 640, 640),
    "batch_matmul": lambda: operators.batch_matmul(8, 96, 96, 64),
    "softmax": lambda: operators.softmax(960, 160),
    "grouped": lambda: operators.group_conv2d(1, 28, 28, 192, 192, 3, 1, 1, 6),
    "transposed": lambda: workloads.conv2d_transpose(1, 12, 12, 160, 80, 4, 2, 1),
    "dilated": lambda: workloads.conv2d(1, 30, 30, 80, 80, 3, 1, 2, 2),
    "layer_norm": lambda: operators.layer_norm(320, 640),
}
