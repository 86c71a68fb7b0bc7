"""Failures in the numbers of TVM's logs."""

from ansor.compat.common.outcome import MeasureErrorNo

ERRORS = {
    "instantiation": MeasureErrorNo.INSTANTIATION_ERROR, "compile": MeasureErrorNo.COMPILE_HOST, "compile_timeout": MeasureErrorNo.BUILD_TIMEOUT,
    "load": MeasureErrorNo.COMPILE_DEVICE, "crash": MeasureErrorNo.RUNTIME_DEVICE, "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "memory": MeasureErrorNo.RUNTIME_DEVICE, "out_of_bounds": MeasureErrorNo.WRONG_ANSWER, "wrong_answer": MeasureErrorNo.WRONG_ANSWER,
    "instruction": MeasureErrorNo.RUNTIME_DEVICE, "trap": MeasureErrorNo.RUNTIME_DEVICE, "does_not_fit": MeasureErrorNo.COMPILE_DEVICE,
    "reset": MeasureErrorNo.RUNTIME_DEVICE, "link_lost": MeasureErrorNo.RUNTIME_DEVICE, "queue": MeasureErrorNo.RUNTIME_DEVICE,
    "exit": MeasureErrorNo.RUNTIME_DEVICE, "reference": MeasureErrorNo.UNKNOWN_ERROR, "machine": MeasureErrorNo.UNKNOWN_ERROR,
}  # fmt: skip
"""Kinds of failures in the numbers of TVM's logs."""
