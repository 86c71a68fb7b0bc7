"""`tvm.runtime`."""

from ansor.compat.tvm.device import Device as Device
from ansor.compat.tvm.device import cpu as cpu
from ansor.compat.tvm.device import device as device
from ansor.compat.tvm.function import Function
from ansor.compat.tvm.missing import of_runtime as __getattr__  # noqa: F401  # what is not here raises
from ansor.compat.tvm.nd import NDArray as NDArray
from ansor.compat.tvm.nd import array as array

Module = Function


def enabled(target: str) -> bool:
    """Whether programs can be made for a kind of target: for processors they can."""
    return device(target).exist
