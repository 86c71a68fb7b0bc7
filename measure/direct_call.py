"""Torch tensors straight into a kernel: a call in a few microseconds where nothing has to be converted, copied or refused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from ansor.codegen.source import ALIGNMENT, Argument
from ansor.measure.result_memory import LEAST_BYTES, ResultMemory

if TYPE_CHECKING:
    import torch


class DirectCall:
    """The argument list of a kernel, with the addresses of bound constants in place.

    `fill` puts a call's tensors in and gives the results, new tensors; or None, when a tensor is not exactly what the kernel takes. Not for several threads at
    once: the list is one.
    """

    def __init__(self, arguments: Sequence[Argument], bound: Mapping[str, int]) -> None:
        import torch

        self.pointers = (ctypes.c_void_p * len(arguments))(*(bound.get(argument.name) for argument in arguments))
        self.address = ctypes.addressof(self.pointers)
        kinds = [(k, argument, getattr(torch, argument.dtype)) for k, argument in enumerate(arguments) if argument.name not in bound]
        self._given = [(k, argument.shape, dtype) for k, argument, dtype in kinds if argument.role != "output"]
        self._made = [(k, _maker(argument, dtype)) for k, argument, dtype in kinds if argument.role == "output"]
        self._plain = all(argument.pack is None for _, argument, _ in kinds)

    def fill(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """New results for these inputs, everything in its place; None when some other way has to be taken."""
        if not self._plain or len(inputs) != len(self._given):
            return None
        try:
            for (k, shape, dtype), value in zip(self._given, inputs):  # noqa: B905  # as many, see above; the keyword costs more than a check below
                if value.dtype is not dtype or value.shape != shape or not value.is_cpu or value.is_neg() or not value.is_contiguous():
                    return None
                address = value.data_ptr()
                if address % ALIGNMENT or not address:
                    return None
                self.pointers[k] = address
        except (AttributeError, RuntimeError):  # no tensor, or one without memory of its own: sparse, or a stand-in of PyTorch's
            return None
        results = []
        for k, made in self._made:
            result = made()
            address = result.data_ptr()
            if address % ALIGNMENT:
                return None
            self.pointers[k] = address
            results.append(result)
        return results


def _maker(argument: Argument, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    """Makes a result without contents."""
    import torch

    if prod(argument.shape) * dtype.itemsize >= LEAST_BYTES:
        return ResultMemory(argument.shape, argument.dtype).tensor
    return partial(torch.empty, argument.shape, dtype=dtype)
