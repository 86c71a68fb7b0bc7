"""`tvm.topi.x86`: operators under TVM's names for processors, and the schedules of `generic`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansor.compat.tvm.topi import generic, nn

OPERATORS = ("batch_matmul", "concatenate", "conv2d_nchw", "conv2d_nhwc", "conv3d_ncdhw", "conv3d_ndhwc", "depthwise_conv2d_nchw")
DENSE = ("dense_nopack", "dense_pack", "dense_dynamic")
__all__ = [*OPERATORS, *DENSE]


def __getattr__(name: str) -> Callable[..., Any]:
    """An operator of `topi.nn`, or a `schedule_...` function of `generic`."""
    found: Callable[..., Any] = getattr(nn, "dense" if name in DENSE else name) if name in (*OPERATORS, *DENSE) else getattr(generic, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
