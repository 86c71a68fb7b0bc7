"""The names that `import *` and `dir` give for `tvm.topi` and `tvm.topi.nn`: most operators are created on first access."""

from __future__ import annotations

import sys

from ansor.compat.tvm.topi.operators import OF_TWO, RENAMED
from ansor.te import nn

OURS = [name for name, value in vars(nn).items() if callable(value) and not name.startswith("_")]
IN_TOPI = sorted({"generic", "get_const_int", "get_const_tuple", "identity", "nn", "tag", "transform", "utils", "x86", *RENAMED, *OF_TWO, *OURS})
IN_NN = sorted({"get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d", "utils", "winograd_transform_matrices", *RENAMED, *OURS})


def listed_in_topi() -> list[str]:
    """`dir(tvm.topi)`."""
    return sorted({*vars(sys.modules["ansor.compat.tvm.topi"]), *IN_TOPI})


def listed_in_nn() -> list[str]:
    """`dir(tvm.topi.nn)`."""
    return sorted({*vars(sys.modules["ansor.compat.tvm.topi.nn"]), *IN_NN})
