"""The client's side of a farm: sends jobs to stations as Dask tasks, and receives their outcomes. Several threads may use it at a time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from ansor.errors import DeviceError
from ansor.farm import station
from ansor.farm.address import FarmText, no_answer, security
from ansor.farm.answers import DESCRIBED, JUDGED, NAMED, WATCHED, Model, Said, check_measured, check_versions, lacking, model_of, name_of, read_answer, stranger
from ansor.farm.codec import Packed, outcome_of, pack_job
from ansor.farm.health import stands_out
from ansor.farm.known_devices import KnownDevices
from ansor.farm.reach import reach
from ansor.farm.scheduler import DASHBOARD, MOST_DEATHS, configure
from ansor.farm.shifts import Shifts
from ansor.farm.versions import scheduler_difference
from ansor.farm.workers import LOOK_SECONDS, Workers
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.turns import Say
from ansor.support.notices import log
from ansor.support.text import clip, counted

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 15.0
DESCRIBE_SECONDS = 300.0  # a device may build something first
CANARY_SECONDS = 60.0  # at the start of a run; a device may run a job first
SHIFT_SECONDS = 60.0  # how long a result waits for the canary that follows it
ALONE_SECONDS = 60.0
"""How long a job waits for a device of its key if there is none."""

MOST_ASKED = 32  # devices at a time
MOST_TURNS = 12  # attempts at one job: files may be missing at a station, or devices suspended in the meantime
MOST_TOLD = 64  # the latest messages, which are not repeated


class Session:
    """A connection to a scheduler, for the devices of one key and programs of one target. Raises DeviceError if there is no scheduler, or no device."""

    def __init__(self, farm: FarmText, target: str, say: Say) -> None:
        self.farm, self._target, self._say = farm, target, say
        self._closing = threading.Event()
        self._client = connect(farm)
        self.canary: Packed | None = None
        self._told, self._telling = deque[str](maxlen=MOST_TOLD), threading.Lock()
        self._shifts, self._devices, self._workers = Shifts(), KnownDevices(), Workers(self._client, farm.key)
        try:
            self._check_scheduler()
            self.dashboard = dashboard_of(self._client)
            self.workers = self._workers.there()
            if not self.workers:
                raise DeviceError(f"asked to measure on {farm.text}: no device with that key is available; {self._workers.keys_text()}")
            self.about = self._described()
        except BaseException:
            self.close()
            raise

    def watch(self, canary: Packed) -> None:
        """Run this canary on devices from now on. It runs on all of them first, so that a device that is slow from its start is found before its first job."""
        self.canary = canary
        workers = self._workers.there()
        with ThreadPoolExecutor(MOST_ASKED) as asking:
            said = list(zip(workers, asking.map(self._judged, workers), strict=True))
        found = [(worker, one) for worker, one in said if one is not None and "refused" not in one]
        if len(found) == 1:
            others = "is the only device of" if len(workers) == 1 else "is the only device that ran the canary of"
            log.info("%s %s %s: with no other, a device that is slow from its start is not found", found[0][1]["device"], others, self.farm.text)
        with ThreadPoolExecutor(MOST_ASKED) as asking:
            list(asking.map(partial(self._refuses, seconds=CANARY_SECONDS), *zip(*found, strict=True)) if found else ())

    def run(self, job: Job) -> Observation | Failure:
        """The outcome of a job. Raises DeviceError if no device is left, or the farm is gone."""
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
            outcome = self._outcome(said, worker)
            if outcome is not None and not self._refuses(worker, said) and self._counts(worker, said, outcome):
                self._devices.note_done(said["identity"])
                return outcome
            worker = ""
        why = clip(str(said.get("refused") or said.get("error") or "the canary after it did not run, or was not as usual"), 300)
        return Failure("queue", f"{MOST_TURNS} attempts on {self.farm.text} gave no result that counts, the last one because: {why}")

    def _refuses(self, worker: str, said: Said, seconds: float = station.PATIENCE_SECONDS) -> bool:
        """Whether to reject a result because its device, perhaps from its start, is slower than the others with its key: the device runs its canary again, and
        is suspended if that costs more than on the others, or does not answer."""
        usual, device = float(said["canary"]), said["identity"]
        if self.canary is None or not usual > 0:
            return False
        others = self._devices.others(device, self._workers.there())
        if not stands_out(usual, others):
            return False
        again = self._judged(worker, median(others), seconds)
        if again is None:
            self._devices.forget_canary(device)
        return again is None or "refused" in again

    def _counts(self, worker: str, said: Said, outcome: Observation | Failure) -> bool:
        """Whether a result counts: it does if the next canary of its device has its usual cost. Waits for that canary, and requests it if no other job will
        make it run."""
        if self.canary is None or (isinstance(outcome, Failure) and outcome.kind != "timeout"):
            return True
        device, shift = said["identity"], said["shift"]
        good = self._shifts.wait(device, shift, SHIFT_SECONDS)
        if good is not None or self._closing.is_set():
            return bool(good)
        with self._shifts.asking(device):
            again = self._judged(worker, seconds=station.PATIENCE_SECONDS)
        if again is None:
            self._devices.forget_canary(device)
        return self._shifts.known(device, shift) is True

    def _judged(self, worker: str, others: float = 0.0, seconds: float = CANARY_SECONDS) -> dict[str, Any] | None:
        """The answer of `Station.judge`; None if the worker is gone, or does not answer within that time. The call takes precedence over waiting jobs."""
        assert self.canary is not None
        files = {digest: path.read_bytes() for digest, path in self.canary.files.items()}
        try:
            future = self._client.submit(
                station.judge, self._target, self.canary.text, files, others, key=f"ansor-canary-{uuid.uuid4().hex}", resources={self.farm.key: 1}, pure=False,
                workers=[worker], priority=1,
            )  # fmt: skip
            try:
                said = self._told_by(worker, future, time.monotonic() + seconds)
            finally:
                with suppress(Exception):
                    future.release()
        except Exception:
            return None  # its next job will report what is wrong
        if not isinstance(said, dict) or lacking(said, JUDGED if "refused" in said else WATCHED):
            return None
        self._hear(said, worker)
        return said

    def lines(self) -> Sequence[str]:
        """Lines for display: what each device did for this run, the number of jobs in flight, and the address of Dask's dashboard."""
        on_their_way = f"{counted(self._shifts.on_their_way, 'job')} in flight"
        return [*self._devices.lines(), on_their_way, *([f"dashboard: {self.dashboard}"] if self.dashboard else [])]

    def close(self) -> None:
        """Make all waiting threads stop waiting, and disconnect."""
        self._closing.set()
        self._shifts.close()
        with suppress(Exception):
            self._client.close(timeout=5)

    def _check_scheduler(self) -> None:
        wrong = scheduler_difference(self._client.sync(self._client.scheduler.versions))
        if wrong:
            raise DeviceError(f"asked to measure on {self.farm.text}, whose scheduler has {wrong}")

    def _asked(self, text: str, files: Mapping[str, bytes], canary: Mapping[str, Any], worker: str) -> tuple[dict[str, Any], str] | Failure:
        """Send a job, and return a station's answer with its worker: `worker`, if it is still there. The answer is `{"missing": []}` if the job has to be sent
        again."""
        from distributed.client import ClosedClientError

        among = [] if worker or self._workers.all_are_used else self._usable()
        where = {"workers": [worker], "allow_other_workers": True} if worker else {"workers": among} if among else {}
        arguments = (station.run_job, self._target, text, files, canary)
        try:
            future = self._client.submit(*arguments, key=f"ansor-job-{uuid.uuid4().hex}", resources={self.farm.key: 1}, pure=False, **where)
        except ClosedClientError as error:
            raise DeviceError(f"the scheduler of {self.farm.text} is gone; finished measurements are kept") from error
        try:
            return self._waited(future, among)
        finally:
            with suppress(Exception):
                future.release()

    def _usable(self) -> list[str]:
        """The workers that are not excluded. Waits until there is one. Raises DeviceError after ALONE_SECONDS."""
        alone: float | None = None
        while not (found := self._workers.there()) and not self._closing.wait(LOOK_SECONDS):
            alone = self._alone(alone)
        return found

    def _waited(self, future: Future, among: Sequence[str]) -> tuple[dict[str, Any], str] | Failure:
        """Wait for the answer. among: the workers that may give it; empty for all."""
        from distributed import CancelledError, KilledWorker

        alone: float | None = None
        ended = _end_of(future)
        while not ended.wait(LOOK_SECONDS):
            if self._closing.is_set():
                return Failure("queue", "the run was stopped before a device answered")
            alone = self._alone(alone)
            if among and alone is None and not set(among) & set(self._workers.there()):
                return {"missing": []}, ""  # these workers are gone, but others are there
        try:
            answer = self._fetched(future)
        except KilledWorker:
            return Failure("link_lost", f"{MOST_DEATHS + 1} workers died while they had the job: it crashes them, or they all lost their network connection")
        except Exception as error:
            if self._closing.is_set():
                return Failure("queue", "the run was stopped before a device answered")
            if not isinstance(error, CancelledError | OSError | RuntimeError) or future.status == "error":  # raised by the worker
                raise DeviceError(f"a worker of {self.farm.text} raised {type(error).__name__}: {clip(str(error), 300)}; see its output") from error
            return Failure("link_lost", f"the scheduler of {self.farm.text} is gone ({type(error).__name__})")
        return read_answer(answer)

    def _alone(self, since: float | None) -> float | None:
        """The time since when there has been no device with the key; None if there is one. Raises DeviceError after ALONE_SECONDS, or if the connection is
        closed."""
        if self._client.status == "closed" and not self._closing.is_set():
            raise DeviceError(f"the scheduler of {self.farm.text} is gone; finished measurements are kept")
        if self._workers.there():
            return None
        since = time.monotonic() if since is None else since
        if time.monotonic() - since > ALONE_SECONDS:
            raise DeviceError(f"no device of {self.farm.text} has been available for {ALONE_SECONDS:.0f} s; {self._workers.keys_text()}")
        return since

    def _outcome(self, said: Said, worker: str) -> Observation | Failure | None:
        """The outcome of a job, with the device that measured it; None if that device is suspended, or excluded because of its answer. Raises DeviceError
        instead of excluding the only worker."""
        try:
            check_measured(said, self.farm.text)
            if "refused" not in said and model_of(said) != self.about:
                raise DeviceError(
                    f"asked to measure on {self.farm.text}, whose model is {self.about}; a device of model {model_of(said)} joined: give it another key"
                )
            outcome = None if "refused" in said else self._read(said)
        except DeviceError as error:
            self._leave_out(worker, error)
            return None
        self._hear(said, worker)
        return outcome

    def _read(self, said: Said) -> Observation | Failure:
        try:
            return replace(outcome_of(said.get("outcome")), measured_by=said["measured_by"])
        except DeviceError as error:
            raise DeviceError(f"asked to measure on {self.farm.text}: {name_of(said)}: {error}") from error

    def _leave_out(self, worker: str, error: DeviceError) -> None:
        """Exclude a worker from further jobs. Raises the error if the worker is unknown, or is the only one."""
        if not worker or not set(self._workers.there()) - {worker}:
            raise error
        self._workers.leave_out(worker)
        self._tell(f"the worker at {worker} gets no more jobs of this run: {error}")

    def _hear(self, said: Said, worker: str) -> None:
        """Note what a device reports about itself."""
        self._shifts.hear(said["identity"], said["judged"])
        self._devices.hear(said["identity"], name_of(said), worker, float(said.get("canary", 0.0)))
        if "refused" in said:
            self._workers.leave_out(worker)  # it is about to leave, and will have another address when it returns
            self._devices.forget_canary(said["identity"])
            self._tell(f"{said['device']} of {self.farm.text} is suspended: {said['refused']}")

    def _tell(self, text: str) -> None:
        with self._telling:
            if text in self._told:
                return
            self._told.append(text)
        self._say(text)

    def _described(self) -> Model:
        """The model of the devices. Raises DeviceError if they differ, have other versions, or none can be used."""
        asked = [self._client.submit(station.describe, self._target, workers=[one], pure=False, key=f"ansor-about-{uuid.uuid4().hex}") for one in self.workers]
        until = time.monotonic() + DESCRIBE_SECONDS
        found: dict[Model, str] = {}
        unusable: list[str] = []
        for worker, future in zip(self.workers, asked, strict=True):
            said = self._about(worker, future, until)
            if said is None:
                continue
            if "error" in said:
                unusable.append(f"{said['device']} of {self.farm.text} cannot be used: {clip(str(said['error']), 1000)}")
                continue
            self._devices.hear(said["identity"], name_of(said), worker)
            found.setdefault(model_of(said), said["device"])
        if len(found) > 1:
            devices = " and ".join(f"{device} ({model})" for model, device in found.items())
            raise DeviceError(f"asked to measure on {self.farm.text}, where devices differ: {devices}; their costs are not comparable: use different keys")
        if unusable and not found:
            raise DeviceError(unusable[0])
        for text in unusable:
            self._tell(text)
        if not found:
            raise DeviceError(f"asked to measure on {self.farm.text}: all devices with that key are gone; {self._workers.keys_text()}")
        return next(iter(found))

    def _about(self, worker: str, future: Future, until: float) -> Said | None:
        """A worker's description of itself, or its `error`; None if the worker is gone. Raises DeviceError if it has another version."""
        try:
            said = self._told_by(worker, future, until)
        except TimeoutError:
            why = f"it did not describe itself within {DESCRIBE_SECONDS:g} s: it runs a long job, or hangs"
            return {"device": f"the worker at {worker}", "error": why}
        except Exception as error:
            return self._stranger(worker, f"{type(error).__name__}: {error}")
        if said is None:
            future.release()
            return None
        if not isinstance(said, dict):
            return self._stranger(worker, repr(said))
        check_versions(said, self.farm.text)
        missing = lacking(said, NAMED if "error" in said else DESCRIBED)
        return self._stranger(worker, f"without its {missing}") if missing else said

    def _stranger(self, worker: str, said: str) -> Said:
        self._workers.leave_out(worker)
        return stranger(worker, said)

    def _told_by(self, worker: str, future: Future, until: float) -> object:
        """A worker's answer; None if the worker is gone, or this session is closed. Raises TimeoutError if there is no answer by `until`."""
        ended = _end_of(future)
        while not ended.wait(min(LOOK_SECONDS, max(0.0, until - time.monotonic()))):
            if self._closing.is_set() or worker not in self._workers.there():
                return None
            if time.monotonic() >= until:
                raise TimeoutError
        return self._fetched(future)

    def _fetched(self, future: Future) -> object:
        """The result of a task that has ended. Raises OSError if the client closes meanwhile: its loop may end first, and then no answer would come."""
        fetched: concurrent.futures.Future[object] = concurrent.futures.Future()

        async def fetch() -> None:
            try:
                fetched.set_result(await _answer_of(future))
            except Exception as error:  # the waiting thread raises it, whatever it is
                fetched.set_exception(error)

        self._client.loop.add_callback(fetch)
        while not concurrent.futures.wait([fetched], LOOK_SECONDS).done:
            if self._closing.is_set() or self._client.status == "closed":
                raise OSError("the connection was closed")
        return fetched.result()


def connect(farm: FarmText) -> Client:
    """A client of Dask. Raises DeviceError if no scheduler answers, or it does not accept our certificate."""
    from distributed import Client

    configure()
    place = farm.place
    reach(place, "client", CONNECT_SECONDS)
    options: dict[str, Any] = {} if place.certificates is None else {"security": security(place)}
    try:
        return Client(place.url, timeout=CONNECT_SECONDS, set_as_default=False, direct_to_workers=False, **options)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(f"asked for the farm at {place.url}: {no_answer(place, error)}") from error


def dashboard_of(client: Client) -> str:
    """The address of Dask's dashboard, on the loopback interface of the scheduler's machine; '' if the scheduler has none."""
    return str(client.get_metadata([DASHBOARD], ""))


def _end_of(future: Future) -> threading.Event:
    """An event that is set when a task has ended. Fetch the answer after that, without a time limit: Dask fetches several at once, and a timeout stops all."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    return ended


async def _answer_of(future: Future) -> object:
    """The result of a task. Raises an error if fetching stops because the client closes, which `Future.result` would not notice."""
    try:
        return await future
    except asyncio.CancelledError as error:
        raise OSError("the connection was closed") from error


