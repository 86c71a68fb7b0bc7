"""The example of a backend outside the package, installed as its author would, and put through the tests that every device passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOY = ROOT / "examples" / "toy_backend"
CONTRACT = """
from ansor.measure.device_kinds import open_device
from ansor.targets.base import parse_target
from ansor.testing.device_contract import DeviceContract


class TestToy(DeviceContract):
    target = "toy"

    def open(self):
        return open_device("toy-machine", parse_target("toy"))
"""
TUNED = """
import ansor
from ansor.measure.record import load
from ansor.tasks.task import SearchTask

task = SearchTask("matmul", (16, 16, 16), "toy")
lines = []
(state,) = ansor.tune_tasks(task, trials=24, records="toy.jsonl", report=lines.append, progress=False)
costs = [record.cost for record in load("toy.jsonl").records if record.costs]
assert state.unit.text(state.cost).endswith("cycles") and "cycles" in lines[-1], lines
assert state.cost == min(costs) < max(costs) and all(record.failure is None for record in load("toy.jsonl").records)
(again,) = ansor.tune_tasks(task, trials=32, records="toy.jsonl", progress=False)
assert again.resumed == 24 and again.cost <= state.cost and len(load("toy.jsonl").records) == 32
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in it, found as other packages are."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "toy_backend-0.1.dist-info").mkdir()
    (folder / "toy_backend-0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-backend\nVersion: 0.1\n")
    points = (TOY / "pyproject.toml").read_text().partition('entry-points."ansor.targets"]\n')[2].partition("\n[tool")[0]
    points = points.replace('"', "").replace("project.entry-points.", "")
    (folder / "toy_backend-0.1.dist-info" / "entry_points.txt").write_text(f"[ansor.targets]\n{points}")
    (folder / "toy_backend").symlink_to(TOY / "toy_backend")
    return folder


def run(installed: Path, folder: Path, *words: str) -> str:
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_it_passes_the_contract_of_devices(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(CONTRACT)
    assert "6 passed" in run(installed, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_toy.py")


def test_it_tunes_a_product_of_matrices_and_resumes(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "-c", TUNED)


def test_it_is_small() -> None:
    assert sum(len(path.read_text().splitlines()) for path in (TOY / "toy_backend").glob("*.py")) <= 300
