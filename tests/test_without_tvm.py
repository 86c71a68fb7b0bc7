"""Nothing needs TVM's names: in a copy without their folders everything imports, and tests of every part pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES_OF_TVM = ("auto_scheduler", "autotvm", "compat")
TESTS = (
    "te/test_fold.py", "ir/test_loops.py", "schedule/test_choice.py", "codegen/test_source.py", "search/test_expected_gain.py", "search/test_task_scheduler.py",
    "manual/test_schedule.py", "templates/test_space.py", "templates/test_split.py", "tasks/test_declared.py", "run/test_budget.py", "run/test_keywords.py",
    "run/test_progress.py", "run/test_tuning.py::test_the_budget_is_met_exactly_and_the_best_is_kept", "commands/test_subject.py",
)  # fmt: skip
"""Of every part some that take seconds together and measure nothing."""


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is installed, without TVM's names."""
    folder = tmp_path_factory.mktemp("rest")
    none = shutil.ignore_patterns("__pycache__")
    for name in ("rules", "cost_model", "measure", "targets"):
        shutil.copytree(ROOT / name, folder / "ansor" / name, ignore=none)
    shutil.copytree(ROOT / "ansor", folder / "ansor", dirs_exist_ok=True, ignore=none)
    for name in NAMES_OF_TVM:
        shutil.rmtree(folder / "ansor" / name)
    return folder


def _python(rest: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python where `ansor` is the copy, whose bytecode is written for the next call: to compile all of it takes seconds."""
    environment = {**os.environ, "PYTHONPATH": str(rest)}
    return subprocess.run([sys.executable, *words], cwd=rest, env=environment, capture_output=True, text=True, timeout=300)


def test_every_module_imports(rest: Path) -> None:
    files = [file.relative_to(rest).with_suffix("") for file in sorted((rest / "ansor").rglob("*.py"))]
    modules = [".".join(file.parts).removesuffix(".__init__") for file in files if file.name != "__main__"]
    code = f"import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nassert sys.modules['ansor'].__file__.startswith({str(rest)!r})"
    ran = _python(rest, "-c", code, *modules)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_its_tests_pass(rest: Path) -> None:
    tests = [str(ROOT / "tests" / test) for test in TESTS]
    ran = _python(rest, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), *tests)
    assert ran.returncode == 0 and " passed" in ran.stdout, ran.stdout[-3000:] + ran.stderr[-1000:]


def test_the_commands_of_the_rest_are_there(rest: Path) -> None:
    ran = _python(rest, "-m", "ansor", "--help")
    assert ran.returncode == 0 and "tune" in ran.stdout and "convert" not in ran.stdout
