"""Workload keys: the name and arguments of a registered function, or a declaration's hash and the shapes of its tensors.

    ["matmul", 512, 512, 512]        ["d7b65649a4dd54becea0a52aabbc5af5", 1, 1000, 1, 1000]

Source: TVM 0.9, `auto_scheduler.utils`.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from ansor.errors import RecordError
from ansor.support.json_values import Json, frozen, parse

Decoded: TypeAlias = "tuple[Json, list[Json] | None]"


@dataclass(frozen=True)
class WorkloadKey:
    """The name and arguments of a key, with lists as tuples. A tensor among a function's arguments is `("TENSOR", shape, dtype)`."""

    name: str
    args: tuple[Json, ...] = ()

    @property
    def is_hash(self) -> bool:
        """Whether the name is the MD5 of a declaration. The arguments are then the shapes of its tensors, as lists or flattened."""
        return re.fullmatch("[0-9a-f]{32}", self.name) is not None

    def __str__(self) -> str:
        return json.dumps([self.name, *self.args])


def parse_workload_key(text: str) -> WorkloadKey:
    """Parse a key. A text that is not a JSON list starting with a name is itself the name. Nothing is called or looked up."""
    fields = _listed(text)
    if not fields or not isinstance(fields[0], str):
        return WorkloadKey(text)
    return WorkloadKey(fields[0], tuple(map(frozen, fields[1:])))


def decode_workload_key(workload_key: str) -> Decoded:
    """The name, and the arguments with nested lists flattened; None if the arguments cannot be decoded."""
    fields = _listed(workload_key)
    return (fields[0], _flat(fields[1:])) if fields else (workload_key, None)


def calc_workload_dis_factor(target_workload_pair: Decoded, workload_pair: Decoded) -> float:
    """The factor by which the first workload exceeds the second: the product of the ratios of their numbers.

    Infinite if the names differ, a ratio is not whole, or anything else differs. Takes results of `decode_workload_key`.
    """
    (wanted_name, wanted), (name, given) = target_workload_pair, workload_pair
    wanted, given = wanted or [], given or []
    if wanted_name != name or len(wanted) != len(given):
        return math.inf
    factor = 1
    for one, other in zip(wanted, given, strict=True):
        if type(one) is type(other) and one == other:
            continue
        if not _is_extent(one) or not _is_extent(other) or one % other:
            return math.inf
        factor *= one // other
    return float(factor) if factor < 10**300 else math.inf


def _is_extent(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _listed(text: str) -> list[Json] | None:
    try:
        fields = parse(text)
    except RecordError:
        return None
    return fields if isinstance(fields, list) else None


def _flat(values: list[Json]) -> list[Json]:
    return [item for value in values for item in (_flat(value) if isinstance(value, list) else [value])]
