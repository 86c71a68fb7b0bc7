"""`vta-sim` passes what every device passes, and costs are those of the model that its name says."""

from __future__ import annotations

import pytest

import ansor
from ansor import te
from ansor.codegen.source import CSource
from ansor.errors import DeviceError
from ansor.measure.device import Device
from ansor.measure.device_kinds import open_device
from ansor.run.zero_tuning import pick
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.testing.device_contract import SIZE, DeviceContract
from tests.vta_declarations import conv2d, narrowed


class TestVtaSimulator(DeviceContract):
    target = "vta"
    long = 96

    def open(self) -> Device:
        return open_device("vta-sim", parse_target("vta"))

    def sums(self, sign: int = 1) -> list[Tensor]:
        a, b = te.placeholder((SIZE, SIZE), "int8", name="A"), te.placeholder((SIZE, SIZE), "int8", name="B")
        return [a, b, te.compute((SIZE, SIZE), lambda *at: (a[at].astype("int32") + b[at].astype("int32") * sign).astype("int8"), name="C")]

    def product(self, n: int = 0) -> list[Tensor]:
        n = n or SIZE
        a, b, k = te.placeholder((n, n), "int8", name="A"), te.placeholder((n, n), "int8", name="B"), te.reduce_axis(n, "k")
        wide = te.compute((n, n), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="wide")
        return [a, b, te.compute((n, n), lambda i, j: narrowed(wide[i, j] >> 4), name="C")]

    def program(self, declared: list[Tensor], entry: str) -> CSource:
        task = SearchTask(tensors=declared, target=self.target)
        best = pick(task).program
        return task.source(best.sketch, best.row, entry)


def test_programs_come_with_cycles_and_what_they_are_made_of() -> None:
    found = [ansor.auto_schedule(conv2d((1, 32, 14, 14), 32, 3, pad=1), target="vta", devices=device, trials=4) for device in ("vta-sim", "vta-sim:hls")]
    assert [str(one.unit) for one in found] == ["cycles (chisel)", "cycles (hls)"]
    assert found[0].cost is not None and found[1].cost is not None and found[0].cost < found[1].cost
    assert found[0].stats["gemm_cycles"] >= 14 * 14 * 2 * 2 * 9 and found[0].stats["bytes_stored"] == 14 * 14 * 32
    assert "GEMM" in found[0].source and "x_inp" in found[0].schedule or "padded" in found[0].schedule


def test_what_it_does_not_run() -> None:
    with pytest.raises(DeviceError, match="its models are vta-sim:hls"):
        open_device("vta-sim:fast", parse_target("vta"))
    with pytest.raises(DeviceError, match="runs operators of VTA"):
        open_device("vta-sim", parse_target("cpu"))
