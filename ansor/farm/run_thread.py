"""A thread that runs jobs on a device, so that one that never answers is given up."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from queue import SimpleQueue

from ansor.measure.device import Device, Job, Observation
from ansor.measure.failure import Failure

_Asked = tuple[Device, Job, Future[Observation | Failure]]


class RunThread:
    """Always the same thread: what a device starts may end with the thread that started it. Where a device hangs, that thread is left behind."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[_Asked] | None = None
        self.left = 0  # threads behind

    def run(self, device: Device, job: Job, seconds: float) -> Observation | Failure:
        """What a device says. Raises TimeoutError when it says nothing within that time; it is told to close then."""
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
