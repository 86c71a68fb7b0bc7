"""`tvm.contrib.pickle_memoize`: caches results. Here they last as long as the process; no pickle files are written."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: later calls with equal arguments return the first result. `key` and `save_at_exit` are ignored."""

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        known: dict[bytes, R] = {}

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            asked = pickle.dumps((args, kwargs))
            if asked not in known:
                known[asked] = function(*args, **kwargs)
            return known[asked]

        return call

    return remembering
