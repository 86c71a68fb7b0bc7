"""Convolutions with 3 x 3 taps by Winograd's method F(m, 3) (Lavin and Gray 2016): fewer multiplications, but more additions and larger rounding errors.

A tile of m x m outputs needs (m + 2)^2 multiplications for each pair of channels instead of 9 m^2: 2.25 times fewer for m = 2, 4 times for m = 4.

    output tile = A^T [ (G kernel G^T) * (B^T tile B) ] A

    data ─► pad ─► rows = B^T tile ─► data = rows B ─┐
                                                     ├─► product (36 matrix products for m = 4) ─► A^T . ─► . A ─► output, epilogue
    kernel ─► G kernel G^T, ahead of time if constant ┘

In groups, the products are those of each group: a tile has one matrix product for each of its 36 places and each group.

With three spatial dimensions, the last two have tiles. Each slice of the data is transformed once, and the products also sum the slices that a window spans.

The matrices are never multiplied: each row of B^T and A^T is written as the sum it stands for, and the loop that selects the row is unrolled.

The error, against double precision and relative to the largest output, is at most that of the direct sum for m = 2, and 5 to 10 times that for m = 4:
7e-6 with 64 input channels, 1.2e-5 with 256 (direct: 1e-6 and 2e-6). Results have to stay within `tolerance` times the bound of the direct declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.convolution import Convolution, find_convolution
from ansor.algorithms.rewrite import element_of, unused, with_stage
from ansor.codegen.source import Transform
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Expr, const, is_float
from ansor.te.scalar import all as all_of
from ansor.te.scalar import if_then_else
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, declared, placeholder

UNROLLED = "auto_scheduler_simplify_const_tensor_indices"
LEAST_CHANNELS = 16  # with fewer channels, the transforms cost more than the products save
LEAST_IN_GROUPS = 48  # of one of several groups: with 32, half the time with warm caches, but a tenth more with weights that come from memory

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Method:
    """F(m, 3). `b`: B^T, [m + 2, m + 2]; `g`: G, [m + 2, 3]; `a`: A^T, [m, m + 2]."""

    m: int
    b: Matrix
    g: Matrix
    a: Matrix
    tolerance: float

    @property
    def name(self) -> str:
        """Its name in records."""
        return f"winograd_f{self.m}"

    @property
    def alpha(self) -> int:
        """Side of an input tile."""
        return self.m + 2


F2 = Method(
    2,
    b=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1)),
    g=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    a=((1, 1, 1, 0), (0, 1, -1, 1)),
    tolerance=2.0,
)
F4 = Method(
    4,
    b=((4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0), (0, 4, 0, -5, 0, 1)),
    g=((1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6), (1 / 24, -1 / 12, 1 / 6), (0, 0, 1)),
    a=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    tolerance=4.0,
)
METHODS = (F4, F2)


@register_algorithm("winograd")
def winograd(dag: Dag) -> Iterator[Alternative]:
    """F(4, 3) and F(2, 3) if they save multiplications: there are enough channels in each group, and tiles do not lie mostly outside the output."""
    found = find_convolution(dag, dimensions=(2, 3))
    if found is None or found.taps[-2:] != (3, 3) or min(found.channels, found.outputs) < (LEAST_CHANNELS if found.groups == 1 else LEAST_IN_GROUPS):
        return
    for method in METHODS:
        if _products(found, method) * 2 <= _products(found, None) * 1.25:
            yield rewritten(dag, found, method)


def _products(conv: Convolution, method: Method | None) -> int:
    """Multiplications for each pair of channels and each image, or each tap and slice of it."""
    height, width = conv.sizes[-2:]
    if method is None:
        return 9 * height * width
    return method.alpha**2 * -(-height // method.m) * -(-width // method.m)


def rewritten(dag: Dag, conv: Convolution, method: Method) -> Alternative:
    """The workload with its 3 x 3 convolution computed by `method`."""
    (images, _), (n, *_, height, width) = conv.slices, conv.sizes
    tiles_h, tiles_w = -(-height // method.m), -(-width // method.m)
    kernel, inputs, transforms = _kernel(dag, conv, method)
    data = _data(dag, conv, method, tiles_h, tiles_w)
    product = _product(dag, data, kernel, conv, tiles_h * tiles_w)
    outputs = inverse(dag, product, method.a)

    def element(indices: tuple[Expr, ...]) -> Expr:
        i, c, *d, y, x = (indices[k] for k in conv.out_order)
        image = d[0] * n + i if d else i
        tile = tile_index(image, y // method.m, x // method.m, images, tiles_h, tiles_w)
        return outputs[y % method.m * method.m + x % method.m, tile, c]

    return Alternative(method.name, with_stage(dag, conv.stage, element, inputs), transforms, method.tolerance)


def tile_index(i: Expr, row: Expr, column: Expr, n: int, tiles_h: int, tiles_w: int) -> Expr:
    inside = row * tiles_w + column
    return inside if n == 1 else i * (tiles_h * tiles_w) + inside


# data -----------------------------------------------------------------------------------------------------------------------------------------------


def _data(dag: Dag, conv: Convolution, method: Method, tiles_h: int, tiles_w: int) -> Tensor:
    """B^T tile B of every tile: [alpha * alpha, tiles, channels]. The first slices of all images come first."""
    data = padded(dag, conv, tiles_h * method.m + 2, tiles_w * method.m + 2)
    m, count = method.m, conv.slices[1] * tiles_h * tiles_w

    def pixel(p: Expr, row: Expr | int, column: Expr | int, c: Expr) -> Expr:
        image = p // (tiles_h * tiles_w)
        return data[image, p // tiles_w % tiles_h * m + row, p % tiles_w * m + column, c]

    axes = (Axis("p", count), Axis("c", conv.channels * conv.groups))
    return from_both_sides(dag, ("winograd_rows", "winograd_data"), method.b, ("x", "e"), axes, lambda k, column, p, c: pixel(p, k, column, c))


def padded(dag: Dag, conv: Convolution, height: int, width: int) -> Tensor:
    """The data as [slices, height, width, c], padded with zeros. A padding stage that only the convolution reads becomes part of it."""
    data = conv.data
    n, c, *depth, h, w = conv.data_order
    have_h, have_w = data.shape[h], data.shape[w]
    if not depth and (n, h, w, c) == (0, 1, 2, 3) and (have_h, have_w) == (height, width):
        return data
    readers = [stage for stage in dag.stages if data in access.producers(stage)]
    own = data.compute is not None and len(readers) == 1 and data not in dag.outputs
    value = element_of(data) if own else data.__getitem__
    i, y, x, k = Axis("n", conv.slices[1]), Axis("y", height), Axis("x", width), Axis("c", conv.channels * conv.groups)
    places: dict[int, Expr] = {n: i, c: k, h: y, w: x}
    if depth:
        places |= {n: i % conv.sizes[0], depth[0]: i // conv.sizes[0]}
    body = value(tuple(places[d] for d in range(data.ndim)))
    beyond: list[Expr] = [axis < have for axis, have in ((y, have_h), (x, have_w)) if have < axis.extent]
    if beyond:
        body = if_then_else(all_of(*beyond), body, const(0, data.dtype))
    return declared(unused(dag, "winograd_pad"), (i, y, x, k), body)


# weights --------------------------------------------------------------------------------------------------------------------------------------------


def _kernel(dag: Dag, conv: Convolution, method: Method) -> tuple[Tensor, dict[str, Tensor], dict[str, Transform]]:
    """G kernel G^T as [alpha * alpha, (taps in depth,) input channels of a group, output channels].

    It is computed ahead of time for a constant, in stages for anything else.
    """
    kernel, alpha = conv.kernel, method.alpha
    o, i, *depth, h, w = conv.kernel_order
    rest = (*depth, i, o)
    if kernel.constant:
        matrix = tuple(tuple(a * b for a in first for b in second) for first in method.g for second in method.g)
        ready = placeholder((alpha * alpha, *(kernel.shape[k] for k in rest)), "float32", kernel.name, constant=True)
        return ready, {kernel.name: ready}, {kernel.name: Transform(matrix, (h, w), rest)}

    def weight(row: int, column: Axis, *others: Axis) -> Expr:
        places: dict[int, Expr | int] = {h: row, w: column, **dict(zip(rest, others, strict=True))}
        return kernel[tuple(places[d] for d in range(kernel.ndim))]

    axes = (*(Axis("rd", kernel.shape[k]) for k in depth), Axis("ci", conv.channels), Axis("co", kernel.shape[o]))
    return from_both_sides(dag, ("winograd_kernel_rows", "winograd_kernel"), method.g, ("x", "e"), axes, weight), {}, {}


# product and way back -------------------------------------------------------------------------------------------------------------------------------


def _product(dag: Dag, data: Tensor, kernel: Tensor, conv: Convolution, tiles: int) -> Tensor:
    """[alpha * alpha, tiles, output channels], of which each sums the input channels of its group, over all slices of its window. tiles: those of an image."""
    e, p, co = Axis("e", data.shape[0]), Axis("p", conv.slices[0] * tiles), Axis("co", kernel.shape[-1])
    ci = Axis("ci", conv.channels, "reduce")
    channel = ci if conv.groups == 1 else co // conv.outputs * conv.channels + ci
    taps = [Axis("rd", extent, "reduce") for extent in kernel.shape[1:-2] if extent > 1]
    read = data[e, p + taps[0] * (conv.sizes[0] * tiles) if taps else p, channel]
    depth: Sequence[Expr | int] = taps or [0] * (kernel.ndim - 3)
    weight = kernel[(e, *depth, ci, co)]
    return declared(unused(dag, "winograd_product"), (e, p, co), sum_over(read * weight, axis=[*taps, ci]))


def inverse(dag: Dag, product: Tensor, a: Matrix) -> Tensor:
    """A^T . A of every tile: [m * m, tiles, output channels]."""
    axes, alpha = (Axis("p", product.shape[1]), Axis("co", product.shape[2])), len(a[0])
    names = ("winograd_inverse_rows", "winograd_inverse")
    return from_both_sides(dag, names, a, ("y", "f"), axes, lambda k, column, p, co: product[k * alpha + column, p, co])


def from_both_sides(
    dag: Dag, names: tuple[str, str], matrix: Matrix, letters: tuple[str, str], axes: Sequence[Axis], element: Callable[..., Expr],
) -> Tensor:  # fmt: skip
    """M X M^T for every X: [rows of M squared, *axes], in two stages with these names: M X first. element: of X, at a row, a column and the axes.

    letters: names of the axes of rows of M in the first stage, and of their pairs in the second.
    """
    count, own = len(matrix), tuple(Axis(axis.name, axis.extent) for axis in axes)
    row, column = Axis(letters[0], count), Axis("column", len(matrix[0]))
    body = chosen(matrix, row, lambda k: element(k, column, *axes))
    rows = declared(unused(dag, names[0]), (row, column, *axes), body, attrs={UNROLLED: [row.name, column.name]})
    pair = Axis(letters[1], count * count)
    body = chosen(matrix, pair % count, lambda k: rows[(pair // count, k, *own)])
    return declared(unused(dag, names[1]), (pair, *own), body, attrs={UNROLLED: [pair.name]})


# sums with constant coefficients --------------------------------------------------------------------------------------------------------------------


def chosen(matrix: Matrix, row: Expr, element: Callable[[int], Expr]) -> Expr:
    """sum over k of matrix[row, k] * element(k), as a select between written-out sums."""
    value = _row(matrix[-1], element)
    for number in range(len(matrix) - 2, -1, -1):
        value = if_then_else(row == number, _row(matrix[number], element), value)
    return value


def _row(coefficients: Sequence[float], element: Callable[[int], Expr]) -> Expr:
    """Sums terms at even and at odd places separately, each sum with a positive last coefficient: rows that differ only in signs share these sums."""
    parts = [part for parity in (0, 1) if (part := [(k, c) for k, c in enumerate(coefficients) if k % 2 == parity and c])]
    parts.sort(key=lambda part: part[-1][1] < 0)  # a part that is added comes first
    total = _sum(parts[0], element)
    if parts[0][-1][1] < 0:
        total = -total
    for part in parts[1:]:
        total = total + _sum(part, element) if part[-1][1] > 0 else total - _sum(part, element)
    return total


def _sum(terms: Sequence[tuple[int, float]], element: Callable[[int], Expr]) -> Expr:
    """The sum of the terms; all signs are flipped if the last coefficient is negative."""
    (last, scale), *others = reversed(terms)
    total = _times(element(last), abs(scale))
    for k, coefficient in others:
        term = _times(element(k), abs(coefficient))
        total = total + term if (coefficient > 0) == (scale > 0) else total - term
    return total


def _times(value: Expr, factor: float) -> Expr:
    return value if factor == 1 else value * (float(factor) if is_float(value.dtype) else int(factor))
