"""A device of a farm is a device like any other."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansor.codegen.toolchain import processor_name
from ansor.measure.device import Device
from ansor.measure.device_kinds import open_device
from ansor.measure.record import load
from ansor.targets.base import parse_target
from ansor.testing.device_contract import DeviceContract
from tests.emulators import need_emulators
from tests.farm_cluster import Cluster


class TestLocal(DeviceContract):
    """This machine, behind a farm. Other tests run beside, so a canary would suspend it as noisy: those of pretended devices are tested elsewhere."""

    key, far = "local", "local"

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def cluster(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
        with Cluster(tmp_path_factory.mktemp("farm")) as cluster:
            cluster.worker(cls.key, cls.far)
            cls.url = cluster.url
            yield cluster

    url = ""

    def test_a_run_is_recorded_once_and_resumed(self, device: Device, tmp_path: Path) -> None:
        """Besides, its records name the device and its machine."""
        super().test_a_run_is_recorded_once_and_resumed(device, tmp_path)
        processor = f" ({processor_name()})" if self.far == "local" else ""
        measured_by = {one.measured_by for one in load(tmp_path / "trials.jsonl").records if one.costs}
        assert measured_by == {f"{self.far} on {platform.node()}{processor}"}

    def open(self) -> Device:
        return open_device(f"farm://{self.url}?key={self.key}&canary=0", parse_target(self.target))


class TestEmulated(TestLocal):
    """Programs for another processor."""

    key, far, target = "a72", "qemu-aarch64", "arm -mcpu=cortex-a72"

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def cluster(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
        need_emulators()
        with Cluster(tmp_path_factory.mktemp("farm")) as cluster:
            cluster.worker(cls.key, cls.far)
            cls.url = cluster.url
            yield cluster
