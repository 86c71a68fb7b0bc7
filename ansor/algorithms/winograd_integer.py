"""3 x 3 convolutions of bytes by Winograd's methods F(2, 3) and F(4, 3) in integers: exact, with 2.25 and 4 times fewer multiplications.

This is for processors that multiply one or two numbers at a time. Where one instruction multiplies many bytes, the direct sum is better, as all numbers here
have 16 bits.

The matrix G has fractions. Multiplying its rows by integers D removes them; the columns of A^T are divided by D, and the whole is scaled to be integer again.
So results are exactly `scale` times too large:

    scale output tile = A' [ (DG kernel (DG)^T) * (B^T tile B) ] A'^T           A' = A^T D^-1 sqrt(scale)

    kernel of bytes ─► |.| <= 9 or 49 x 255, 16 bits           data of bytes ─► |.| <= 4 or 100 x 255, 16 bits

Sums have 32 bits and wrap. That loses nothing as long as the true result is small: let scale = 2^k q with odd q. Multiplying by the inverse of q modulo 2^32
gives 2^k output modulo 2^32, and shifting that down gives every output of magnitude below 2^(31 - k).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.convolution import Convolution, find_convolution
from ansor.algorithms.rewrite import unused, with_stage
from ansor.algorithms.winograd import F2 as FRACTIONS_2
from ansor.algorithms.winograd import F4 as FRACTIONS_4
from ansor.algorithms.winograd import LEAST_CHANNELS, Matrix, from_both_sides, inverse, padded, tile_index
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared

NAME = "winograd_integer"
LARGEST = {"int8": 128, "uint8": 255}


@dataclass(frozen=True)
class Method:
    """F(m, 3). `b`: B^T; `g`: DG; `a`: A'. The scale of results is 2^shift times an odd number, whose inverse modulo 2^32 is `inverse`."""

    m: int
    b: Matrix
    g: Matrix
    a: Matrix
    shift: int
    inverse: int

    @property
    def name(self) -> str:
        """Its name in records."""
        return f"{NAME}_f{self.m}"

    @property
    def alpha(self) -> int:
        """Side of an input tile."""
        return self.m + 2


F2 = Method(2, FRACTIONS_2.b, ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)), FRACTIONS_2.a, 2, 1)
F4 = Method(
    4,
    FRACTIONS_4.b,
    ((1, 0, 0), (-1, -1, -1), (-1, 1, -1), (1, 2, 4), (1, -2, 4), (0, 0, 1)),
    ((6, 4, 4, 1, 1, 0), (0, 4, -4, 2, -2, 0), (0, 4, 4, 4, 4, 0), (0, 4, -4, 8, -8, 24)),
    6, 0x38E3_8E39,
)  # fmt: skip
METHODS = (F4, F2)


@register_algorithm(NAME, everywhere=False)
def winograd_integer(dag: Dag) -> Iterator[Alternative]:
    """Both methods, if tiles do not lie mostly outside the output and results are small enough."""
    conv = find_convolution(dag, "int32")
    if conv is None or conv.groups > 1 or conv.taps != (3, 3) or min(conv.channels, conv.sizes[1]) < LEAST_CHANNELS:
        return
    _, _, height, width = conv.sizes
    for method in METHODS:
        products = method.alpha**2 * -(-height // method.m) * -(-width // method.m)
        if conv.channels <= most_channels(conv, method) and products * 2 <= 9 * height * width * 1.25:
            yield rewritten(dag, conv, method)


def most_channels(conv: Convolution, method: Method) -> int:
    """The most input channels with which no result is too large, whatever the bytes are."""
    return ((1 << (31 - method.shift)) - 1) // (9 * LARGEST[conv.kernel.dtype] * LARGEST[conv.data.dtype])


def rewritten(dag: Dag, conv: Convolution, method: Method) -> Alternative:
    """The workload with its 3 x 3 convolution computed by `method`."""
    n, _, height, width = conv.sizes
    m, tiles_h, tiles_w = method.m, -(-height // method.m), -(-width // method.m)
    product = _product(dag, _data(dag, conv, method, (tiles_h, tiles_w)), _kernel(dag, conv, method))
    outputs = inverse(dag, product, method.a)

    def element(indices: tuple[Expr, ...]) -> Expr:
        i, c, y, x = (indices[k] for k in conv.out_order)
        scaled = outputs[y % m * m + x % m, tile_index(i, y // m, x // m, n, tiles_h, tiles_w), c]
        return (scaled if method.inverse == 1 else scaled * method.inverse) >> method.shift

    return Alternative(method.name, with_stage(dag, conv.stage, element, {}))


def _data(dag: Dag, conv: Convolution, method: Method, tiles: tuple[int, int]) -> Tensor:
    """B^T tile B of every tile: [alpha^2, tiles, channels]."""
    (rows, columns), m = tiles, method.m
    data, count = padded(dag, conv, rows * m + 2, columns * m + 2), conv.sizes[0] * rows * columns

    def pixel(p: Expr, row: Expr | int, column: Expr | int, c: Expr) -> Expr:
        return data[p // (rows * columns), p // columns % rows * m + row, p % columns * m + column, c].astype("int16")

    axes = (Axis("p", count), Axis("c", conv.channels))
    return from_both_sides(dag, ("winograd_rows", "winograd_data"), method.b, ("x", "e"), axes, lambda k, column, p, c: pixel(p, k, column, c))


def _kernel(dag: Dag, conv: Convolution, method: Method) -> Tensor:
    """DG kernel (DG)^T: [alpha^2, output channels, input channels], in stages. It costs little compared to the product, which reads it for every tile."""
    o, i, h, w = conv.kernel_order

    def weight(row: int, column: Axis, co: Axis, ci: Axis) -> Expr:
        places: dict[int, Expr | int] = {o: co, i: ci, h: row, w: column}
        return conv.kernel[tuple(places[d] for d in range(4))].astype("int16")

    axes = (Axis("co", conv.sizes[1]), Axis("ci", conv.channels))
    return from_both_sides(dag, ("winograd_kernel_rows", "winograd_kernel"), method.g, ("x", "e"), axes, weight)


def _product(dag: Dag, data: Tensor, kernel: Tensor) -> Tensor:
    e, p, co = Axis("e", data.shape[0]), Axis("p", data.shape[1]), Axis("co", kernel.shape[1])
    ci = Axis("ci", data.shape[2], "reduce")
    body = sum_over(data[e, p, ci].astype("int32") * kernel[e, co, ci].astype("int32"), axis=[ci])
    return declared(unused(dag, "winograd_product"), (e, p, co), body)
