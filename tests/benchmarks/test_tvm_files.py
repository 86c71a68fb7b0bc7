"""The runner of TVM's own files, on a made-up checkout of a few lines."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import tvm_files
from tvm_child import FewerTrials
from tvm_files import HOW_TO, TUTORIAL, UNIT, Row, Rules, chosen, group, markdown, run, totals

UTILS = """
import tvm, tvm.arith, tvm.tir, tvm._ffi
from tvm.contrib import nvcc, cudnn
import tvm.contrib.hexagon._ci_env_check as hexagon
def _fixture_cache(function):
    return function
def twice(n):
    assert not hexagon.anything() and not cudnn.exists()
    return 2 * n
"""
PLUGIN = "import tvm\nfrom tvm.testing import utils\n"
SHAPES = """
import time, pytest, tvm, tvm.testing
from tvm import te
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_shapes(dtype):
    assert te.placeholder((3,), dtype).shape == (tvm.testing.twice(2) - 1,)
"""
TESTS = SHAPES + """
def test_wrong():
    assert tvm.testing.twice(2) == 5
def test_told():
    te.hybrid
def test_outer():
    def test_inner(): pass
def test_gpu():
    if not tvm.cuda().exist:
        pytest.skip("no GPU")
def test_slow():
    time.sleep(1000)
"""
FILES = {
    "python/tvm/testing/__init__.py": "raise ImportError('ours is asked first')\n",
    "python/tvm/testing/utils.py": UTILS,
    "python/tvm/testing/plugin.py": PLUGIN,
    f"{TUTORIAL}/auto_scheduler_matmul_x86.py": "import tvm\nassert dict(n_trial=1000)['n_trial'] == 2 and __name__ == '__main__'\n",
    f"{TUTORIAL}/intro_topi.py": "import tvm.relay\n",
    f"{HOW_TO}/work_with_schedules/scan.py": "import tvm\n\nassert 1 == 2, 'sums'\n",
    f"{HOW_TO}/work_with_schedules/tedd.py": "import time\n\ntime.sleep(1000)\n",
    f"{UNIT}/test_autotvm_small.py": TESTS,
    f"{UNIT}/test_auto_scheduler_half.py": "from tvm import relay\ndef test_one(): relay.var('x')\ndef test_two(): pass\n",
    f"{UNIT}/test_auto_scheduler_none.py": "from tvm.relay import nothing\ndef test_one(): pass\ndef test_two(): pass\n",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tvm")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def rows(checkout: Path) -> dict[str, Row]:
    seconds = {f"{HOW_TO}/work_with_schedules/tedd.py": 1, f"{UNIT}/test_autotvm_small.py": 3}
    return {file: run(checkout, file, Rules(trials=2, seconds=seconds.get(file, 120), file_seconds=180)) for file in chosen(checkout, [])}


def outcomes(row: Row) -> dict[str, str]:
    return {case.name: case.outcome for case in row.cases}


def test_scripts_run_stop_and_fail(rows: dict[str, Row]) -> None:
    found = {Path(file).stem: row for file, row in rows.items() if file.startswith("gallery")}
    assert {name: row.cases[0].outcome for name, row in found.items()} == {
        "auto_scheduler_matmul_x86": "runs", "intro_topi": "stops", "scan": "fails", "tedd": "fails"
    }  # fmt: skip
    assert "ansor.compile" in found["intro_topi"].first_error and found["tedd"].first_error == "no end after 1 s"
    assert found["scan"].first_error == "line 3: AssertionError: sums"


def test_tests_pass_fail_and_are_skipped(rows: dict[str, Row]) -> None:
    row = rows[f"{UNIT}/test_autotvm_small.py"]
    assert outcomes(row) == {
        "test_shapes[float32]": "passed", "test_shapes[float16]": "skipped", "test_shapes[int32]": "passed", "test_wrong": "failed", "test_told": "stops",
        "test_outer": "passed", "test_gpu": "skipped", "test_slow": "failed",
    }  # fmt: skip
    assert {case.name: case.error for case in row.cases}["test_slow"] == "TimeoutError: no end after 3 s"


def test_tests_of_a_file_that_is_not_imported_fail(rows: dict[str, Row]) -> None:
    row = rows[f"{UNIT}/test_auto_scheduler_none.py"]
    assert outcomes(row) == {"test_one": "failed", "test_two": "failed"} and "asked for tvm.relay" in row.first_error


def test_relay_is_told_of_when_it_is_used(rows: dict[str, Row]) -> None:
    row = rows[f"{UNIT}/test_auto_scheduler_half.py"]
    assert outcomes(row) == {"test_one": "stops", "test_two": "passed"} and "asked for tvm.relay.var" in row.first_error and "ansor.compile" in row.first_error


def test_tables(rows: dict[str, Row]) -> None:
    text = markdown(list(rows.values()))
    assert "| tutorial/auto_scheduler_matmul_x86.py | runs |  |" in text and "| test_autotvm_small.py | 3 | 2 | 1 | 2 | AssertionError" in text
    scripts, auto_scheduler, autotvm = totals(list(rows.values()))
    assert scripts == "scripts: 1 runs, 1 stops, 2 fails" and auto_scheduler == "auto_scheduler: 1 passed, 2 failed, 1 stops, 0 skipped"
    assert autotvm == "autotvm: 3 passed, 2 failed, 1 stops, 2 skipped"
    assert group("tests/python/topi/python/test_topi_relu.py") == "topi"


def test_only_some(checkout: Path) -> None:
    assert chosen(checkout, ["intro", "autotvm_small"]) == [f"{TUTORIAL}/intro_topi.py", f"{UNIT}/test_autotvm_small.py"]
    assert chosen(checkout, ["python/tvm/testing/ut*.py"]) == ["python/tvm/testing/utils.py"]


def test_fewer_cases(checkout: Path) -> None:
    (checkout / UNIT / "test_autotvm_cases.py").write_text(SHAPES)
    row = run(checkout, f"{UNIT}/test_autotvm_cases.py", Rules(seconds=60, cases=1))
    assert list(outcomes(row)) == ["test_shapes[float32]", "test_shapes[float16]"]


def test_trials_are_fewer_and_nothing_else_changes() -> None:
    text = "tune(n_trial=min(1000, 5), num_measure_trials=3, n=1000)\noptions = {'n_trial': 900, 'early_stopping': 600}"
    assert ast.unparse(FewerTrials(8).visit(ast.parse(text))) == text.replace("900", "8")


def test_a_folder_without_tvm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tvm_files.main([str(tmp_path)])
    assert "give the folder of TVM's sources" in capsys.readouterr().err
