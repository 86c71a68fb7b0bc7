"""Finds near misses among records: other workloads whose programs have the same steps, such as the same operator in another shape."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.measure.record import Json, Record
from ansor.tasks.recorded import HasWorkloads, nameless


@dataclass(frozen=True)
class Neighbour:
    """A workload by key and display name, and how many of its trials use sketches that the task also has."""

    workload: str
    name: str
    trials: int


def neighbours_of(task: HasWorkloads, records: Sequence[Record], names: Mapping[str, str]) -> list[Neighbour]:
    """The neighbours, most trials first. The names of tensors and axes and the target of a trial do not matter."""
    own = {(space.algorithm, _form(json.loads(space.name))) for space in task.spaces}
    found = Counter(record.workload for record in records if record.workload not in task.workload_keys and (record.algorithm, _form(record.sketch)) in own)
    return [Neighbour(workload, names.get(workload, workload[:8]), count) for workload, count in found.most_common()]


def _form(sketch: Json) -> str:
    """The steps without names and without the digest of the tables, which depends on the extents."""
    steps: Json = json.loads(json.dumps(sketch))
    return json.dumps(nameless(steps[:-1] if isinstance(steps, list) else steps))
