"""`tvm.topi.nn.winograd_util`: the matrices of Winograd convolution, as tensors."""

from __future__ import annotations

import numpy as np

from ansor.algorithms.winograd import METHODS
from ansor.compat.tvm.missing import of_topi as __getattr__  # noqa: F401  # missing names raise
from ansor.compat.tvm.topi.utils import const_matrix
from ansor.errors import DeclarationError
from ansor.te.tensor import Tensor


def winograd_transform_matrices(tile_size: int, kernel_size: int, out_dtype: str) -> tuple[Tensor, Tensor, Tensor]:
    """A [m + 2, m], B [m + 2, m + 2] and G [m + 2, 3] for tiles of m x m outputs. Raises DeclarationError unless tiles are 2 or 4 and kernels 3."""
    method = next((method for method in METHODS if (method.m, 3) == (tile_size, kernel_size)), None)
    if method is None:
        raise DeclarationError(f"asked for Winograd matrices for tiles of {tile_size} and kernels of {kernel_size}; tiles of 2 and 4 exist, for kernels of 3")
    a, b, g = (np.array(matrix, out_dtype) for matrix in (method.a, method.b, method.g))
    return const_matrix(a.T, "A"), const_matrix(b.T, "B"), const_matrix(g, "G")
