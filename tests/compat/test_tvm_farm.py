"""TVM's API for boards: the programs that start a farm, and the runners that measure on one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansor import auto_scheduler, autotvm, te
from ansor.compat import tvm
from ansor.errors import TargetError
from tests.emulators import need_emulators

CALM = "from ansor.farm import health\nhealth.SLOWER = health.NOISE = 1e9\n"
"""Code that Python runs first, so that no device is put aside because the test machine is busy."""

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def started(folder: Path, program: str, ready: str, *words: str) -> tuple[subprocess.Popen[str], str]:
    """One of TVM's programs, and the relevant part of its output."""
    command = [sys.executable, "-m", f"ansor.compat.tvm.exec.{program}", *words]
    (folder / "sitecustomize.py").write_text(CALM)
    environment = {**os.environ, **ENVIRONMENT, "ANSOR_FARM": str(folder / "none"), "PYTHONPATH": str(folder)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(ready, line):
            return process, found[1]
    raise AssertionError(f"{program} ended with status {process.wait()}")


def interrupted(process: subprocess.Popen[str]) -> int:
    """The status of a process that Ctrl-C ends."""
    os.kill(process.pid, signal.SIGINT)
    return process.wait(timeout=60)


def killed(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder, processes = tmp_path_factory.mktemp("tracker"), []
    try:
        tracker, address = started(folder, "rpc_tracker", r"listens at \S+:(\d+);", "--host", "127.0.0.1", "--port", "0", "--silent")
        processes.append(tracker)
        processes.append(started(folder, "rpc_server", "(serves)", "--tracker", f"127.0.0.1:{address}", "--key", "here", "--no-fork")[0])
        yield int(address)
        assert [interrupted(one) for one in reversed(processes)] == [0, 130]
    finally:
        for one in processes:
            killed(one)


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path / "none"))


@autotvm.template("tests/farm_matmul")
def matmul(n: int) -> Any:
    a, b = tvm.te.placeholder((n, n), name="A"), tvm.te.placeholder((n, n), name="B")
    k = tvm.te.reduce_axis((0, n), "k")
    c = tvm.te.compute((n, n), lambda i, j: tvm.te.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = tvm.te.create_schedule(c.op)
    y, x = schedule[c].op.axis
    config = autotvm.get_config()
    config.define_split("tile_y", y, num_outputs=2)
    config["tile_y"].apply(schedule, c, y)
    del x
    return schedule, [a, b, c]


def declared(n: int) -> list[te.Tensor]:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def test_the_tracker_lists_its_devices(port: int, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ansor.compat.tvm.exec.query_rpc_tracker", "--port", str(port)]
    said = subprocess.run(words, env={**os.environ, "ANSOR_FARM": str(tmp_path)}, capture_output=True, text=True, timeout=100, check=True).stdout
    assert "here" in said and "local" in said


def test_autotvm_measures_on_it(port: int) -> None:
    task = autotvm.task.create("tests/farm_matmul", args=(64,), target="llvm")
    option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.RPCRunner("here", "127.0.0.1", port, number=1, repeat=1, cooldown_interval=0))
    results: list[autotvm.MeasureResult] = []
    tuner = autotvm.RandomTuner(task)
    tuner.tune(n_trial=4, measure_option=option, callbacks=[lambda tuner, inputs, found: results.extend(found)])
    assert len(results) == 4 and all(one.error_no == 0 for one in results)


def test_autotvm_measures_programs_for_arm(port: int, tmp_path: Path) -> None:
    need_emulators()
    server = started(tmp_path, "rpc_server", "(serves)", "--tracker", f"127.0.0.1:{port}", "--key", "a72", "--device", "qemu-aarch64")[0]
    try:
        task = autotvm.task.create("tests/farm_matmul", args=(16,), target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
        option = autotvm.measure_option(autotvm.LocalBuilder(timeout=60), autotvm.RPCRunner("a72", "127.0.0.1", port, number=1, repeat=1, timeout=60))
        results: list[autotvm.MeasureResult] = []
        autotvm.RandomTuner(task).tune(n_trial=2, measure_option=option, callbacks=[lambda tuner, inputs, found: results.extend(found)])
        assert len(results) == 2 and all(one.error_no == 0 and one.costs[0] > 1000 for one in results)  # instructions
        here = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner())
        with pytest.raises(TargetError, match=r"on this machine, which cannot run them: give autotvm\.RPCRunner"):
            autotvm.RandomTuner(task).tune(n_trial=1, measure_option=here)
    finally:
        killed(server)


def test_the_auto_scheduler_measures_on_it(port: int, tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(func=auto_scheduler.register_workload(declared), args=(64,), target="llvm")
    runner = auto_scheduler.RPCRunner("here", "127.0.0.1", port, repeat=1, min_repeat_ms=1)
    log = tmp_path / "log.json"
    task.tune(auto_scheduler.TuningOptions(4, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(str(log))], verbose=0))
    assert log.read_text().count('"r"') >= 1
