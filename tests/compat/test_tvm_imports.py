"""`import tvm` without TVM: the alias, the paths of TVM's modules, and messages for missing modules."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import ansor.autotvm
from ansor import auto_scheduler
from ansor.compat import tvm
from ansor.compat.tvm import modules, topi
from ansor.compat.tvm.missing import MissingModuleError
from ansor.errors import AnsorError

PATHS = (
    ("auto_scheduler.measure", "PythonBasedMeasureCallback", auto_scheduler.PythonBasedMeasureCallback),
    ("auto_scheduler.measure", "MeasureInput", auto_scheduler.MeasureInput),
    ("auto_scheduler.measure_record", "dump_record_to_string", auto_scheduler.dump_record_to_string),
    ("auto_scheduler.measure_record", "RecordToFile", auto_scheduler.RecordToFile),
    ("auto_scheduler.cost_model.xgb_model", "XGBModel", auto_scheduler.XGBModel),
    ("auto_scheduler.cost_model", "RandomModel", auto_scheduler.RandomModel),
    ("auto_scheduler.loop_state", "State", auto_scheduler.State),
    ("auto_scheduler.search_policy", "SketchPolicy", auto_scheduler.SketchPolicy),
    ("auto_scheduler.utils", "decode_workload_key", auto_scheduler.decode_workload_key),
    ("autotvm.record", "encode", ansor.autotvm.encode),
    ("autotvm.record", "MeasureResult", ansor.autotvm.MeasureResult),
    ("autotvm.measure.measure_methods", "LocalRunner", ansor.autotvm.LocalRunner),
    ("autotvm.task.space", "FallbackConfigEntity", ansor.autotvm.FallbackConfigEntity),
    ("autotvm.task.dispatcher", "ApplyHistoryBest", ansor.autotvm.ApplyHistoryBest),
    ("autotvm.task", "create", ansor.templates.task.create),
    ("autotvm.tuner", "XGBTuner", ansor.autotvm.XGBTuner),
    ("autotvm.tuner.callback", "log_to_file", ansor.autotvm.callback.log_to_file),
    ("topi.nn.pooling", "pool2d", topi.nn.pool2d),
    ("topi.nn.winograd_util", "winograd_transform_matrices", topi.nn.winograd_transform_matrices),
    ("topi.broadcast", "add", topi.add),
    ("topi.elementwise", "clip", topi.clip),
    ("topi.reduction", "sum", topi.sum),
    ("topi.tensor", "cumsum", topi.cumsum),
    ("topi.transform", "concatenate", topi.concatenate),
)


@pytest.mark.parametrize(("path", "name", "ours"), PATHS, ids=[f"{path}.{name}" for path, name, _ in PATHS])
def test_modules_by_their_paths(path: str, name: str, ours: object) -> None:
    module = importlib.import_module(f"ansor.compat.tvm.{path}")
    found: object = tvm
    for part in path.split("."):
        found = getattr(found, part)
    assert found is module and getattr(module, name) is ours


EVERYTHING = [
    *(f"topi.{path}" for path in modules.TOPI), *(f"autotvm.{path}" for path in modules.AUTOTVM),
    *(f"auto_scheduler.{path}" for path in modules.AUTO_SCHEDULER),
]  # fmt: skip


@pytest.mark.parametrize("path", EVERYTHING)
def test_everything_of_a_module_at_once(path: str) -> None:
    """Nothing but its own: a name of another package would replace one of the caller's."""
    given: dict[str, object] = {}
    exec(f"from ansor.compat.tvm.{path} import *", given)
    assert not {name for name in given if name.startswith("_")} - {"__builtins__"}
    assert not {"np", "json", "time", "annotations", "Sequence", "dataclass", "field"} & set(given)
    assert {name for known, name, _ in PATHS if known == path} <= set(given)


@pytest.mark.parametrize(
    ("root", "table"),
    [("compat.auto_scheduler", modules.AUTO_SCHEDULER), ("compat.autotvm", modules.AUTOTVM), ("compat.tvm.topi", modules.TOPI)],
)
def test_the_modules_behind_the_paths_are_there(root: str, table: Mapping[str, tuple[str, ...]]) -> None:
    for source in {source for sources in table.values() for source in sources}:
        importlib.import_module(f"ansor.{source}" if "." in source else f"ansor.{root}.{source}")


