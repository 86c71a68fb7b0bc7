"""Linear algebra on one thread. While a compiler or a measurement occupies a core, BLAS workers that spin make a solve take 750 ms instead of 20."""

from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """Inside this context, NumPy's BLAS uses one thread in this process. Entering it takes microseconds after the first time."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limited


@cache
def _controller() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
