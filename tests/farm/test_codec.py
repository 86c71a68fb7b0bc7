"""Jobs and outcomes as JSON: what is written is read, and what is not so written is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ansor import te
from ansor.codegen.artifact import Artifact
from ansor.codegen.source import Argument, CSource, Pack, Transform
from ansor.errors import DeviceError
from ansor.farm.codec import digest_of, digests_of, outcome_data, outcome_of, pack_job, unpack_job
from ansor.ir.dag import Dag
from ansor.measure.device import Job, Observation
from ansor.measure.failure import KINDS, Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.reference import measure_task
from ansor.measure.timing import Stopping, TimingOptions
from ansor.targets.base import parse_target
from ansor.targets.unit import INSTRUCTIONS, SECONDS, cycles, ticks

ARGUMENTS = (
    Argument("A", (4, 100), "float32", "input"),
    Argument("B", (100, 16), "int8", "constant", Pack((7, 4, 16), ((0, 1, 0), (16, 0, 1)), (0, -1))),
    Argument("W", (3, 3, 2), "float32", "constant", None, Transform(((1.0,) * 9,) * 4, (0, 1), (2,))),
    Argument("C", (4, 16), "bool", "output"),
)


def job(folder: Path) -> Job:
    """One with everything in it."""
    program, reference, values = folder / "program", folder / "reference", folder / "values.npy"
    for path in (program, reference, values):
        path.write_bytes(path.name.encode())
    source = CSource("void f() { /* ä \\ \" */ }", "f", ARGUMENTS, 4096, 2, 1.5)
    task = MeasureTask("key", source, 27, (("A", -1.0, 2.5),), 7, 2, (("A", str(values)),), "float16")
    timing = TimingOptions(number=2, repeat=5, stopping=Stopping(2.0, 1.5, 4), flush_bytes=1 << 20)
    return Job(task, Artifact(source, program, "f", "program", "abc"), Artifact(source, reference, "g"), timing, 1e-300)


def test_a_job_comes_back_as_it_was(tmp_path: Path) -> None:
    given = job(tmp_path)
    packed = pack_job(given)
    assert set(packed.files) == set(digests_of(packed.text)) == {digest_of(name.encode()) for name in ("program", "reference", "values.npy")}
    assert unpack_job(packed.text, packed.files.__getitem__) == given


def test_tasks_of_declarations_come_back(tmp_path: Path) -> None:
    a, k = te.placeholder((8, 8), name="A"), te.reduce_axis((0, 8), name="k")
    task = measure_task(Dag([a, te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="S")]), parse_target("cpu"))
    assert task.reference is not None
    (tmp_path / "built").write_bytes(b"built")
    given = Job(task, Artifact(task.reference, tmp_path / "built", "reference"))
    packed = pack_job(given)
    assert unpack_job(packed.text, packed.files.__getitem__) == given


@pytest.mark.parametrize("outcome", [
    *(Failure(kind, "why\n\x00 ä") for kind in KINDS),
    *(Observation((1.0, 2e-9), unit, True, "how", {"bytes_sent": 3.0}) for unit in (SECONDS, INSTRUCTIONS, cycles("model"), ticks(32768.0))),
])  # fmt: skip
def test_outcomes_come_back(outcome: Observation | Failure) -> None:
    assert outcome_of(json.loads(json.dumps(outcome_data(outcome)))) == outcome


def test_what_is_damaged_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Any field left out, or replaced by something else; never another error."""
    text, draw = pack_job(job(tmp_path)).text, random.Random(0)
    files = pack_job(job(tmp_path)).files
    for _ in range(300):
        data = json.loads(text)
        place = data
        while isinstance(place, dict) and place:
            name = draw.choice(sorted(place))
            if not isinstance(place[name], dict) or draw.random() < 0.4:
                place[name] = draw.choice([None, 7, "x", [], [1, 2], {}, True, -1e400])
                break
            place = place[name]
        try:
            unpack_job(json.dumps(data), files.__getitem__)
        except DeviceError as error:
            assert "use the same version" in str(error)


GOOD = outcome_data(Observation((1.0, 2.0), SECONDS, counters={"bytes_sent": 3.0}))


@pytest.mark.parametrize("wrong", [
    None, 7, "x", [], {}, {"failure": ["no such kind", "x"]}, {"failure": 7}, {"failure": ["link_lost"]}, GOOD | {"unit": "yards"}, GOOD | {"unit": 7},
    *(GOOD | {"costs": costs} for costs in ([], None, 7, "12", {"a": 1}, ["1"], [True], [None], [[1.0]], [1.0, -1.0], [0.0])),
    *(GOOD | {"costs": [cost]} for cost in (float("nan"), 1e400, 10**400)),
    *(GOOD | {"counters": counters} for counters in (None, [1], {"a": "1"}, {"a": float("nan")})),
    *({name: value for name, value in GOOD.items() if name != left_out} for left_out in GOOD),
])  # fmt: skip
def test_outcomes_that_are_none_are_refused_with_a_sentence(wrong: object) -> None:
    assert isinstance(outcome_of(GOOD), Observation)
    with pytest.raises(DeviceError, match=r"received an answer that cannot be read \(.*\); use the same version"):
        outcome_of(wrong)
