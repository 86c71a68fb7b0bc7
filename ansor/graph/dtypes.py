"""The dtypes of a network's arrays. Arrays with a NumPy dtype are in the planned memory; all others are tensors that PyTorch passes from step to step."""

from __future__ import annotations

import numpy as np
import torch

from ansor.graph.ir import Array, Value
from ansor.support import bfloat16

IN_MEMORY = frozenset(
    ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
     "bfloat16"]
)  # fmt: skip
"""Dtypes that NumPy and PyTorch both have, by their common names. NumPy's bfloat16 is that of `ml_dtypes`."""

FLOATS = frozenset(["bfloat16", "float32", "float64"])
"""Float dtypes of kernels; arithmetic on bfloat16 is in float32."""

OF_KERNELS = frozenset(["bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"])
"""Dtypes of the steps that become kernels. Declarations support float16 as well, but float16 networks run in PyTorch."""

INTEGERS = OF_KERNELS - FLOATS - {"bool"}
"""Integer dtypes of kernels."""


def value_of(leaf: torch.Tensor | Array) -> Value:
    """Shape and dtype. For a tensor that is not strided, the layout comes before the dtype: `sparse_coo float32`.

    Nested tensors claim to be strided, but have no shape: all their extents except the first are given as -1.
    """
    dtype = str(leaf.dtype).removeprefix("torch.")
    if isinstance(leaf, torch.Tensor) and leaf.is_nested and leaf.layout is torch.strided:
        return Value((leaf.size(0), *[-1] * (leaf.dim() - 1)), f"nested {dtype}")
    if isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided:
        dtype = f"{str(leaf.layout).removeprefix('torch.').lstrip('_')} {dtype}"
    return Value(tuple(leaf.shape), dtype)


def in_memory(dtype: str) -> bool:
    """True where NumPy can hold values of this dtype."""
    return dtype in IN_MEMORY


def array_of(tensor: torch.Tensor) -> Array:
    """A copy that later changes to the tensor do not affect. Raises TypeError for a dtype that NumPy does not have."""
    return np.array(bfloat16.array_of(tensor.detach().cpu().resolve_conj().resolve_neg()), order="C", copy=True)


def view_of(tensor: torch.Tensor) -> Array:
    """The tensor's own memory, or a copy if the tensor is not contiguous. Raises TypeError for a dtype that NumPy does not have."""
    return np.asarray(bfloat16.array_of(tensor.detach().cpu().resolve_conj().resolve_neg()), order="C")
