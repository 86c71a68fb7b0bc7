"""Files of arguments: the bytes that a candidate gets, and what stays of a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.codegen.source import Argument, Pack, Transform
from ansor.measure.device import Job, Observation
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.measure.trial.prepared import Prepared
from ansor.measure.trial.proof import Arrays, HostProof
from ansor.measure.trial.runs import TASKS_KEPT, TrialRuns
from ansor.targets.unit import SECONDS
from tests.measure.trial.test_runs import Here
from tests.trial_programs import built, kernel

PLAIN = Argument("a", (4, 6), "float32", "input")
PACKED = Argument("w", (4, 6), "float32", "constant", Pack((3, 4, 2), ((0, 1, 0), (2, 0, 1))))
MATRIX = ((1.0, 0.5, 0.0, 0.0), (0.0, 1.0, 0.25, 2.0), (3.0, 0.0, 0.0, 1.0))
CHANGED = Argument("w", (4, 6), "float32", "constant", Pack((6, 3), ((0, 1), (1, 0))), Transform(MATRIX, (0,), (1,)))
OUT = Argument("y", (4, 6), "float32", "output")


@pytest.mark.parametrize("argument", [replace(PLAIN, name="w"), PACKED, CHANGED], ids=["plain", "packed", "changed"])
def test_the_bytes_are_those_of_the_buffer(argument: Argument, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs: Arrays = {"a": rng.random((4, 6), np.float32), "w": rng.random((4, 6), np.float32)}
    prepared = Prepared(tmp_path)
    prepared.keep("task", inputs, b"outputs")
    found = prepared.sources("task", (OUT, argument))
    assert set(found) == {"w"} and (tmp_path / "task").read_bytes() == b"outputs"
    content = Path(found["w"].path).read_bytes()
    assert content[len(content) - found["w"].size :] == argument.physical(inputs["w"]).tobytes()
    prepared.forget("task")
    assert {one.name for one in tmp_path.iterdir()} <= {"task", "argument-1"}


@pytest.mark.compiler
def test_programs_get_their_inputs_from_files(tmp_path: Path) -> None:
    """A candidate with packed weights, whose outputs are those of a reference of this machine; the files of old tasks go."""
    arguments = (PLAIN, replace(PLAIN, name="w", role="constant"), OUT)
    body = "TYPE *a = args[0], *w = args[1], *y = args[2]; for (int i = 0; i < 24; ++i) y[i] = a[i] * w[AT];"
    reference = kernel(body.replace("TYPE", "double").replace("AT", "i"), [replace(one, dtype="float64") for one in arguments])
    right = kernel(body.replace("TYPE", "float").replace("AT", "i % 6 / 2 * 8 + i / 6 * 2 + i % 2"), (PLAIN, PACKED, OUT))
    wrong = kernel(body.replace("TYPE", "float").replace("AT", "i"), (PLAIN, PACKED, OUT))
    runs = TrialRuns(Here(tmp_path), SECONDS, here=HostProof(), prepared=Prepared(tmp_path))
    for seed in range(TASKS_KEPT + 2):
        task = MeasureTask("product", reference, seed=seed)
        for source, fits in ((right, True), (wrong, False)) if seed == 0 else ((right, True),):
            candidate, plain = Artifact(source, built(source), "kernel", PROGRAM), Artifact(reference, tmp_path, "kernel", PROGRAM)
            found = runs.run(Job(task, candidate, plain, TimingOptions(min_repeat_ms=0.01)))
            assert isinstance(found, Observation) and found.check.endswith("on this machine") if fits else "elements wrong" in str(found), found
    kept = [one.name for one in tmp_path.iterdir() if one.name.startswith("reference-")]
    assert len(kept) == 3 * TASKS_KEPT  # outputs, and two inputs
