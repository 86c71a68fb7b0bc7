"""What the measuring process keeps of a reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansor.codegen.source import CSource
from ansor.measure import worker
from ansor.measure.harness import Harness
from ansor.measure.protocol import TaskRequest, call_data
from ansor.measure.worker import Worker

pytestmark = pytest.mark.compiler


@pytest.mark.parametrize(("seconds", "moved"), [(10.0, {"C"}), (0.0, set())])
def test_a_reference_that_runs_once_leaves_no_memory_of_moves(
    seconds: float, moved: set[str], harness: Harness, build: Callable[[CSource], Path], source_of: Callable[..., CSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONG_SECONDS", seconds)
    reference = source_of("for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];", dtype="float64")
    request: TaskRequest = {
        "command": "task", "task": "add", "arguments": [one.to_data() for one in source_of("").arguments],
        "reference": call_data(reference, str(build(reference))), "plain": None,
        "reduction": 1, "rounding": "", "ranges": {}, "files": {}, "seed": 0, "threads": 1, "timeout": 60.0,
    }  # fmt: skip
    process = Worker(harness, None)
    assert process.answer(request)["failure"] is None
    assert set(process._tasks["add"].moves) == moved
