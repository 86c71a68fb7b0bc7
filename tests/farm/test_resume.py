"""A tuning run on a farm that is killed, and started again with its records."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from ansor.measure.record import load
from tests.farm_cluster import Cluster

TRIALS = 40


@pytest.mark.compiler
def test_what_a_killed_run_recorded_is_not_measured_again(tmp_path: Path) -> None:
    records = tmp_path / "matmul.jsonl"
    with Cluster(tmp_path / "farm") as cluster:
        for name in ("one", "two"):
            cluster.pretended("board", name, 100)
        words = ("tune", "matmul", "--args", "64,64,64", "--target", "cpu -threads=1", "--trials", str(TRIALS), "--records", str(records),
                 "--devices", f"farm://{cluster.url}?key=board")  # fmt: skip

        def ran() -> list[str]:
            return [*cluster.ran("one"), *cluster.ran("two")]

        client = cluster.start(*words)
        while client.poll() is None and (not records.exists() or len(load(records).records) < 8):
            time.sleep(0.02)  # a trial takes five times as long
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
        recorded = len(load(records).records)
        assert 8 <= recorded < TRIALS
        while any(one["busy"] for one in json.loads(cluster.run("farm", "status", cluster.url, "--json").stdout)["devices"]):
            pass
        first = Counter(ran())
        ended = cluster.run(*words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        found = load(records).records
        assert len(found) == TRIALS and len({(str(one.sketch), one.row) for one in found}) == TRIALS
        again = set(first) & set(Counter(ran()) - first)
        assert set(first.values()) == {1} and len(again) <= len(first) - recorded  # what had no record yet
