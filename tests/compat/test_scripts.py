"""Scripts written for TVM with only their imports changed, run from beginning to end with a few trials."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ansor.auto_scheduler import record as states
from ansor.autotvm import record as configs
from ansor.measure.record import load

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.compiler
@pytest.mark.lightgbm
def test_searching(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / "search_dense.py"))
    ours = folder / "dense.json.ansor.jsonl"
    logged = states.load(folder / "dense.json").records if (folder / "dense.json").exists() else ()
    assert len(logged) + (len(load(ours).records) if ours.exists() else 0) == 6
    said = capsys.readouterr().out
    assert "x = PLACEHOLDER [48, 64]" in said and "out: float32[48, 32] output" in said and " ms True True" in said


@pytest.mark.compiler
@pytest.mark.lightgbm
def test_templates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / "tune_template.py"))
    records = configs.load(folder / "product.log").records
    assert len(records) == 16 and all(record.result.error_no == 0 for record in records)
    assert "tile_y" in capsys.readouterr().out


@pytest.mark.compiler
@pytest.mark.lightgbm
def test_templates_of_two_halves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / "tune_halves.py"))
    records = configs.load(folder / "conv.log").records
    assert len(records) == 8 and any(record.result.error_no == 0 for record in records)
    said = capsys.readouterr().out
    assert "reduce: Reorder(policy=interleave) len=1" in said and "knobs changed at a step: [1]" in said and "right with and without a log" in said


@pytest.mark.compiler
def test_reductions(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPTS / "reductions.py"))
    right, scaled, crossed, tied, alone = capsys.readouterr().out.splitlines()
    assert right == "right: 6"
    assert scaled.startswith("asked for the reduction odd by `((x[] * 2.0) + y[])`; there are sums, ")
    assert crossed.startswith("asked for the reduction odd by `(float32(x0[]) + y1[]), x1[]`; there are sums, ")
    assert tied.startswith("asked for odd, which keeps of equal values that with the smaller `idx[0, r]`; this is supported for sums of axes that grow ")
    assert alone == "asked for odd of 2 expressions; its functions have to give as many, in a tuple"
