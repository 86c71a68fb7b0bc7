"""The built-in operator that a workload's name in a record file refers to."""

from __future__ import annotations

import re
from functools import cache

from ansor.errors import AnsorError
from ansor.ir.dag import Dag
from ansor.zoo.catalogue import OPERATORS, ZooOperator


def operator_of(name: str, keys: tuple[str, ...]) -> tuple[ZooOperator, tuple[int, ...]] | None:
    """The operator whose workload has one of these keys, and its sizes: those in its name, such as `matmul(16, 16, 16)`, or its default sizes.

    A name is only for display: the key decides.
    """
    for operator, args in _named(name):
        if Dag(operator.function(*args)).key in keys:
            return operator, args
    found = next((_defaults()[key] for key in keys if key in _defaults()), None)
    return None if found is None else (found, found.args)


@cache
def _defaults() -> dict[str, ZooOperator]:
    """The built-in operators by the keys of their default sizes."""
    return {Dag(one.function(*one.args)).key: one for one in OPERATORS.values()}


def _named(name: str) -> list[tuple[ZooOperator, tuple[int, ...]]]:
    match = re.fullmatch(r"(\w+)\((\d{1,9}(?:, \d{1,9})*)\)", name)
    operator = OPERATORS.get(match[1]) if match else None
    if match is None or operator is None:
        return []
    args = tuple(map(int, match[2].split(", ")))
    try:
        operator.function(*args)
    except (AnsorError, TypeError, ZeroDivisionError):  # the name in the file refers to another function
        return []
    return [(operator, args)]
