"""`tvm.runtime`."""

from pathlib import Path

from ansor.compat.tvm.device import Device as Device
from ansor.compat.tvm.device import cpu as cpu
from ansor.compat.tvm.device import device as device
from ansor.compat.tvm.function import Function
from ansor.compat.tvm.missing import of_runtime as __getattr__  # noqa: F401  # what is not here raises
from ansor.compat.tvm.nd import NDArray as NDArray
from ansor.compat.tvm.nd import array as array
from ansor.measure.kernel_files import load_kernel
from ansor.te.expr import const as const

Module = Function


def load_module(path: str | Path, fmt: str = "") -> Function:
    """A function that `func.export_library` wrote, or `func.save` with a name without ending. It is code, and is run.

    Raises MeasureError for what neither wrote, and for what is damaged.
    """
    return Function(load_kernel(Path(path)))


def enabled(target: str) -> bool:
    """Whether programs can be made for a kind of target: for processors they can."""
    return device(target).exist
