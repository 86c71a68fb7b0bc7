"""Winograd's methods in integers (`winograd_integer`), a few tiles at a time: they need little memory besides the tensors, and only temporarily.

Tiles are indexed by rows and columns, and the output gets the same dimensions. So a rule (`tile_with_split`) can compute all stages of a few tiles inside the
loops of the output, in local buffers.

    data ─► pad ─► B^T tile ─► . B ─┐
                                    ├─► product ─► A' . ─► . A'^T ─► output            for each block of tiles
    DG kernel (DG)^T, ahead of time ┘

The kernel is a constant and is stored transformed: 36 or 16 numbers of 16 bits in place of 9.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.convolution import Convolution, find_convolution
from ansor.algorithms.rewrite import in_groups, unused, with_stage
from ansor.algorithms.winograd import LEAST_CHANNELS, chosen, padded
from ansor.algorithms.winograd_integer import METHODS, Method, most_channels
from ansor.codegen.source import Transform
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared, placeholder

NAME = "winograd_tiles"


@register_algorithm(NAME, everywhere=False)
def winograd_tiles(dag: Dag) -> Iterator[Alternative]:
    """Both methods, if kernels are constants, tiles are whole, and results are small enough."""
    conv = find_convolution(dag, "int32")
    if conv is None or conv.groups > 1 or conv.taps != (3, 3) or not conv.kernel.constant or len(dag.outputs) != 1:
        return
    if min(conv.channels, conv.sizes[1]) < LEAST_CHANNELS:
        return
    _, _, height, width = conv.sizes
    for method in METHODS:
        if conv.channels <= most_channels(conv, method) and height % method.m == 0 and width % method.m == 0:
            yield rewritten(dag, conv, method)


def rewritten(dag: Dag, conv: Convolution, method: Method) -> Alternative:
    """The workload with its 3 x 3 convolution computed by `method`."""
    o, i, h, w = conv.kernel_order
    matrix = tuple(tuple(float(a * b) for a in first for b in second) for first in method.g for second in method.g)
    ready = placeholder((method.alpha**2, conv.channels, conv.sizes[1]), "int16", conv.kernel.name, constant=True)
    inverse = _inverse(dag, _product(dag, _data(dag, conv, method), ready), method)

    def element(indices: tuple[Expr, ...]) -> Expr:
        n, c, y, x = (indices[k] for k in conv.out_order)
        scaled = inverse[n, y // method.m, x // method.m, c, y % method.m * method.m + x % method.m]
        return (scaled if method.inverse == 1 else scaled * method.inverse) >> method.shift

    made = with_stage(dag, conv.stage, element, {conv.kernel.name: ready})
    made = in_groups(in_groups(made, method.m), method.m)
    return Alternative(f"{NAME}_f{method.m}", made, {conv.kernel.name: Transform(matrix, (h, w), (i, o), "int16")})


def _data(dag: Dag, conv: Convolution, method: Method) -> Tensor:
    """B^T tile B of every tile: [n, rows, columns, alpha^2, channels]."""
    n, _, height, width = conv.sizes
    m, alpha = method.m, method.alpha
    data = padded(dag, conv, height + 2, width + 2)
    own: tuple[Axis, ...] = (Axis("n", n), Axis("ty", height // m), Axis("tx", width // m), Axis("c", conv.channels))
    i, ty, tx, c = own
    x, column = Axis("x", alpha), Axis("column", alpha)
    body = chosen(method.b, x, lambda k: data[i, ty * m + k, tx * m + column, c].astype("int32"))
    rows = declared(unused(dag, "winograd_rows"), (*own, x, column), body, attrs=_written_out("x", "column"))
    own = tuple(Axis(axis.name, axis.extent) for axis in own)
    e = Axis("e", alpha * alpha)
    body = chosen(method.b, e % alpha, lambda k: rows[(*own, e // alpha, k)]).astype("int16")
    return declared(unused(dag, "winograd_data"), (*own[:3], e, own[3]), body, attrs=_written_out("e"))


def _product(dag: Dag, data: Tensor, kernel: Tensor) -> Tensor:
    """[n, rows, columns, output channels, alpha^2]."""
    own = tuple(Axis(name, extent) for name, extent in zip(("n", "ty", "tx"), data.shape, strict=False))
    co, e, ci = Axis("co", kernel.shape[2]), Axis("e", kernel.shape[0]), Axis("ci", kernel.shape[1], "reduce")
    body = sum_over(data[(*own, e, ci)].astype("int32") * kernel[e, ci, co].astype("int32"), axis=[ci])
    return declared(unused(dag, "winograd_product"), (*own, co, e), body, attrs={access.SPLIT_BEHIND: True})


def _inverse(dag: Dag, product: Tensor, method: Method) -> Tensor:
    """A' . A'^T of every tile: [n, rows, columns, output channels, m^2]."""
    m, alpha = method.m, method.alpha
    y, column = Axis("y", m), Axis("column", alpha)
    own = tuple(Axis(name, extent) for name, extent in zip(("n", "ty", "tx", "co"), product.shape, strict=False))
    body = chosen(method.a, y, lambda k: product[(*own, k * alpha + column)])
    rows = declared(unused(dag, "winograd_inverse_rows"), (*own, y, column), body, attrs=_written_out("y", "column"))
    own = tuple(Axis(axis.name, axis.extent) for axis in own)
    f = Axis("f", m * m)
    body = chosen(method.a, f % m, lambda k: rows[(*own, f // m, k)])
    return declared(unused(dag, "winograd_inverse"), (*own, f), body, attrs=_written_out("f"))


def _written_out(*axes: str) -> dict[str, object]:
    return {access.KEPT: True, access.WRITTEN_OUT: list(axes)}
