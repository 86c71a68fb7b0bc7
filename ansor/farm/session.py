"""A client's side of a farm: jobs go to stations as Dask tasks, and their outcomes come back. Several threads may use it at a time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from ansor import __version__
from ansor.errors import DeviceError
from ansor.farm import station
from ansor.farm.address import FarmText, no_answer, security
from ansor.farm.codec import Packed, outcome_of, pack_job
from ansor.farm.health import stands_out
from ansor.farm.scheduler import DASHBOARD, MOST_DEATHS, configure
from ansor.farm.shifts import Shifts
from ansor.farm.versions import difference, scheduler_difference
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.turns import Say
from ansor.support.notices import log
from ansor.support.text import clip, counted

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 15.0
DESCRIBE_SECONDS = 300.0  # a device may build something first
LOOK_SECONDS = 2.0
CANARY_SECONDS = 60.0  # at the start of a run; a device may run a job first
SHIFT_SECONDS = 60.0  # that a result waits for the canary that comes after it
ALONE_SECONDS = 60.0
"""How long a job waits for a device of its key to come back when there is none."""

MOST_LINES = 16  # of devices, for people

MOST_ASKED = 32  # devices at a time
MOST_TURNS = 12  # of one job: files that have to come along, devices that were suspended in the meantime


_NAMED: Mapping[str, type[object]] = {"device": str, "process": int, "identity": str}
_DESCRIBED: Mapping[str, type[object]] = {**_NAMED, "model": str, "processor": str, "unit": str, "form": str}
_JUDGED: Mapping[str, type[object]] = {**_NAMED, "judged": dict}
_WATCHED: Mapping[str, type[object]] = {**_JUDGED, "canary": float}
_MEASURED: Mapping[str, type[object]] = {**_DESCRIBED, **_WATCHED, "measured_by": str, "shift": int}
"""What answers of workers must have."""


@dataclass(frozen=True, slots=True)
class Model:
    """What devices of a key are: costs of one key are of one kind. processor: of machines that are devices themselves; else ''."""

    model: str
    unit: str
    form: str
    processor: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.model, self.processor, self.unit)))


class Session:
    """A connection to a scheduler, for the devices of one key and programs of one target. Raises DeviceError when there is no scheduler, or no device."""

    def __init__(self, farm: FarmText, target: str, say: Say) -> None:
        self.farm, self._target, self._say = farm, target, say
        self._closing = threading.Event()
        self._client = connect(farm)
        self.canary: Packed | None = None
        self._canaries: dict[str, float] = {}
        self._told: set[str] = set()
        self._shifts, self._done = Shifts(), Counter[str]()
        self._lock = threading.Lock()
        try:
            self._check_scheduler()
            self.dashboard = dashboard_of(self._client)
            self.workers = self._workers()
            if not self.workers:
                raise DeviceError(f"asked to measure on {farm.text}: no device with that key is available; {_keys_text(self._client)}")
            self.about = self._described()
        except BaseException:
            self.close()
            raise

    def watch(self, canary: Packed) -> None:
        """From now on devices run this canary. It runs on all of them, so that one that is slow from its start is found before it has a job."""
        self.canary = canary
        workers = self._workers()
        with ThreadPoolExecutor(MOST_ASKED) as asking:
            said = list(zip(workers, asking.map(self._judged, workers), strict=True))
        for _, one in said:
            if one is not None and "refused" in one:
                self._tell_refused(one)
        found = [(worker, one) for worker, one in said if one is not None and "canary" in one and "refused" not in one]
        self._canaries |= {one["identity"]: float(one["canary"]) for _, one in found}
        if len(found) == 1:
            others = "is the only device of" if len(workers) == 1 else "is the only device that ran the canary of"
            log.info("%s %s %s: whether it has been slow from its start cannot be told", found[0][1]["device"], others, self.farm.text)
        with ThreadPoolExecutor(MOST_ASKED) as asking:
            list(asking.map(partial(self._refuses, seconds=CANARY_SECONDS), *zip(*found, strict=True)) if found else ())

    def run(self, job: Job) -> Observation | Failure:
        """What became of a job. Raises DeviceError when no device is left, or the farm is gone."""
        with self._shifts.job():
            return self._run(job)

    def _run(self, job: Job) -> Observation | Failure:
        packed = pack_job(job)
        canary: dict[str, Any] = {} if self.canary is None else {"text": self.canary.text, "every": self.farm.canary}
        files = dict(packed.files) | (dict(self.canary.files) if self.canary is not None else {})
        artifact = json.loads(packed.text)["artifact"]["file"]
        sent, worker = {artifact: files[artifact].read_bytes()}, ""
        said: dict[str, Any] = {}
        for _ in range(MOST_TURNS):
            if self._closing.is_set():
                return Failure("queue", "the run was stopped before a device answered")
            answer = self._asked(packed.text, sent, canary, worker)
            if isinstance(answer, Failure):
                return answer
            said, worker = answer
            if "missing" in said:
                sent = {digest: files[digest].read_bytes() for digest in {*said["missing"], artifact} if digest in files}
                continue
            _check(said, self.farm.text)
            self._shifts.hear(said["identity"], said["judged"])
            outcome = self._outcome(said)
            if outcome is not None and not self._refuses(worker, said) and self._counts(worker, said, outcome):
                with self._lock:
                    self._done[_name(said)] += 1
                return outcome
            worker = ""
        why = clip(str(said.get("refused", "the canary after it did not run, or was not as usual")), 300)
        return Failure("queue", f"{MOST_TURNS} devices of {self.farm.text} gave no result that counts, the last one because: {why}")

    def _refuses(self, worker: str, said: Mapping[str, Any], seconds: float = station.PATIENCE_SECONDS) -> bool:
        """Whether a device that is slower than the others of its key is suspended for it; it may have been so from its start."""
        usual, device = float(said["canary"]), said["identity"]
        if self.canary is None or not usual > 0:
            return False
        with self._lock:
            self._canaries[device] = usual
            others = tuple(cost for other, cost in self._canaries.items() if other != device)
        if not stands_out(usual, others):
            return False
        again = self._judged(worker, median(others), seconds)
        if again is None:
            self._forget(device)
            return True
        if "refused" in again:
            self._tell_refused(again)
            return True
        with self._lock:
            self._canaries[device] = float(again["canary"])
        return False

    def _counts(self, worker: str, said: Mapping[str, Any], outcome: Observation | Failure) -> bool:
        """Whether a result counts: the canary of its device was as usual afterwards. Waits until it has run; where nothing else makes it run, asks for it."""
        if self.canary is None or (isinstance(outcome, Failure) and outcome.kind != "timeout"):
            return True
        device, shift = said["identity"], said["shift"]
        good = self._shifts.wait(device, shift, SHIFT_SECONDS)
        if good is not None or self._closing.is_set():
            return bool(good)
        with self._shifts.asking(device):
            again = self._judged(worker, seconds=station.PATIENCE_SECONDS)
        if again is None:
            self._forget(device)
        return self._shifts.known(device, shift) is True

    def _judged(self, worker: str, others: float = 0.0, seconds: float = CANARY_SECONDS) -> dict[str, Any] | None:
        """What `Station.judge` says; None where the worker is gone, or does not answer within that time. It comes before jobs that wait."""
        assert self.canary is not None
        files = {digest: path.read_bytes() for digest, path in self.canary.files.items()}
        try:
            future = self._client.submit(
                station.judge, self._target, self.canary.text, files, others, key=f"ansor-canary-{uuid.uuid4().hex}", resources={self.farm.key: 1}, pure=False,
                workers=[worker], priority=1,
            )  # fmt: skip
            try:
                said = self._told_by(worker, future, seconds)
            finally:
                with suppress(Exception):
                    future.release()
        except Exception:
            return None  # what is wrong with it, its next job tells
        if not isinstance(said, dict) or _lacking(said, _JUDGED if "refused" in said else _WATCHED):
            return None
        self._shifts.hear(said["identity"], said["judged"])
        return said

    def lines(self) -> Sequence[str]:
        """What the devices did for this run, one line for each, the jobs that are on their way, and where Dask shows more."""
        with self._lock:
            done, on_their_way = sorted(self._done.items()), self._shifts.on_their_way
        devices = [f"{name}: {counted(jobs, 'job')} done" for name, jobs in done[:MOST_LINES]]
        more = [f"and {counted(len(done) - MOST_LINES, 'device')} more"] if len(done) > MOST_LINES else []
        return [*devices, *more, f"{counted(on_their_way, 'job')} on the way", *([f"dashboard: {self.dashboard}"] if self.dashboard else [])]

    def close(self) -> None:
        """Let whoever waits stop doing so, and disconnect."""
        self._closing.set()
        self._shifts.close()
        with suppress(Exception):
            self._client.close(timeout=5)

    def _check_scheduler(self) -> None:
        wrong = scheduler_difference(self._client.sync(self._client.scheduler.versions))
        if wrong:
            raise DeviceError(f"asked to measure on {self.farm.text}, whose scheduler has {wrong}")

    def _asked(self, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any], worker: str) -> tuple[dict[str, Any], str] | Failure:
        """A station's answer, and which worker that was: of `worker`, if it is still there."""
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        future = self._client.submit(
            station.run_job, self._target, text, files, canary, key=f"ansor-job-{uuid.uuid4().hex}", resources={self.farm.key: 1}, pure=False, **where
        )  # fmt: skip
        try:
            return self._waited(future)
        finally:
            with suppress(Exception):
                future.release()

    def _waited(self, future: Future) -> tuple[dict[str, Any], str] | Failure:
        from distributed import CancelledError, KilledWorker

        alone: float | None = None
        ended = _end_of(future)
        while not ended.wait(LOOK_SECONDS):
            if self._closing.is_set():
                return Failure("queue", "the run was stopped before a device answered")
            alone = self._alone(alone)
        try:
            answer = self._client.sync(_answer_of, future)
        except KilledWorker:
            return Failure("link_lost", f"{MOST_DEATHS + 1} workers died running it: it crashes them, or they all lost their network connection")
        except Exception as error:
            if self._closing.is_set():
                return Failure("queue", "the run was stopped before a device answered")
            if not isinstance(error, CancelledError | OSError | RuntimeError) or future.status == "error":  # raised by the worker
                raise DeviceError(f"a worker of {self.farm.text} raised {type(error).__name__}: {clip(str(error), 300)}; see what it prints") from error
            return Failure("link_lost", f"the scheduler of {self.farm.text} is gone ({type(error).__name__})")
        return _read(answer)

    def _alone(self, since: float | None) -> float | None:
        """Since when no device of the key is there. Raises DeviceError after some time."""
        if self._workers():
            return None
        since = time.monotonic() if since is None else since
        if time.monotonic() - since > ALONE_SECONDS:
            raise DeviceError(f"no device of {self.farm.text} has been available for {ALONE_SECONDS:.0f} s; {_keys_text(self._client)}")
        return since

    def _outcome(self, said: Mapping[str, Any]) -> Observation | Failure | None:
        """What became of a job, with the device that measured it; None where that is suspended.

        Raises DeviceError for an answer of another kind of device, or one that cannot be read.
        """
        if "refused" in said:
            self._tell_refused(said)
            return None
        model = _model(said)
        if model != self.about:
            raise DeviceError(f"asked to measure on {self.farm.text}, of {self.about}; a device of {model} joined: give it another key")
        try:
            outcome = outcome_of(said.get("outcome"))
        except DeviceError as error:
            raise DeviceError(f"asked to measure on {self.farm.text}: {_name(said)}: {error}") from error
        return replace(outcome, measured_by=said["measured_by"]) if isinstance(outcome, Observation) else outcome

    def _forget(self, device: str) -> None:
        """Compare others no longer with a device that is suspended, or gone."""
        with self._lock:
            self._canaries.pop(device, None)

    def _tell_refused(self, said: Mapping[str, Any]) -> None:
        self._forget(said["identity"])
        self._tell(f"{said['device']} of {self.farm.text} is suspended: {said['refused']}")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say(text)

    def _workers(self) -> list[str]:
        """Addresses of those that have the key."""
        return [address for address, one in _workers(self._client).items() if self.farm.key in one["resources"]]

    def _described(self) -> Model:
        """What the devices are. Raises DeviceError where they differ, or speak of other versions."""
        asked = [self._client.submit(station.describe, self._target, workers=[one], pure=False, key=f"ansor-about-{uuid.uuid4().hex}") for one in self.workers]
        found: dict[Model, str] = {}
        unusable: list[str] = []
        for worker, future in zip(self.workers, asked, strict=True):
            said = self._about(worker, future)
            if said is None:
                continue
            if "error" in said:
                unusable.append(f"{said['device']} of {self.farm.text} cannot be used: {clip(str(said['error']), 1000)}")
                continue
            self._done[_name(said)] = 0
            found.setdefault(_model(said), said["device"])
        if len(found) > 1:
            devices = " and ".join(f"{device} ({model})" for model, device in found.items())
            raise DeviceError(f"asked to measure on {self.farm.text}, where devices differ: {devices}; their costs do not compare: use different keys")
        if unusable and not found:
            raise DeviceError(unusable[0])
        for text in unusable:
            self._tell(text)
        if not found:
            raise DeviceError(f"asked to measure on {self.farm.text}: all devices with that key are gone; {_keys_text(self._client)}")
        return next(iter(found))

    def _about(self, worker: str, future: Future) -> Mapping[str, Any] | None:
        """What a worker is, or its `error`; None where it is gone in the meantime. Raises DeviceError for one of another version."""
        try:
            said = self._told_by(worker, future, DESCRIBE_SECONDS)
        except Exception as error:
            return _stranger(worker, f"{type(error).__name__}: {error}")
        if said is None:
            future.release()
            return None
        if not isinstance(said, dict):
            return _stranger(worker, repr(said))
        _check_versions(said, self.farm.text)
        lacking = _lacking(said, _NAMED if "error" in said else _DESCRIBED)
        return _stranger(worker, f"without its {lacking}") if lacking else said

    def _told_by(self, worker: str, future: Future, seconds: float) -> object:
        """What a worker says of itself; None where it is gone, or this session is closed."""
        until, ended = time.monotonic() + seconds, _end_of(future)
        while not ended.wait(LOOK_SECONDS):
            if self._closing.is_set() or worker not in self._workers():
                return None
            if time.monotonic() > until:
                raise TimeoutError(f"nothing within {seconds:.0f} s")
        said: object = self._client.sync(_answer_of, future)
        return said