def test_their_missing_names_say_what_to_use() -> None:
    for path in ("autotvm.task.space", "auto_scheduler.measure", "auto_scheduler.cost_model.xgb_model"):
        module = importlib.import_module(f"ansor.compat.tvm.{path}")
        assert not hasattr(module, "bogus") and not hasattr(module, "__wrapped__")
        with pytest.raises(AttributeError, match=rf"asked for tvm\.{path}\.bogus, which is not available; "):
            _ = module.bogus


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("from ansor.compat.tvm import relay", "ansor.compile"), ("import ansor.compat.tvm.relay.testing", "ansor.compile"),
        ("from ansor.compat.tvm.relay import nn", "ansor.compile"), ("from ansor.compat.tvm.contrib import graph_executor", "ansor.compile"),
        ("import ansor.compat.tvm.contrib.cblas", "te.compute"), ("import ansor.compat.tvm.micro", "on this machine"),
        ("from ansor.compat.tvm import thread_axis", "s\\[C\\].parallel"), ("from ansor.compat.tvm.autotvm import tophub", "apply_history_best"),
        ("from ansor.compat.tvm.script import tir", "tvm.lower"), ("import ansor.compat.tvm.driver.tvmc", "ansor compile"),
        ("from ansor.compat.tvm.auto_scheduler.relay_integration import x", "ansor.compile"), ("import ansor.compat.tvm.bogus", "docs/tvm.md"),
    ],
)  # fmt: skip
def test_missing_imports_say_what_to_use(statement: str, words: str) -> None:
    with pytest.raises(ImportError, match=rf"asked for tvm\.[\w.]+, which is not available; .*{words}") as raised:
        exec(statement, {})
    assert isinstance(raised.value, MissingModuleError) and isinstance(raised.value, AnsorError)


def test_other_peoples_modules_are_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'ansor.compat.bogus'"):
        importlib.import_module("ansor.compat.bogus")


SCRIPT = """
import sys
import tvm
import tvm.te
import tvm.testing
from tvm import auto_scheduler, te
from tvm.auto_scheduler.utils import get_const_tuple
import ansor.compat.tvm as ours
assert tvm is ours and sys.modules["tvm.te"] is ours.te and te.compute is ours.te.compute
assert tvm.__spec__.name == "ansor.compat.tvm"
try:
    import tvm.relay
except ImportError as error:
    print(error)
print(__name__, sys.argv[1:], get_const_tuple([4, 5]))
"""


def test_unchanged_scripts_run(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run([sys.executable, "-m", "ansor.compat.tvm", str(script), "--fast"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "asked for tvm.relay, which is not available" in run.stdout and "__main__ ['--fast'] (4, 5)" in run.stdout
    run = subprocess.run([sys.executable, "-m", "ansor.compat.tvm"], capture_output=True, text=True)
    assert run.returncode == 2 and "usage" in run.stderr


def test_unchanged_tests_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import tvm\n")
    (tmp_path / "test_one.py").write_text("from tvm import te\ndef test_one():\n    assert te.placeholder((3,)).shape == (3,)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ansor.compat.tvm.alias", "-p", "no:cacheprovider", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0 and "1 passed" in run.stdout, run.stdout


def test_tvm_itself_is_not_replaced() -> None:
    program = (
        "import sys, types\nsys.modules['tvm'] = types.ModuleType('tvm')\nsys.modules['tvm'].__file__ = 'there.py'\n"
        "from ansor.compat.tvm import alias\ntry: alias.install()\nexcept RuntimeError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "there.py is already imported; call install() before it" in run.stdout


def test_a_custom_rule() -> None:
    run = subprocess.run([sys.executable, "-m", "ansor.compat.tvm", str(Path(__file__).parent / "scripts" / "own_rule.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert 'tasks: ["row_sums", 16, 32]' in run.stdout
