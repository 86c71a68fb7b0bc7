"""The dtypes of devices that fill and compare arrays by their own C code: all but bfloat16."""

from __future__ import annotations

from ansor.ir.dag import Dag
from ansor.support.bfloat16 import BFLOAT16
from ansor.targets.base import Target


def of_bfloat16(target: Target, dag: Dag) -> str:
    """Why such devices cannot run any program of a computation; '' if nothing in it is bfloat16."""
    found = next((tensor for tensor in dag.stages if tensor.dtype == BFLOAT16), None)
    if found is not None:
        return f"{found.name} is bfloat16, which only programs for target cpu support; declare float32"
    return "values are rounded to bfloat16, which only programs for target cpu support; declare float32" if dag.rounding == BFLOAT16 else ""
