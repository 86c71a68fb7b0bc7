"""`tvm.runtime`."""

from pathlib import Path

from ansor.compat.tvm.device import Device as Device
from ansor.compat.tvm.device import cpu as cpu
from ansor.compat.tvm.device import device as device
from ansor.compat.tvm.function import Function
from ansor.compat.tvm.missing import of_runtime as __getattr__  # noqa: F401  # missing names raise
from ansor.compat.tvm.nd import NDArray as NDArray
from ansor.compat.tvm.nd import array as array
from ansor.measure.kernel_files import load_kernel
from ansor.te.expr import const as const

Module = Function


def load_module(path: str | Path, fmt: str = "") -> Function:
    """Load a function from a file of `func.export_library`, or from a folder of `func.save`. Loading runs its code.

    Raises MeasureError if neither wrote it, or if it is damaged.
    """
    return Function(load_kernel(Path(path)))


def enabled(target: str) -> bool:
    """Whether programs can be built for a kind of target: true for processors."""
    return device(target).exist
