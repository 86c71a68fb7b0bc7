"""Record files without measuring."""

from __future__ import annotations

import json
from pathlib import Path

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, make_header
from ansor.measure.record_target import record_target
from ansor.tasks.task import SearchTask


def recorded(path: str | Path, *tasks: SearchTask, failures: int = 1) -> str:
    """Two valid trials of each task, a millisecond and two, and failures."""
    with RecordFile(path, make_header(CToolchain(find_compiler()), names={task.workload_key: task.name for task in tasks})) as file:
        for task in tasks:
            for k, space in enumerate([*task.spaces[:2], *task.spaces[:1] * failures]):
                costs, failure = ((1e-3 * (k + 1),), None) if k < len(task.spaces[:2]) else ((), Failure("compile", "no"))
                row = (0,) * len(space.sizes) if failure is None else (*(0,) * (len(space.sizes) - 1), 1)
                sketch = json.loads(space.sketch.name)
                file.append(Record(task.workload_key, record_target(task.target), sketch, row, costs, failure, algorithm=space.algorithm))
    return str(path)
