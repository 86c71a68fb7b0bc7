"""Single operators to tune, measure and compare, with default shapes from common networks. Each returns its data, then its weights, then the result."""

from __future__ import annotations

from ansor import te
from ansor.te import nn
from ansor.te.tensor import Tensor

Tensors = list[Tensor]


def _data(*shape: int) -> Tensor:
    return te.placeholder(shape, name="data")


def _weight(*shape: int, name: str = "weight") -> Tensor:
    return te.placeholder(shape, name=name, constant=True)


def matmul(n: int = 512, m: int = 512, k: int = 512) -> Tensors:
    """C [n, m] = A [n, k] B [k, m]."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    return [a, b, nn.matmul(a, b, name="C")]


def batch_matmul(batch: int = 12, n: int = 128, m: int = 128, k: int = 64) -> Tensors:
    """A [batch, n, k] times B [batch, m, k] transposed."""
    a, b = te.placeholder((batch, n, k), name="A"), te.placeholder((batch, m, k), name="B")
    return [a, b, nn.batch_matmul(a, b, name="C")]


def dense(rows: int = 128, inputs: int = 768, outputs: int = 3072) -> Tensors:
    """Dense layer with bias and ReLU."""
    data, weight, bias = _data(rows, inputs), _weight(outputs, inputs), _weight(outputs, name="bias")
    return [data, weight, bias, nn.relu(nn.dense(data, weight, bias))]


def conv1d(n: int = 1, w: int = 256, ci: int = 64, co: int = 128, kernel: int = 3, stride: int = 2, padding: int = 1) -> Tensors:
    """1-d convolution, NWC."""
    data, weight = _data(n, w, ci), _weight(kernel, ci, co)
    return [data, weight, nn.conv1d(data, weight, stride, padding, data_layout="NWC")]


def conv2d(n: int = 1, h: int = 56, w: int = 56, ci: int = 64, co: int = 64, kernel: int = 3, stride: int = 1, padding: int = 1, dilation: int = 1,
           groups: int = 1) -> Tensors:
    """2-d convolution, NHWC with an HWIO kernel."""
    data, weight = _data(n, h, w, ci), _weight(kernel, kernel, ci // groups, co)
    return [data, weight, nn.conv2d(data, weight, stride, padding, dilation, groups, "NHWC")]


def conv2d_bn_relu(n: int = 1, h: int = 56, w: int = 56, ci: int = 64, co: int = 64, kernel: int = 3, stride: int = 1, padding: int = 1) -> Tensors:
    """2-d convolution, NHWC, times a scale, plus a shift, ReLU."""
    data, weight = _data(n, h, w, ci), _weight(kernel, kernel, ci, co)
    scale, shift = _weight(co, name="scale"), _weight(co, name="shift")
    conv = nn.conv2d(data, weight, stride, padding, data_layout="NHWC")
    return [data, weight, scale, shift, nn.relu(nn.scale_shift(conv, scale, shift, axis=3))]


def group_conv2d(n: int = 1, h: int = 56, w: int = 56, ci: int = 64, co: int = 128, kernel: int = 3, stride: int = 2, padding: int = 1,
                 groups: int = 4) -> Tensors:
    """2-d convolution in groups, NHWC."""
    return conv2d(n, h, w, ci, co, kernel, stride, padding, 1, groups)


def dilated_conv2d(n: int = 1, h: int = 56, w: int = 56, ci: int = 64, co: int = 64, kernel: int = 3, stride: int = 1, padding: int = 2,
                   dilation: int = 2) -> Tensors:
    """Dilated 2-d convolution, NHWC."""
    return conv2d(n, h, w, ci, co, kernel, stride, padding, dilation)


def depthwise_conv2d(n: int = 1, h: int = 112, w: int = 112, c: int = 32, kernel: int = 3, stride: int = 1, padding: int = 1) -> Tensors:
    """Depthwise 2-d convolution, NHWC."""
    return conv2d(n, h, w, c, c, kernel, stride, padding, 1, c)


def conv3d(n: int = 1, d: int = 16, h: int = 56, w: int = 56, ci: int = 16, co: int = 32, kernel: int = 3, stride: int = 1, padding: int = 1) -> Tensors:
    """3-d convolution, NDHWC."""
    data, weight = _data(n, d, h, w, ci), _weight(kernel, kernel, kernel, ci, co)
    return [data, weight, nn.conv3d(data, weight, stride, padding, data_layout="NDHWC")]


def conv2d_transpose(n: int = 1, h: int = 8, w: int = 8, ci: int = 256, co: int = 128, kernel: int = 4, stride: int = 2, padding: int = 1) -> Tensors:
    """Transposed 2-d convolution, NHWC, as in DCGAN."""
    data, weight = _data(n, h, w, ci), _weight(kernel, kernel, ci, co)
    return [data, weight, nn.conv2d_transpose(data, weight, stride, padding, data_layout="NHWC")]


def capsule_conv2d(n: int = 1, h: int = 16, w: int = 16, ci: int = 32, co: int = 32, kernel: int = 3, stride: int = 2, padding: int = 1,
                   capsule: int = 4) -> Tensors:
    """2-d convolution of small matrices (capsules)."""
    data, weight = _data(n, h, w, capsule, capsule, ci), _weight(kernel, kernel, capsule, capsule, ci, co)
    return [data, weight, nn.capsule_conv2d(data, weight, stride, padding)]


def max_pool2d(n: int = 1, h: int = 112, w: int = 112, c: int = 64, kernel: int = 3, stride: int = 2, padding: int = 1) -> Tensors:
    """2-d maximum pool, NHWC."""
    data = _data(n, h, w, c)
    return [data, nn.pool2d(data, kernel, stride, 1, padding, "max", layout="NHWC")]


def softmax(rows: int = 1536, columns: int = 128) -> Tensors:
    """Softmax over the last dimension."""
    data = _data(rows, columns)
    return [data, nn.softmax(data)]


def layer_norm(rows: int = 128, columns: int = 768) -> Tensors:
    """Layer norm over the last dimension."""
    data, gamma, beta = _data(rows, columns), _weight(columns, name="gamma"), _weight(columns, name="beta")
    return [data, gamma, beta, nn.layer_norm(data, gamma, beta)]


def norm(batch: int = 1, n: int = 256, m: int = 256) -> Tensors:
    """2-norm of each matrix of a batch."""
    data = _data(batch, n, m)
    return [data, nn.norm(data, (1, 2))]
