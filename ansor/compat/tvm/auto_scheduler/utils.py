"""`tvm.auto_scheduler.utils`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansor.compat.auto_scheduler.workload_key import calc_workload_dis_factor as calc_workload_dis_factor
from ansor.compat.auto_scheduler.workload_key import decode_workload_key as decode_workload_key
from ansor.compat.tvm.topi.utils import get_const_int as get_const_int
from ansor.compat.tvm.topi.utils import get_const_tuple as get_const_tuple


def get_func_name(func: Callable[..., object]) -> str:
    """A function's name, or its `func_name` if it has one."""
    return str(getattr(func, "func_name", None) or func.__name__)


def array_mean(arr: Sequence[float]) -> float:
    """The mean of these numbers. Raises ZeroDivisionError if there are none."""
    return sum(map(float, arr)) / len(arr)


def to_str_round(x: object, decimal: int = 6) -> str:
    """A value as text, with floats rounded to that many decimals, including those inside lists and dicts."""
    if isinstance(x, str):
        return x
    if isinstance(x, list | tuple):
        return f"[{', '.join(to_str_round(part, decimal) for part in x)}]"
    if isinstance(x, dict):
        return str({key: to_str_round(value, decimal) for key, value in x.items()})
    return f"{x:.{decimal}f}" if isinstance(x, float) else str(x)
