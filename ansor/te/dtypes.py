"""The dtypes of tensors: their sizes, and the range of those that are integers. uint16, uint32 and uint64 are only used inside kernels."""

from __future__ import annotations

BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1, "uint16": 2,
         "uint32": 4, "uint64": 8}  # fmt: skip
"""Bytes of an element."""

INTEGER_LIMITS = {
    "bool": (0, 1), "int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip
"""Least and greatest value of an element of an integer tensor."""

INTEGERS_UP_TO = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53}
"""Floats hold all integers up to this."""
