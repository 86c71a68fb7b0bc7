"""What devices that fill and compare arrays themselves, by C of their own, know of dtypes: all but bfloat16."""

from __future__ import annotations

from ansor.ir.dag import Dag
from ansor.support.bfloat16 import BFLOAT16
from ansor.targets.base import Target


def of_bfloat16(target: Target, dag: Dag) -> str:
    """Why they cannot run any program of a computation; '' if nothing in it is bfloat16."""
    found = next((tensor for tensor in dag.stages if tensor.dtype == BFLOAT16), None)
    if found is not None:
        return f"{found.name} is bfloat16, which programs of target cpu have; declare float32"
    return "values are rounded to bfloat16, which programs of target cpu can do; declare float32" if dag.rounding == BFLOAT16 else ""
