"""Calls the cost function of a kind of target, which its author wrote, and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np

from ansor.errors import AnsorError, TargetError
from ansor.ir.columns import MANY_AT_ONCE, Row
from ansor.ir.tape import Column


def checked_cost(kind: str, compute: Callable[[], Row]) -> Row:
    """The cost that a function computes. Raises TargetError if it is not a number, or if the function needs one program at a time."""
    try:
        cost = compute()
    except (TypeError, ValueError) as error:
        if isinstance(error, AnsorError):
            raise
        raise TargetError(f"the cost function of target kind {kind!r} fails: {error}; {MANY_AT_ONCE}") from error
    if not isinstance(cost, Real | np.ndarray | Column):
        raise TargetError(f"the cost function of target kind {kind!r} returns {cost!r:.80}; return the predicted cost of a program, as a number")
    return cost
