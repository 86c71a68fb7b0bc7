"""The model of this machine: kept, found, refused for anything else, and never read as anything but numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.cost_model.base import PACKAGE
from ansor.cost_model.pretrained import pretrained
from ansor.errors import AnsorWarning, ArgumentError
from ansor.measure.measurer import Measurer
from ansor.measure.record import MODEL, load
from ansor.run import machine_model as module
from ansor.run.budget import Budget
from ansor.run.keywords import NetworkKeywords, RunOptions
from ansor.run.machine_model import SUFFIX, forget_model, is_fittable, keep_model, machine_model, name_of
from ansor.run.options import Trials
from ansor.run.reporter import Callbacks
from ansor.run.scoring_model import scoring_model
from ansor.run.tuning import TuningRun
from ansor.run.zero_tuning import pick
from ansor.support import safe_files
from ansor.targets.base import LOCAL, parse_target
from ansor.tasks.task import SearchTask
from tests.run.test_tuning import FakeMeasurer

TARGET = parse_target("cpu -threads=1")
NETWORKS = pretrained().networks[:1]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path / "cache"))
    module._loaded.cache_clear()
    yield tmp_path / "cache"
    module._loaded.cache_clear()


def kept_model() -> Path:
    return keep_model(TARGET, NETWORKS, {"programs": 7})


def test_what_is_kept_judges_from_then_on_until_it_is_forgotten(cache: Path) -> None:
    assert scoring_model(TARGET, "seconds").name == "the package's model"
    path = kept_model()
    scorer = scoring_model(TARGET, "seconds")
    assert scorer.name == "the model of this machine" and scorer.mark.startswith("machine ") and scorer.model.fitted
    assert path.is_relative_to(cache) and "-1-threads-" in path.name and path.name.endswith(".json.gz")
    assert kept_model() == path and len(list(path.parent.iterdir())) == 2, "the earlier one is replaced"
    assert scoring_model(TARGET, "seconds", PACKAGE).name == "the package's model"
    assert scoring_model(TARGET, "seconds", pretrained()).mark == "given: NetworkModel"
    assert forget_model(TARGET) and not list(path.parent.iterdir()) and not forget_model(TARGET)
    assert scoring_model(TARGET, "seconds").name == "the package's model"


def test_it_serves_no_other_target_unit_device_or_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_model()
    for text in ("cpu -threads=2", "cpu -threads=1 -l2=128K", "cpu -threads=1 -mcpu=znver3", "arm -mcpu=cortex-a72"):
        other = parse_target(text)
        assert machine_model(other) is None and "machine" not in scoring_model(other, "seconds").mark
    assert scoring_model(TARGET, "seconds", here=False).name == "the package's model"
    assert scoring_model(TARGET, "instructions").mark == "estimate"
    assert not is_fittable(replace(TARGET, mcpu="znver3"))
    monkeypatch.setattr(module, "processor_identity", lambda: "another processor")
    assert machine_model(TARGET) is None


def test_a_file_under_anothers_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "name_of", lambda target: "one-name-for-all")
    kept_model()
    with pytest.warns(AnsorWarning, match="was fitted with another threads and target: the package's model is used"):
        assert machine_model(parse_target("cpu -threads=2")) is None
    assert machine_model(TARGET) is not None


@pytest.mark.parametrize(("name", "value", "words"), [("FEATURES_VERSION", 4, "features"), ("package_version", lambda: "0" * 8, "package model")])
def test_another_version_is_ignored_with_one_warning(name: str, value: object, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_model()
    monkeypatch.setattr(module, name, value)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [machine_model(TARGET) for _ in range(3)] == [None] * 3
    assert len(said) == 1 and f"was fitted with another {words}" in str(said[0].message)


@given(st.integers(0, 10**6), st.integers(1, 255), st.sampled_from(["flip", "cut", "empty", "note"]))
def test_a_damaged_file_is_ignored_with_one_warning(tmp_path_factory: pytest.TempPathFactory, place: int, bits: int, how: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANSOR_CACHE", str(tmp_path_factory.mktemp("fuzz")))
        path = kept_model()
        file = path if how != "note" else path.with_name(name_of(TARGET))
        content = bytearray(file.read_bytes())
        at = place % min(len(content), 64 if how == "note" else len(content))
        content[at] ^= bits
        file.write_bytes({"cut": bytes(content[:at]), "empty": b""}.get(how, bytes(content)))
        module._loaded.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = [machine_model(TARGET) for _ in range(2)]
    assert found == [None, None] and len(said) == 1 and "the package's model is used" in str(said[0].message)


def rewritten(content: bytes) -> None:
    """What somebody else's program put there, with a digest that fits."""
    path = kept_model()
    safe_files.keep(path.with_name(name_of(TARGET)), SUFFIX, content)


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"{}", Path(__file__).read_bytes()])
def test_a_whole_file_of_something_else_is_ignored(content: bytes) -> None:
    rewritten(content)
    with pytest.warns(AnsorWarning, match="cannot be used"):
        assert machine_model(TARGET) is None


