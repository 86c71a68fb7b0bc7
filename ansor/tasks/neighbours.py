"""Near misses among records: those of another workload whose programs have the same steps, such as the same operator in another shape."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.measure.record import Json, Record
from ansor.tasks.recorded import Searched, nameless


@dataclass(frozen=True)
class Neighbour:
    """A workload, by its key and by what people call it, and how many of its trials are of sketches that the task has, too."""

    workload: str
    name: str
    trials: int


def neighbours_of(task: Searched, records: Sequence[Record], names: Mapping[str, str]) -> list[Neighbour]:
    """Those with the most trials first. Names of tensors and axes do not matter, and which target a trial is of does not, either."""
    own = {(space.algorithm, _form(json.loads(space.name))) for space in task.spaces}
    found = Counter(record.workload for record in records if record.workload not in task.workload_keys and (record.algorithm, _form(record.sketch)) in own)
    return [Neighbour(workload, names.get(workload, workload[:8]), count) for workload, count in found.most_common()]


def _form(sketch: Json) -> str:
    """The steps without names, and without the digest of the tables, which depends on the extents."""
    steps: Json = json.loads(json.dumps(sketch))
    return json.dumps(nameless(steps[:-1] if isinstance(steps, list) else steps))
