"""Workers that answer something else than ours do: each answer is one sentence, and honest devices go on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.farm import session, status
from ansor.farm.address import read_place
from ansor.farm.status import farm_status
from ansor.measure.device import Observation
from ansor.measure.device_kinds import open_devices
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster
from tests.pretended_device import job

TARGET = parse_target("cpu -threads=1")
STATION = "import ansor.farm.station as s; "
ABOUT = "s._mine().about()"
FIELDS = {"model": "pretended machine", "processor": "", "unit": "instructions", "form": "library", "measured_by": "x", "judged": {}, "canary": 0.0, "shift": 0}
MEASURED = f"{ABOUT} | {FIELDS}"


LYING = """
import json
from pathlib import Path
import ansor.farm.station as s

def lying(name, honest):
    def answer(*given):
        lies = json.loads(Path({path!r}).read_text())
        return eval(lies[name], {{"s": s}}) if name in lies else honest(*given)
    return answer

for name in ("describe", "run_job", "status"):
    setattr(s, name, lying(name, getattr(s, name)))
"""
"""Makes functions of `station` give what a file says, whatever they are called with."""


@pytest.fixture(scope="module")
def lies(cluster: Cluster) -> Path:
    """The file with answers by function. It rules two workers: one has the key `liar` for itself, the other shares the key `both` with an honest one."""
    path = cluster.folder / "lies.json"
    path.write_text("{}")
    for key in ("liar", "both"):
        cluster.worker(key, f"pretended:{key},{cluster.folder},1", pretends=LYING.format(path=str(path)))
    cluster.pretended("both", "honest", 20)
    return path


@pytest.fixture(autouse=True)
def nothing_stays(cluster: Cluster, lies: Path) -> Iterator[None]:
    """Workers that a test starts end with it, and so do its lies."""
    started = len(cluster.processes)
    yield
    cluster.end(started)
    lies.write_text("{}")


def lie(lies: Path, function: str, answer: str) -> None:
    """From now on that function of `station` gives this."""
    lies.write_text(json.dumps({function: answer}))


def measured(cluster: Cluster, key: str, folder: Path, said: list[str]) -> object:
    """What the first device of the key says of a job."""
    devices = open_devices([f"farm://{cluster.url}?key={key}"], TARGET, said.append)
    try:
        return devices[0].run(job(folder, "1"))
    finally:
        for one in devices:
            one.close()


@pytest.mark.parametrize(("answer", "told"), [
    ("7", r"\(7\)"), ("[1]", r"\(\[1\]\)"), ("1 / 0", "ZeroDivisionError"),
    ("s.versions()", "without its device and process and identity and model and processor and unit and form"),
    (f"{ABOUT} | {{'model': [1], 'processor': '', 'unit': 's', 'form': 'f'}}", "without its model\\)"),
])  # fmt: skip
def test_a_worker_that_describes_something_else_is_skipped(cluster: Cluster, lies: Path, tmp_path: Path, answer: str, told: str) -> None:
    lie(lies, "describe", answer)
    sentence = f"the worker at tcp://[^ ]* of farm://[^ ]* cannot be used: it does not answer as version [^ ]* of ansor does .*{told}"
    with pytest.raises(DeviceError, match=f"^{sentence}"):
        measured(cluster, "liar", tmp_path, [])
    said: list[str] = []
    assert isinstance(measured(cluster, "both", tmp_path, said), Observation) and re.match(sentence, said[0]) and len(said) == 1


@pytest.mark.parametrize(("answer", "told"), [
    ("s.threading.Lock().release()", "a worker of farm://.* raised RuntimeError: release unlocked lock"),
    ("1 / 0", "a worker of farm://.* raised ZeroDivisionError: division by zero"),
    ("'x'", "answered 'x'; install the same version"), ("None", "answered None; install the same version"),
    ("{'missing': 7}", "answered .*'missing': 7.*; install the same version"), ("{}", "has ansor of an unknown version"),
    (ABOUT, "answered without its model and .* and shift; install the same version"),
    (f"{ABOUT} | {{'refused': 'x'}}", "without its judged;"),
    (f"{MEASURED} | {{'model': 'another'}}", "whose model is pretended machine, instructions; a device of model another, instructions joined"),
    (f"{MEASURED} | {{'shift': True}}", "without its shift;"),
    (f"{MEASURED} | {{'judged': {{'a': True, 1: True}}}}", "without its judged;"),
    (MEASURED, "received an answer that cannot be read"),
    (f"{MEASURED} | {{'outcome': {{'costs': [-1.0]}}}}", "pretended:liar,.*the costs .*-1.0"),
])  # fmt: skip
def test_an_answer_that_is_none_is_a_sentence(cluster: Cluster, lies: Path, tmp_path: Path, answer: str, told: str) -> None:
    lie(lies, "run_job", answer)
    with pytest.raises(DeviceError, match=told):
        measured(cluster, "liar", tmp_path, [])


def test_workers_that_do_not_say_what_they_are_are_not_waited_for(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "DESCRIBE_SECONDS", 1.0)
    for _ in range(2):
        cluster.worker("slow", f"pretended:slow,{cluster.folder},1", pretends=f"{STATION}s.describe = lambda *_: __import__('time').sleep(1e6)")
    with pytest.raises(DeviceError, match="cannot be used: it did not describe itself within 1 s: it runs a long job, or hangs"):
        measured(cluster, "slow", tmp_path, [])


BAD_ANSWERS = [
    ("'version': '0.0.7'", "has ansor 0.0.7; here is ansor "), ("'error': 'no space left'", "farm://[^ ]*: no space left"),
    ("'model': 'another'", "a device of model another, instructions joined"), ("'shift': None", "answered without its shift"),
]


@pytest.mark.parametrize(("fields", "told"), BAD_ANSWERS)
def test_a_worker_that_cannot_be_used_gets_no_more_jobs_and_the_run_goes_on(cluster: Cluster, lies: Path, tmp_path: Path, fields: str, told: str) -> None:
    lie(lies, "run_job", f"{MEASURED} | {{{fields}, 'worker': __import__('distributed').get_worker().address}}")
    said: list[str] = []
    devices = open_devices([f"farm://{cluster.url}?key=both"], TARGET, said.append)
    try:
        with ThreadPoolExecutor(len(devices)) as pool:
            found = list(pool.map(lambda one: one[1].run(job(tmp_path, str(one[0] + 1))), enumerate(5 * list(devices))))
    finally:
        devices[0].close()
    assert [one.costs[0] for one in found if isinstance(one, Observation)] == [float(number + 1) for number in range(5 * len(devices))]
    assert len(said) == 1 and re.match(f"the worker at tcp://[^ ]* gets no more jobs of this run: .*{told}", said[0]), said


@pytest.mark.parametrize(("answer", "told"), [
    ("7", "does not answer as a worker of ansor does: 7"), ("{}", "has ansor of an unknown version"),
    (ABOUT, "does not answer as a worker of ansor does: {"), ("1 / 0", "does not answer as a worker of ansor does: division by zero"),
])  # fmt: skip
def test_the_status_of_a_liar_is_told_beside_that_of_others(cluster: Cluster, lies: Path, answer: str, told: str) -> None:
    lie(lies, "status", answer)
    found = farm_status(read_place(cluster.url)).devices
    assert [one.device for one in found if one.key == "liar"] == ["?"] and told in next(one for one in found if one.key == "liar").done.last_failure
    assert sorted(one.device.partition(",")[0] for one in found if one.key == "both") == ["?", "pretended:honest"]


def test_the_status_of_a_worker_that_never_answers_is_not_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "STATUS_SECONDS", 1.0)
    silent = f"{STATION}\nimport asyncio\nasync def silent(): await asyncio.sleep(1e6)\ns.status = silent"
    cluster.worker("s-silent", f"pretended:silent,{cluster.folder},1", pretends=silent)
    found = {one.key: one.done.last_failure for one in farm_status(read_place(cluster.url)).devices}
    assert found["s-silent"] == "it does not answer: nothing within 1 s"
