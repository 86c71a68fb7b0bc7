"""`tvm.contrib.pickle_memoize`: results that are computed once. Here they last as long as the process: no file of pickles is written."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: calls with equal arguments give the result of the first. `key` and `save_at_exit` have no meaning."""

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
