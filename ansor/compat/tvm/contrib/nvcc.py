"""`tvm.contrib.nvcc`: what scripts ask before they use a GPU. There is none, so every answer is no."""

from __future__ import annotations


def have_fp16(compute_version: object = None) -> bool:
    """No."""
    return False


def have_int8(compute_version: object = None) -> bool:
    """No."""
    return False


def have_tensorcore(compute_version: object = None, target: object = None) -> bool:
    """No."""
    return False


def have_cudagraph() -> bool:
    """No."""
    return False


def have_bf16(compute_version: object = None) -> bool:
    """No."""
    return False