def connect(farm: FarmText) -> Client:
    """A client of Dask. Raises DeviceError when no scheduler answers, or it does not know our certificate."""
    from distributed import Client

    configure()
    place = farm.place
    options: dict[str, Any] = {} if place.certificates is None else {"security": security(place)}
    try:
        return Client(place.url, timeout=CONNECT_SECONDS, set_as_default=False, direct_to_workers=False, **options)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(f"asked for a farm at {place.url}: {no_answer(error)}; see `ansor farm scheduler`") from error


def dashboard_of(client: Client) -> str:
    """The address of Dask's pages, '' where the scheduler has none. They are on its machine's loopback interface."""
    return str(client.get_metadata([DASHBOARD], ""))


def _end_of(future: Future) -> threading.Event:
    """Set when a task has ended. Answers are fetched afterwards, without a limit: Dask fetches several at a time, and a wait that ends stops them all."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    return ended


async def _answer_of(future: Future) -> object:
    """What a task gave. The fetching that ends because the client does is an error, of which `Future.result` would not know."""
    try:
        return await future
    except asyncio.CancelledError as error:
        raise OSError("the connection was closed") from error


def _model(said: Mapping[str, Any]) -> Model:
    return Model(said["model"], said["unit"], said["form"], said["processor"])


def _name(said: Mapping[str, Any]) -> str:
    """A device, and the process that has it."""
    return f"{said['device']} ({said['process']})"


def _read(answer: object) -> tuple[dict[str, Any], str]:
    if not isinstance(answer, dict) or not _are_texts(answer.get("missing", [])):
        raise DeviceError(f"a worker of the farm answered {answer!r:.100}; install the same version of ansor on all machines")
    return answer, str(answer.get("worker", ""))


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _stranger(worker: str, said: str) -> Mapping[str, Any]:
    """What stands for the answer of a worker that has not answered as ours do."""
    return {"device": f"the worker at {worker}", "error": f"it does not answer as version {__version__} of ansor does ({clip(said, 200)})"}


def _check(said: Mapping[str, Any], text: str) -> None:
    """Raises DeviceError for what a worker of other versions said, for an error, and for an answer that is not complete."""
    _check_versions(said, text)
    if "error" in said:
        raise DeviceError(f"{text}: {clip(str(said['error']), 1000)}")
    if lacking := _lacking(said, _JUDGED if "refused" in said else _MEASURED):
        raise DeviceError(f"a worker of {text} answered without its {lacking}; install the same version of ansor on all machines")


def _lacking(said: Mapping[str, Any], wanted: Mapping[str, type[object]]) -> str:
    """What an answer does not have, or has of another type."""
    return " and ".join(name for name, kind in wanted.items() if not isinstance(said.get(name), kind) or isinstance(said.get(name), bool))


def _check_versions(said: Mapping[str, Any], text: str) -> None:
    wrong = difference(said)
    if wrong:
        raise DeviceError(f"asked to measure on {text}: the worker of {said.get('device')} has {wrong}")


def _workers(client: Client) -> dict[str, Any]:
    """What the scheduler knows of workers."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def _keys_text(client: Client) -> str:
    keys = sorted({key for one in _workers(client).values() for key in one["resources"]})
    return f"there are devices with the keys {', '.join(keys)}" if keys else "there are no devices: start some with `ansor farm worker`"


