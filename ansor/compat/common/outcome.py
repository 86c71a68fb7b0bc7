"""The outcome of a measurement, as in TVM's logs."""

import math
from collections.abc import Sequence
from enum import IntEnum
from statistics import fmean


class MeasureErrorNo(IntEnum):
    """The outcome of a measurement."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


ERRORS = {
    "instantiation": MeasureErrorNo.INSTANTIATION_ERROR, "compile": MeasureErrorNo.COMPILE_HOST, "compile_timeout": MeasureErrorNo.BUILD_TIMEOUT,
    "load": MeasureErrorNo.COMPILE_DEVICE, "crash": MeasureErrorNo.RUNTIME_DEVICE, "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "memory": MeasureErrorNo.RUNTIME_DEVICE, "out_of_bounds": MeasureErrorNo.WRONG_ANSWER, "wrong_answer": MeasureErrorNo.WRONG_ANSWER,
    "instruction": MeasureErrorNo.RUNTIME_DEVICE, "trap": MeasureErrorNo.RUNTIME_DEVICE, "does_not_fit": MeasureErrorNo.COMPILE_DEVICE,
    "reset": MeasureErrorNo.RUNTIME_DEVICE, "link_lost": MeasureErrorNo.RUNTIME_DEVICE, "queue": MeasureErrorNo.RUNTIME_DEVICE,
    "exit": MeasureErrorNo.RUNTIME_DEVICE, "reference": MeasureErrorNo.UNKNOWN_ERROR, "machine": MeasureErrorNo.UNKNOWN_ERROR,
}  # fmt: skip
"""Kind of failure -> its number in TVM's logs."""


def mean_cost(costs: Sequence[float], error_no: int) -> float:
    """Mean seconds of one call; infinite if it failed, nothing was measured, or the numbers are too large."""
    if error_no != MeasureErrorNo.NO_ERROR or not costs:
        return math.inf
    try:
        return fmean(costs)
    except OverflowError:
        return math.inf
