"""The device `toy-machine`: a child process that interprets toy programs and counts cycles, which are the same in every run."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys

import numpy as np

from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.failure import Failure
from ansor.measure.inputs import make_inputs
from ansor.measure.turns import Say
from ansor.targets.base import Target
from toy_backend.target import CYCLES, FORM


class ToyMachine:
    """Runs one program at a time. The first program starts the child; if the child has ended, the next program restarts it."""

    name, model, unit, form, alone = "toy-machine", "toy-machine", CYCLES, FORM, False

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def run(self, job: Job) -> Observation | Failure:
        ranges = {name: (low, high) for name, low, high in job.task.ranges}
        inputs = make_inputs(job.artifact.source.arguments, seed=job.task.seed, ranges=ranges)
        order = {
            "program": str(job.artifact.path), "reference": None if job.reference is None else str(job.reference.path),
            "inputs": {name: np.ravel(array).tolist() for name, array in inputs.items()},
        }  # fmt: skip
        answer = self._ask(json.dumps(order), job.timing.timeout_seconds)
        if isinstance(answer, Failure):
            return answer
        if "failure" in answer:
            return Failure(*answer["failure"])
        return Observation((float(answer["cycles"]),), CYCLES, check="compared with the reference on the device")

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _ask(self, order: str, seconds: float) -> dict | Failure:
        child = self._child = self._child or subprocess.Popen(
            [sys.executable, "-m", "toy_backend.machine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            child.stdin.write(order + "\n")
            child.stdin.flush()
            with selectors.DefaultSelector() as waiting:
                waiting.register(child.stdout, selectors.EVENT_READ)
                line = child.stdout.readline() if waiting.select(seconds) else None
        except OSError as error:
            self.close()
            return Failure("link_lost", f"the toy machine's process is gone: {error}")
        if not line:
            self.close()
            return Failure("timeout", f"no answer in {seconds:g} s") if line is None else Failure("link_lost", "the toy machine's process ended")
        return json.loads(line)


def _open(text: str, target: Target, say: Say) -> ToyMachine:
    return ToyMachine()


TOY_MACHINE = DeviceKind("toy-machine", "an interpreter that counts cycles", _open)
