"""3 x 3 convolutions of bytes by Winograd's method F(2, 3), in whole numbers: exact, with 2.25 times fewer multiplications.

For processors that multiply one or two numbers at a time; where one instruction multiplies many bytes, the direct sum is better, as all numbers here are of
16 bits.

The matrix G has halves. Twice G has none, on both sides of the kernel, so that sums are four times what they should be, without a remainder:

    4 output tile = A^T [ (2G kernel (2G)^T) * (B^T tile B) ] A

    kernel of bytes ─► |.| <= 9 x 255, 16 bits             data of bytes ─► |.| <= 4 x 255, 16 bits             sums of 32 bits
"""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.convolution import Convolution, find_convolution
from ansor.algorithms.rewrite import unused, with_stage
from ansor.algorithms.winograd import F2, LEAST_CHANNELS, UNROLLED, chosen, padded, tile_index
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared

NAME = "winograd_integer"
TWICE_G = ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))
M, ALPHA = F2.m, F2.alpha
LARGEST = {"int8": 128, "uint8": 255}


@register_algorithm(NAME, everywhere=False)
def winograd_integer(dag: Dag) -> Iterator[Alternative]:
    """F(2, 3) where tiles are not mostly outside of the output, and nothing on the way needs more than 32 bits."""
    conv = find_convolution(dag, "int32")
    if conv is None or conv.taps != (3, 3) or min(conv.channels, conv.sizes[1]) < LEAST_CHANNELS or conv.channels > most_channels(conv):
        return
    _, _, height, width = conv.sizes
    if ALPHA**2 * -(-height // M) * -(-width // M) * 2 <= 9 * height * width * 1.25:
        yield _rewritten(dag, conv)


def most_channels(conv: Convolution) -> int:
    """Input channels of which no sum needs more than 32 bits, also on its way back through A, which adds nine products."""
    return ((1 << 31) - 1) // (9 * 9 * LARGEST[conv.kernel.dtype] * 4 * LARGEST[conv.data.dtype])


def _rewritten(dag: Dag, conv: Convolution) -> Alternative:
    n, _, height, width = conv.sizes
    tiles_h, tiles_w = -(-height // M), -(-width // M)
    product = _product(dag, _data(dag, conv, tiles_h, tiles_w), _kernel(dag, conv))
    inverse = _inverse(dag, product)

    def element(indices: tuple[Expr, ...]) -> Expr:
        i, c, y, x = (indices[k] for k in conv.out_order)
        tile = tile_index(i, y // M, x // M, n, tiles_h, tiles_w)
        return inverse[y % M * M + x % M, tile, c] >> 2

    return Alternative(NAME, with_stage(dag, conv.stage, element, {}))


def _data(dag: Dag, conv: Convolution, tiles_h: int, tiles_w: int) -> Tensor:
    """B^T tile B of every tile: [16, tiles, channels]."""
    data, count = padded(dag, conv, tiles_h * M + 2, tiles_w * M + 2), conv.sizes[0] * tiles_h * tiles_w

    def pixel(p: Expr, row: Expr | int, column: Expr | int, c: Expr) -> Expr:
        return data[p // (tiles_h * tiles_w), p // tiles_w % tiles_h * M + row, p % tiles_w * M + column, c].astype("int16")

    x, column, p, c = Axis("x", ALPHA), Axis("column", ALPHA), Axis("p", count), Axis("c", conv.channels)
    body = chosen(F2.b, x, lambda k: pixel(p, k, column, c))
    rows = declared(unused(dag, "winograd_rows"), (x, column, p, c), body, attrs={UNROLLED: ["x", "column"]})
    e, p, c = Axis("e", ALPHA * ALPHA), Axis("p", count), Axis("c", conv.channels)
    body = chosen(F2.b, e % ALPHA, lambda k: rows[e // ALPHA, k, p, c])
    return declared(unused(dag, "winograd_data"), (e, p, c), body, attrs={UNROLLED: ["e"]})


def _kernel(dag: Dag, conv: Convolution) -> Tensor:
    """2G kernel (2G)^T: [16, output channels, input channels], in stages. It costs little beside the product, which reads it for every tile."""
    o, i, h, w = conv.kernel_order

    def weight(row: Expr | int, column: Expr | int, ci: Expr, co: Expr) -> Expr:
        places: dict[int, Expr | int] = {o: co, i: ci, h: row, w: column}
        return conv.kernel[tuple(places[d] for d in range(4))].astype("int16")

    x, column, co, ci = Axis("x", ALPHA), Axis("column", 3), Axis("co", conv.sizes[1]), Axis("ci", conv.channels)
    body = chosen(TWICE_G, x, lambda k: weight(k, column, ci, co))
    rows = declared(unused(dag, "winograd_kernel_rows"), (x, column, co, ci), body, attrs={UNROLLED: ["x", "column"]})
    e, co, ci = Axis("e", ALPHA * ALPHA), Axis("co", conv.sizes[1]), Axis("ci", conv.channels)
    body = chosen(TWICE_G, e % ALPHA, lambda k: rows[e // ALPHA, k, co, ci])
    return declared(unused(dag, "winograd_kernel"), (e, co, ci), body, attrs={UNROLLED: ["e"]})


def _product(dag: Dag, data: Tensor, kernel: Tensor) -> Tensor:
    e, p, co = Axis("e", data.shape[0]), Axis("p", data.shape[1]), Axis("co", kernel.shape[1])
    ci = Axis("ci", data.shape[2], "reduce")
    body = sum_over(data[e, p, ci].astype("int32") * kernel[e, co, ci].astype("int32"), axis=[ci])
    return declared(unused(dag, "winograd_product"), (e, p, co), body)


def _inverse(dag: Dag, product: Tensor) -> Tensor:
    """A^T . A of every tile: [4, tiles, output channels]."""
    y, column, p, co = Axis("y", M), Axis("column", ALPHA), Axis("p", product.shape[1]), Axis("co", product.shape[2])
    body = chosen(F2.a, y, lambda k: product[k * ALPHA + column, p, co])
    rows = declared(unused(dag, "winograd_inverse_rows"), (y, column, p, co), body, attrs={UNROLLED: ["y", "column"]})
    f, p, co = Axis("f", M * M), Axis("p", product.shape[1]), Axis("co", product.shape[2])
    body = chosen(F2.a, f % M, lambda k: rows[f // M, k, p, co])
    return declared(unused(dag, "winograd_inverse"), (f, p, co), body, attrs={UNROLLED: ["f"]})
