"""Whole trials over a serial line: nothing but a candidate's own code goes over it, so that 115,200 baud are enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansor import te
from ansor.api import tune_tasks
from ansor.measure.device import Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.failure import Failure
from ansor.targets.boards.catalogue import find_board
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from tests.measure.boards.paced_line import BOARD, TARGET, paced_line

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
BAUD = 2_000_000  # of the test's line; what is asked of one of 115,200 is said in bytes
LINE_BYTES = 1.5 * 115_200 / 10  # in 1.5 s


class Watched(BoardDevice):
    """Keeps what each run gave."""

    found: list[Observation | Failure]

    def run(self, job: Job) -> Observation | Failure:
        self.found.append(super().run(job))
        return self.found[-1]


@pytest.fixture
def device() -> Iterator[Watched]:
    with paced_line(BAUD) as opened:
        made = Watched("serial:paced", find_board(BOARD), opened)
        made.found = []
        yield made
        made.close()


def _dense() -> list[Tensor]:
    a, b = te.placeholder((16, 64), "int8", name="A"), te.placeholder((32, 64), "int8", name="B")
    r = te.reduce_axis((0, 64), name="r")
    return [a, b, te.compute((16, 32), lambda i, j: te.sum(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=r), name="C")]


def test_a_trial_takes_what_its_code_takes(device: Watched) -> None:
    (state,) = tune_tasks([SearchTask(tensors=_dense(), target=TARGET, name="dense")], trials=8, devices=[device])
    assert state.best is not None
    runs = [one for one in device.found if isinstance(one, Observation)]
    assert len(runs) == len(device.found) > 4
    assert all(one.counters["tensor_bytes_sent"] == 0 for one in runs)
    for one in runs[1:]:
        repeats = ("overhead",) if one.counters["wire_packets_repeated"] else ()  # on a busy machine
        assert sum(one.counters[f"wire_bytes_{name}"] for name in {"sent", "received", "overhead"}.difference(repeats)) < LINE_BYTES
