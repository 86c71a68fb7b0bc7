"""A thread that runs jobs on a device, so that a device that never answers can be abandoned."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from queue import SimpleQueue

from ansor.measure.device import Device, Job, Observation
from ansor.measure.failure import Failure

_Asked = tuple[Device, Job, Future[Observation | Failure]]


class RunThread:
    """Runs all jobs in one thread: what a device starts may end with the thread that started it. If a device hangs, its thread is abandoned."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[_Asked] | None = None
        self.left = 0  # abandoned threads

    def run(self, device: Device, job: Job, seconds: float) -> Observation | Failure:
        """The device's answer. Raises TimeoutError if there is none within that time; the device is then told to close."""
        if self._asked is None:
            self._asked = SimpleQueue()
            threading.Thread(target=_work, args=(self._asked,), daemon=True).start()
        answer: Future[Observation | Failure] = Future()
        self._asked.put((device, job, answer))
        wait([answer], seconds)
        if not answer.done():
            self._asked = None
            self.left += 1
            threading.Thread(target=device.close, daemon=True).start()  # it may hang, too
            raise TimeoutError
        return answer.result()


def _work(asked: SimpleQueue[_Asked]) -> None:
    while True:
        device, job, answer = asked.get()
        try:
            answer.set_result(device.run(job))
        except BaseException as error:
            answer.set_exception(error)
