"""`tvm.topi.nn.winograd_util`: the matrices of Winograd convolution, as tensors."""

from __future__ import annotations

from ansor.algorithms.winograd import METHODS, Matrix
from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # missing names raise
from ansor.errors import DeclarationError
from ansor.te.declaration import compute
from ansor.te.expr import Expr, cast, const
from ansor.te.scalar import all as all_of
from ansor.te.scalar import select
from ansor.te.tensor import Tensor


def winograd_transform_matrices(tile_size: int, kernel_size: int, out_dtype: str) -> tuple[Tensor, Tensor, Tensor]:
    """A [m + 2, m], B [m + 2, m + 2] and G [m + 2, 3] for tiles of m x m outputs. Raises DeclarationError unless tiles are 2 or 4 and kernels 3."""
    method = next((method for method in METHODS if (method.m, 3) == (tile_size, kernel_size)), None)
    if method is None:
        raise DeclarationError(f"asked for Winograd matrices for tiles of {tile_size} and kernels of {kernel_size}; give tiles of 2 or 4, and kernels of 3")
    return _tensor(_flipped(method.a), out_dtype, "A"), _tensor(_flipped(method.b), out_dtype, "B"), _tensor(method.g, out_dtype, "G")


def _tensor(matrix: Matrix, dtype: str, name: str) -> Tensor:
    def chosen(i: Expr, j: Expr) -> Expr:
        found: Expr = const(0.0, dtype)
        for a, row in enumerate(matrix):
            for b, value in enumerate(row):
                if value:
                    found = select(all_of(i == a, j == b), const(float(value), dtype), found)
        return cast(dtype, found)  # select on bfloat16 numbers gives a float32

    return compute((len(matrix), len(matrix[0])), chosen, name=name, attrs={"const_matrix": True})


def _flipped(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))
