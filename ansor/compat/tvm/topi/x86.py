"""`tvm.topi.x86`: operators under TVM's names for processors, and the schedules of `generic`."""

from __future__ import annotations

from collections.abc import Callable

from ansor.compat.tvm.topi import generic
from ansor.compat.tvm.topi.nn import batch_matmul as batch_matmul
from ansor.compat.tvm.topi.nn import conv2d_nchw as conv2d_nchw
from ansor.compat.tvm.topi.nn import conv2d_nhwc as conv2d_nhwc
from ansor.compat.tvm.topi.nn import conv3d_ncdhw as conv3d_ncdhw
from ansor.compat.tvm.topi.nn import conv3d_ndhwc as conv3d_ndhwc
from ansor.compat.tvm.topi.nn import dense as dense_nopack
from ansor.compat.tvm.topi.nn import depthwise_conv2d_nchw as depthwise_conv2d_nchw
from ansor.compat.tvm.topi.transform import concatenate as concatenate
from ansor.manual.schedule import Schedule

dense_pack = dense_dynamic = dense_nopack


def __getattr__(name: str) -> Callable[..., Schedule]:
    """The `schedule_...` functions of `generic`."""
    found: Callable[..., Schedule] = getattr(generic, name)
    return found
