"""Machines of a farm with other versions than ours are refused with one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.farm.versions import difference, scheduler_difference, versions
from ansor.measure.device_kinds import open_devices
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster

ANSOR = "import ansor; ansor.__version__ = '0.0.7'"
DASK = "import distributed; distributed.__version__ = '2020.1.0'"
PYTHON = "import platform, types, ansor.farm.versions as v; v.pickle = types.SimpleNamespace(HIGHEST_PROTOCOL=9); platform.python_version = lambda: '4.2.0'"
CODEC = "import ansor.farm.codec; ansor.farm.codec.VERSION = 99"


def refusal(url: str, key: str) -> str:
    with pytest.raises(DeviceError) as caught:
        open_devices([f"farm://{url}?key={key}"], parse_target("cpu -threads=1"), lambda text: None)
    return str(caught.value)


@pytest.mark.parametrize(("key", "line", "there"), [
    ("ansor", ANSOR, "ansor 0.0.7; here is ansor "),
    ("python", PYTHON, r"Python's pickles 9 \(Python 4.2.0\); here is Python's pickles 5 \(Python 3"),
    ("codec", CODEC, "ansor's jobs 99; here is ansor's jobs "),
])  # fmt: skip
def test_a_worker_of_another_version_is_refused(cluster: Cluster, tmp_path: Path, key: str, line: str, there: str) -> None:
    device = f"pretended:{key},{tmp_path},1"
    cluster.worker(key, device, pretends=line)
    said = refusal(cluster.url, key)
    assert re.search(f"the worker of {device} has {there}[^;:]*: install the same version on all machines$", said) and "\n" not in said


def test_a_worker_of_another_dask_does_not_join(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match=r"whose scheduler has distributed .*; here is distributed 2020.1.0: install the same version on all machines"):
        cluster.worker("dask", "local", pretends=DASK)
    assert cluster.processes[-1].wait(20) in (1, 2)  # it does not try again


def test_a_scheduler_of_another_version_is_refused_by_clients_and_workers(tmp_path: Path) -> None:
    line = "import distributed.versions as v; kept = v.get_package_info; v.get_package_info = lambda names: kept(names) | {'distributed': '2020.1.0'}"
    with Cluster(tmp_path, pretends=line) as cluster:
        wrong = "whose scheduler has distributed 2020.1.0; here is distributed [0-9.]*: install the same version on all machines"
        assert re.search(wrong, refusal(cluster.url, "x"))
        with pytest.raises(AssertionError, match=f"asked for a worker of the farm at .*, {wrong}"):
            cluster.pretended("x", "x", 1)


def test_the_same_is_no_difference_and_what_says_nothing_is_one() -> None:
    assert difference(versions()) == scheduler_difference({"packages": {"distributed": versions()["distributed"]}}) == ""
    assert difference(versions() | {"python": "3.99.0"}) == ""  # functions go by name
    assert difference({}).startswith("ansor of an unknown version, ansor's jobs of an unknown version, distributed of an unknown version, Python's pickles")
    assert scheduler_difference({}).startswith("distributed of an unknown version; here is distributed ")
