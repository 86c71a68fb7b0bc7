"""Workloads with known behaviour: those of the reference auto-scheduler's tests, and the ten operators of the Ansor paper (section 7.1).

Each function returns inputs and outputs in the order of its reference, ready for a `Dag`. Tests check the sketches of the first group;
benchmarks tune the second group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.declaration import compute
from ansor.te.expr import Axis, Const, Expr
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else
from ansor.te.scalar import min as minimum
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared, placeholder, reduce_axis

# The workloads of the reference's tests


def matmul(n: int, m: int, k: int) -> list[Tensor]:
    """A [n, k] times B [k, m]."""
    a, b = placeholder((n, k), name="A"), placeholder((k, m), name="B")
    r = reduce_axis((0, k), name="k")
    return [a, b, compute((n, m), lambda i, j: sum_over(a[i, r] * b[r, j], axis=r), name="C")]


def double_matmul(n: int) -> list[Tensor]:
    """A times B, times C; all [n, n]."""
    a, b, c = (placeholder((n, n), name=name) for name in "ABC")
    r = reduce_axis((0, n), name="k")
    d = compute((n, n), lambda i, j: sum_over(a[i, r] * b[r, j], axis=r), name="D")
    s = reduce_axis((0, n), name="k")
    return [a, b, c, compute((n, n), lambda i, j: sum_over(d[i, s] * c[s, j], axis=s), name="E")]


def conv2d_nchw_bn_relu(n: int, h: int, w: int, ci: int, co: int, kernel_size: int, strides: int, padding: int, dilation: int = 1) -> list[Tensor]:
    """Convolution, then bias, batch-norm scale and offset, and relu as separate stages."""
    data, kernel = placeholder((n, ci, h, w), name="Data"), placeholder((co, ci, kernel_size, kernel_size), name="Kernel")
    bias, scale, offset = (placeholder((co, 1, 1), name=name) for name in ("Bias", "Bn_scale", "Bn_offset"))
    conv = nn.conv2d(data, kernel, strides, padding, dilation, name="conv")
    biased = compute(conv.shape, lambda i, j, y, x: conv[i, j, y, x] + bias[j, 0, 0], name="Bias_add")
    scaled = compute(conv.shape, lambda i, j, y, x: biased[i, j, y, x] * scale[j, 0, 0], name="Bn_mul")
    shifted = compute(conv.shape, lambda i, j, y, x: scaled[i, j, y, x] + offset[j, 0, 0], name="Bn_add")
    return [data, kernel, bias, offset, scale, nn.relu(shifted)]


def max_pool2d(n: int, h: int, w: int, ci: int, padding: int) -> list[Tensor]:
    """2 x 2 windows, stride 1."""
    data = placeholder((n, ci, h, w), name="Data")
    return [data, nn.pool2d(data, [2, 2], [1, 1], [1, 1], [padding] * 4, "max", name="pool")]


def min_nm(n: int, m: int) -> list[Tensor]:
    """Least element of every row."""
    a, r = placeholder((n, m), name="A"), reduce_axis((0, m), name="k")
    return [a, compute((n,), lambda i: minimum(a[i, r], axis=r), name="B")]


def softmax_nm(n: int, m: int) -> list[Tensor]:
    """Softmax of every row, in four stages: max, exp, expsum, norm."""
    a = placeholder((n, m), name="A")
    return [a, nn.softmax(a, axis=1, name="")]


def softmax_abcd(a: int, b: int, c: int, d: int) -> list[Tensor]:
    """Softmax along the last of four dimensions."""
    data = placeholder((a, b, c, d), name="A")
    return [data, nn.softmax(data, axis=-1, name="")]


def zero_rank_reduce(n: int) -> list[Tensor]:
    """The sum of a vector, as a tensor of rank 0."""
    a, r = placeholder((n,), name="A"), reduce_axis((0, n), name="k")
    return [a, compute((), lambda: sum_over(a[r], axis=r), name="B")]


# Winograd's F(4, 3) (Lavin and Gray 2016): a 6 x 6 tile of the input gives a 4 x 4 tile of the output. Each matrix is written as in the paper, transposed
# where its name in the declaration says so: output tile = A^T [ (G kernel G^T) * (B^T tile B) ] A.
_B_TRANSPOSED = ((4.0, 0.0, -5.0, 0.0, 1.0, 0.0),
                 (0.0, -4.0, -4.0, 1.0, 1.0, 0.0),
                 (0.0, 4.0, -4.0, -1.0, 1.0, 0.0),
                 (0.0, -2.0, -1.0, 2.0, 1.0, 0.0),
                 (0.0, 2.0, -1.0, -2.0, 1.0, 0.0),
                 (0.0, 4.0, 0.0, -5.0, 0.0, 1.0))
_A_TRANSPOSED = ((1.0, 1.0, 1.0, 1.0, 1.0, 0.0),
                 (0.0, 1.0, -1.0, 2.0, -2.0, 0.0),
                 (0.0, 1.0, 1.0, 4.0, 4.0, 0.0),
                 (0.0, 1.0, -1.0, 8.0, -8.0, 1.0))
WINOGRAD_G = ((1 / 4, 0.0, 0.0),
              (-1 / 6, -1 / 6, -1 / 6),
              (-1 / 6, 1 / 6, -1 / 6),
              (1 / 24, 1 / 12, 1 / 6),
              (1 / 24, -1 / 12, 1 / 6),
              (0.0, 0.0, 1.0))
_TILE = 4
_UNROLLED = "auto_scheduler_simplify_const_tensor_indices"


def conv2d_winograd_nhwc(n: int, h: int, w: int, ci: int, co: int, kernel_size: int = 3, stride: int = 1, padding: int = 0, dilation: int = 1,
                         precompute: bool = False) -> list[Tensor]:
    """3 x 3 convolution of NHWC data by Winograd's method with 4 x 4 output tiles.

    The second tensor is the weight, already transformed to [6, 6, CI, CO] (G kernel G^T, with `WINOGRAD_G`); with `precompute=True` it is the plain
    [3, 3, CI, CO] kernel, and one more pair of stages (G, weight_pack) transforms it.
    """
    if kernel_size != 3 or stride != 1 or dilation != 1:
        raise DeclarationError(
            f"asked for conv2d_winograd_nhwc with kernel_size {kernel_size}, stride {stride} and dilation {dilation}; it supports only 3, 1 and 1"
        )
    alpha, m = _TILE + 2, _TILE
    out_h, out_w = h + 2 * padding - 2, w + 2 * padding - 2
    tiles_h, tiles_w = -(-out_h // m), -(-out_w // m)
    tiles = n * tiles_h * tiles_w
    inputs = placeholder((n, h, w, ci), name="inputs")
    after = (0, padding + tiles_h * m - out_h, padding + tiles_w * m - out_w, 0)
    data_pad = nn.pad(inputs, (0, padding, padding, 0), after, name="data_pad")
    input_tile = compute(
        (alpha, alpha, tiles, ci),
        lambda eps, nu, p, c: data_pad[p // (tiles_h * tiles_w), p // tiles_w % tiles_h * m + eps, p % tiles_w * m + nu, c],
        name="input_tile",
    )
    data_pack = _transformed(input_tile, _constant(_flipped(_B_TRANSPOSED), "B"), ("eps", "nu"), "data_pack")
    weight, weight_pack = _winograd_weight(ci, co, precompute)
    r = reduce_axis((0, ci), name="ci")
    bgemm = compute(
        (alpha, alpha, tiles, co),
        lambda eps, nu, p, co: sum_over(data_pack[eps, nu, p, r] * weight_pack[eps, nu, r, co], axis=r),
        name="bgemm",
    )
    inverse = _transformed(bgemm, _constant(_flipped(_A_TRANSPOSED), "A"), ("vh", "vw"), "inverse")
    output = compute(
        (n, out_h, out_w, co),
        lambda n, h, w, co: inverse[h % m, w % m, n * (tiles_h * tiles_w) + h // m * tiles_w + w // m, co],
        name="conv2d_winograd",
    )
    return [inputs, weight, output]


def _winograd_weight(ci: int, co: int, precompute: bool) -> tuple[Tensor, Tensor]:
    if not precompute:
        weight = placeholder((_TILE + 2, _TILE + 2, ci, co), name="weight", constant=True)
        return weight, weight
    weight = placeholder((3, 3, ci, co), name="weight", constant=True)
    return weight, _transformed(weight, _constant(_flipped(WINOGRAD_G), "G"), ("eps", "nu"), "weight_pack")


def _transformed(tile: Tensor, matrix: Tensor, names: tuple[str, str], name: str) -> Tensor:
    """matrix^T tile matrix over the first two dimensions of `tile`; all four small loops are to be unrolled."""
    rows, columns = matrix.shape
    r_a, r_b = reduce_axis((0, rows), name="r_a"), reduce_axis((0, rows), name="r_b")
    x, y = Axis(names[0], columns), Axis(names[1], columns)
    p, c = Axis("p", tile.shape[2]), Axis("c", tile.shape[3])
    body = sum_over(tile[r_a, r_b, p, c] * matrix[r_a, x] * matrix[r_b, y], axis=[r_a, r_b])
    return declared(name, (x, y, p, c), body, attrs={_UNROLLED: [*names, "r_a", "r_b"]})


def _constant(matrix: Sequence[Sequence[float]], name: str) -> Tensor:
    def chosen(i: Expr, j: Expr) -> Expr:
        value: Expr = Const(0.0, "float32")
        for a, row in enumerate(matrix):
            for b, number in enumerate(row):
                value = if_then_else(all_of(i == a, j == b), number, value)
        return value

    return compute((len(matrix), len(matrix[0])), chosen, name=name, attrs={"const_matrix": True})


def _flipped(matrix: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    return list(zip(*matrix, strict=True))


# The ten operators of the paper. Weights are constants: they are known when a network runs.


def conv1d(n: int, length: int, ci: int, co: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> list[Tensor]:
    """1-D convolution of [N, L, C]."""
    data = placeholder((n, length, ci), name="data")
    kernel = placeholder((kernel_size, ci // groups, co), name="kernel", constant=True)
    return [data, kernel, nn.conv1d(data, kernel, stride, padding, dilation, groups, "NWC")]


def conv2d(n: int, h: int, w: int, ci: int, co: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1,
           groups: int = 1) -> list[Tensor]:
    """2-D convolution of [N, H, W, C]; also the paper's dilated and grouped convolution."""
    data = placeholder((n, h, w, ci), name="data")
    kernel = placeholder((kernel_size, kernel_size, ci // groups, co), name="kernel", constant=True)
    return [data, kernel, nn.conv2d(data, kernel, stride, padding, dilation, groups, "NHWC")]


def conv3d(n: int, d: int, h: int, w: int, ci: int, co: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1,
           groups: int = 1) -> list[Tensor]:
    """3-D convolution of [N, D, H, W, C]."""
    data = placeholder((n, d, h, w, ci), name="data")
    kernel = placeholder((kernel_size,) * 3 + (ci // groups, co), name="kernel", constant=True)
    return [data, kernel, nn.conv3d(data, kernel, stride, padding, dilation, groups, "NDHWC")]


def batch_matmul(b: int, n: int, m: int, k: int) -> list[Tensor]:
    """x [B, N, K] times y [B, K, M]."""
    x, y = placeholder((b, n, k), name="x"), placeholder((b, k, m), name="y")
    return [x, y, nn.batch_matmul(x, y, transpose_b=False)]


def depthwise_conv2d(n: int, h: int, w: int, c: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1,
                     factor: int = 1) -> list[Tensor]:
    """Depthwise convolution of [N, H, W, C], with `factor` output channels per input channel."""
    data = placeholder((n, h, w, c), name="data")
    kernel = placeholder((kernel_size, kernel_size, c, factor), name="kernel", constant=True)
    return [data, kernel, nn.depthwise_conv2d_nhwc(data, kernel, stride, padding, dilation)]


def conv2d_transpose(n: int, h: int, w: int, ci: int, co: int, kernel_size: int, stride: int = 1, padding: int = 0) -> list[Tensor]:
    """Transposed convolution of [N, H, W, C]."""
    data = placeholder((n, h, w, ci), name="data")
    kernel = placeholder((kernel_size, kernel_size, ci, co), name="kernel", constant=True)
    return [data, kernel, nn.conv2d_transpose(data, kernel, stride, padding, data_layout="NHWC")]


def capsule_conv2d(n: int, h: int, w: int, ci: int, co: int, kernel_size: int, stride: int = 1, padding: int = 0, capsule: int = 4) -> list[Tensor]:
    """Capsule convolution of [N, H, W, 4, 4, C]."""
    data = placeholder((n, h, w, capsule, capsule, ci), name="data")
    kernel = placeholder((kernel_size, kernel_size, capsule, capsule, ci, co), name="kernel", constant=True)
    return [data, kernel, nn.capsule_conv2d(data, kernel, stride, padding)]


def norm(b: int, m: int, n: int) -> list[Tensor]:
    """2-norm of each of B matrices."""
    data = placeholder((b, m, n), name="data")
    return [data, nn.norm(data, axis=(1, 2))]


Workload = Callable[..., list[Tensor]]
PAPER_OPERATORS: Mapping[str, tuple[Workload, tuple[int, ...]]] = {
    "C1D": (conv1d, (1, 256, 64, 128, 3, 2, 1)),
    "C2D": (conv2d, (1, 224, 224, 3, 64, 7, 2, 3)),
    "C3D": (conv3d, (1, 16, 224, 224, 3, 64, 7, 2, 3)),
    "GMM": (batch_matmul, (1, 128, 128, 128)),
    "GRP": (conv2d, (1, 56, 56, 64, 128, 3, 2, 1, 1, 4)),
    "DIL": (conv2d, (1, 224, 224, 3, 64, 7, 2, 3, 2)),
    "DEP": (depthwise_conv2d, (1, 112, 112, 32, 3, 1, 1)),
    "T2D": (conv2d_transpose, (1, 4, 4, 512, 256, 4, 2, 1)),
    "CAP": (capsule_conv2d, (1, 16, 16, 32, 32, 3, 2, 1)),
    "NRM": (norm, (1, 256, 256)),
}
