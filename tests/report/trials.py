"""Record files for reports: a few invented trials of a small matrix product."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import ansor
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.measure.failure import Failure
from ansor.measure.record import Record, header_line, make_header, record_line
from ansor.measure.record_target import record_target
from ansor.zoo.operators import matmul

TASK = ansor.SearchTask(matmul, (16, 16, 16), "cpu -threads=1")
NAME = "matmul(16, 16, 16)"
COSTS = (4e-6, None, 2e-6, 3e-6, None, None, 1e-6)
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e\ud800 'quoted' \"twice\" & {{ 7 * 7 }}"


def trial(cost: float | None, kind: str = "compile", text: str = "error: no such thing") -> Record:
    """A trial of the first sketch, failed if it has no cost."""
    space = TASK.spaces[0]
    failure = None if cost is not None else Failure(kind, text)
    row, steps = (0,) * len(space.sizes), json.loads(space.name)
    return Record(TASK.workload_key, record_target(TASK.target), steps, row, () if cost is None else (cost,), failure, elapsed=0.1, timestamp=1.0)


def trials(costs: Sequence[float | None] = COSTS) -> list[Record]:
    """The trials of `COSTS`, with two kinds of failures."""
    kinds = iter(("timeout", "compile", "compile", *["crash"] * len(costs)))
    return [trial(cost) if cost is not None else trial(None, kind := next(kinds), f"{kind}: what the tool said") for cost in costs]


def write(path: Path, records: Sequence[Record], name: str = NAME) -> Path:
    """Write a record file."""
    header = make_header(CToolchain(find_compiler()), names={record.workload: name for record in records})
    path.write_bytes(b"".join([header_line(replace(header, started=1.0)), *map(record_line, records)]))
    return path


def hostile(path: Path) -> Path:
    """Write a file with HTML in every text that a line may hold."""
    page = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    texts = [trial(1e-6), trial(None, text=HOSTILE)]
    others = [one._replace(workload=page, target=f"cpu {page} ({page})", algorithm=page) for one in texts]
    lines = [record_line(one) for one in (*texts, *others, texts[0]._replace(device=f'"{page}', workload=page))]
    names = ((page, page), (TASK.workload_key, page))
    header = replace(make_header(CToolchain(find_compiler())), compiler=page, package=page, machine=((page, page),), names=names)
    path.write_bytes(header_line(header) + b"".join(lines) + b'{"workload":\n')
    return path
