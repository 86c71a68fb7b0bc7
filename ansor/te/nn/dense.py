"""Matrix products: dense layers, matmul, batched matmul."""

from __future__ import annotations

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr
from ansor.te.nn.layout import product, product_dtype, summed, tap_axis
from ansor.te.tensor import Tensor, declared


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, name: str = "dense") -> Tensor:
    """data [..., in] times weight [out, in] transposed, plus bias [out]: [..., out]. The bias is a separate stage."""
    if data.ndim < 1 or weight.ndim != 2:
        raise DeclarationError(
            f"asked for {name} of {data.name} with shape {data.shape} and weight {weight.name} with shape {weight.shape}; "
            "data needs at least one dimension, weight two: [out, in]"
        )
    out, inner = weight.shape
    if data.shape[-1] != inner:
        raise DeclarationError(
            f"asked for {name} of {data.name} with extent {data.shape[-1]} in its last dimension and weight {weight.name} with shape {weight.shape}; "
            f"weight is [out, in] and takes {inner} inputs: both have to be equal"
        )
    dtype = product_dtype(name, data, weight, out_dtype)
    rows = tuple(Axis(label, extent) for label, extent in zip(_row_names(data.ndim - 1), data.shape[:-1], strict=True))
    column, k = Axis("j", out), tap_axis("k", inner)
    result = declared(name, (*rows, column), summed(product(data[(*rows, k)], weight[column, k], dtype), [k]))
    return result if bias is None else bias_add(result, bias, axis=-1, name=f"{name}_bias")


def matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """a [n, k] times b [k, m]: [n, m]; transpose_a: a is [k, n]; transpose_b: b is [m, k]."""
    _check_rank(name, a, b, a.ndim == 2 and b.ndim == 2, "two dimensions each")
    return _multiplied(a, b, transpose_a, transpose_b, out_dtype, name)


def batch_matmul(x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None,
                 name: str = "batch_matmul") -> Tensor:
    """x [b, n, k] times y [b, m, k] transposed (y is [b, k, m] with transpose_b=False): [b, n, m].

    There may be several batch dimensions; one of extent 1 is broadcast to match the other operand's.
    """
    _check_rank(name, x, y, x.ndim == y.ndim and x.ndim >= 3, "the same number of dimensions, at least three")
    return _multiplied(x, y, transpose_a, transpose_b, out_dtype, name)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1, name: str = "bias_add") -> Tensor:
    """data plus bias [c], where c is the extent of data's dimension `axis`."""
    which = axis + data.ndim if axis < 0 else axis
    if not 0 <= which < data.ndim or bias.shape != (data.shape[which],):
        raise DeclarationError(
            f"asked to add bias {bias.name} of shape {bias.shape} to {data.name} of shape {data.shape} along dimension {axis}; "
            "the bias has one dimension, of the extent found there"
        )
    axes = tuple(Axis(f"i{k}", extent) for k, extent in enumerate(data.shape))
    return declared(name, axes, data[axes] + bias[axes[which]])


def _multiplied(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, out_dtype: str | None, name: str) -> Tensor:
    rows, inner = a.shape[-1:-3:-1] if transpose_a else a.shape[-2:]
    columns, inner_b = b.shape[-2:] if transpose_b else b.shape[-1:-3:-1]
    if inner != inner_b:
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} and {b.name} with shape {b.shape}, transpose_a={transpose_a}, transpose_b={transpose_b}; "
            f"their inner extents are {inner} and {inner_b} and have to be equal"
        )
    dtype = product_dtype(name, a, b, out_dtype)
    batch = tuple(Axis(label, _joined(name, a, b, d)) for d, label in enumerate(_batch_names(a.ndim - 2)))
    i, j, k = Axis("i", rows), Axis("j", columns), tap_axis("k", inner)
    left = a[_batch_index(a, batch) + ((k, i) if transpose_a else (i, k))]
    right = b[_batch_index(b, batch) + ((j, k) if transpose_b else (k, j))]
    return declared(name, (*batch, i, j), summed(product(left, right, dtype), [k]))


def _joined(name: str, a: Tensor, b: Tensor, dimension: int) -> int:
    x, y = a.shape[dimension], b.shape[dimension]
    if x != y and 1 not in (x, y):
        raise DeclarationError(
            f"asked for {name} of {a.name} with shape {a.shape} and {b.name} with shape {b.shape}; batch dimension {dimension} is {x} and {y}: "
            "they have to be equal, or one of them 1"
        )
    return max(x, y)


def _batch_index(tensor: Tensor, batch: tuple[Axis, ...]) -> tuple[Expr, ...]:
    return tuple(axis if tensor.shape[d] == axis.extent else Const(0, "int32") for d, axis in enumerate(batch))


def _batch_names(count: int) -> tuple[str, ...]:
    return ("b",) if count == 1 else tuple(f"b{d}" for d in range(count))


def _row_names(count: int) -> tuple[str, ...]:
    return ("i",) if count == 1 else tuple(f"i{d}" for d in range(count))


def _check_rank(name: str, a: Tensor, b: Tensor, good: bool, needed: str) -> None:
    if not good:
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} and {b.name} with shape {b.shape}; they need {needed}")
