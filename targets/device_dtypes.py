"""What devices that fill and compare arrays themselves, by C of their own, know of dtypes: all but bfloat16."""

from __future__ import annotations

from ansor.ir.dag import Dag
from ansor.support.bfloat16 import BFLOAT16
from ansor.targets.base import Target


def of_bfloat16(target: Target, dag: Dag) -> str:
    """Why they cannot run any program of a computation; '' if no input or output is bfloat16."""
    found = next((tensor for tensor in (*dag.inputs, *dag.outputs) if tensor.dtype == BFLOAT16), None)
    return "" if found is None else f"{found.name} is bfloat16, which programs of target cpu have; declare float32"
