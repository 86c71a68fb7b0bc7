"""`tvm.contrib.nvcc`: queries about the GPU. There is none, so all of them return False."""

from __future__ import annotations


def _no(*args: object, **kwargs: object) -> bool:
    """Always False."""
    return False


have_fp16 = have_int8 = have_tensorcore = have_cudagraph = have_bf16 = _no