def test_runs_say_and_note_which_model_chose(tmp_path: Path) -> None:
    task, measurer, lines = SearchTask("matmul", (8, 8, 8), TARGET), FakeMeasurer(), list[str]()
    scorer = scoring_model(TARGET, "seconds")
    for fitted in (False, True):
        if fitted:
            kept_model()
        records = tmp_path / f"{fitted}.jsonl"
        run = TuningRun([task], measurer=measurer, budget=Budget(2), trials=Trials(records), callbacks=Callbacks(lines.append))  # type: ignore[arg-type]  # a fake
        run.run()
    assert "chosen by the package's model" in lines[0] and "chosen by the model of this machine" in lines[-1]
    noted = [dict(load(tmp_path / f"{fitted}.jsonl").headers[0].machine)[MODEL] for fitted in (False, True)]
    assert noted == [scorer.mark, scoring_model(TARGET, "seconds").mark] and noted[1].startswith("machine ")


def test_runs_elsewhere_or_for_several_targets_do_not_use_it() -> None:
    kept_model()
    here, elsewhere = FakeMeasurer(), FakeMeasurer()
    elsewhere.is_here = False  # its model may be "local", too
    one, other = SearchTask("matmul", (8, 8, 8), TARGET), SearchTask("matmul", (8, 8, 8), parse_target("cpu -threads=2"))
    for measurer, tasks in ((elsewhere, [one]), (here, [one, other])):
        run = TuningRun(tasks, measurer=measurer, budget=Budget(1))  # type: ignore[arg-type]  # a fake
        assert run.scorer.name == "the package's model"


@pytest.mark.compiler
def test_what_is_picked_without_measuring_says_which_model_picked() -> None:
    kept_model()
    task = SearchTask("matmul", (8, 8, 8), TARGET)
    assert pick(task).how == "chosen by the model of this machine" and pick(task, PACKAGE).how == "chosen by the package's model"


def test_other_words_than_package_are_refused() -> None:
    with pytest.raises(ArgumentError, match="asked for model='mine'; give a cost model, .* or 'package' for the package's own"):
        RunOptions.of({"trials": 0}, "mine")
    with pytest.raises(ArgumentError, match="asked for cost_model='mine'"):
        asked: NetworkKeywords = {"trials": 0, "cost_model": "mine"}  # type: ignore[typeddict-item]  # on purpose
        RunOptions.of(asked, asked["cost_model"])
    assert RunOptions.of({"trials": 0}, "package").search.model == PACKAGE


@pytest.mark.compiler
def test_a_measurer_knows_whether_it_is_here() -> None:
    with Measurer(TARGET) as measurer:
        assert measurer.is_here
        measurer.devices[0].name = "farm://host:1"  # type: ignore[misc]  # a slot of a farm, whose devices are "local" where they are
        assert measurer.model == LOCAL and not measurer.is_here
