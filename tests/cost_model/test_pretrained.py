import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ansor.cost_model.base import read_document
from ansor.cost_model.feature_table import FEATURES_VERSION, WIDTH
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import FILES, first_model, knows, learned_targets, package_version, pretrained, weights_of
from ansor.dataset.train import MEMBERS
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows
from ansor.measure.measurer import Measurer
from ansor.run.budget import Budget
from ansor.run.tuning import TuningRun
from ansor.targets.base import parse_target
from ansor.targets.prior import BOARDS, PROCESSORS
from ansor.tasks.task import SearchTask
from ansor.te import workloads


def rows(width: int = WIDTH) -> FeatureRows:
    generator = np.random.default_rng(0)
    return FeatureRows(generator.uniform(0, 8, (6, width)).astype(np.float32), np.array([0, 0, 1, 2, 2, 3]), 4, np.arange(6.0))


@pytest.mark.parametrize("family", FILES)
def test_the_packages_models_are_for_these_features_and_say_how_they_were_made(family: str) -> None:
    document = read_document(weights_of(family), "networks")
    about = document["about"]
    assert isinstance(about, dict) and about["features"] == FEATURES_VERSION and document["width"] == WIDTH
    assert about["held_out"] == "fold 0 of 5 by task" and about["tasks"] >= 150 and about["networks"] == MEMBERS
    assert weights_of(family).stat().st_size < 1_500_000
    assert {parse_target(text).prior.family for text in learned_targets(family)} == {family}


@pytest.mark.compiler
def test_it_serves_where_no_other_model_is_given() -> None:
    task = SearchTask(workloads.matmul, (8, 8, 8), "cpu -threads=1")
    with Measurer() as measurer:
        model = TuningRun([task], measurer=measurer, budget=Budget(1)).model
    assert isinstance(model, NetworkModel) and model.fitted
    np.testing.assert_array_equal(model.predict(rows()), pretrained().predict(rows()))


def test_each_network_has_an_opinion() -> None:
    model, features = pretrained(), rows()
    opinions = model.opinions(features)
    assert opinions.shape == (3, 4) and (opinions > 0).all() and not np.array_equal(opinions[0], opinions[1])


def test_neither_library_of_models_that_learn_anew_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("lightgbm", "torch"):
        monkeypatch.setitem(sys.modules, library, None)
    model, features = NetworkModel.load(weights_of(PROCESSORS)), rows()
    model.update(features, np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4, np.int64))
    assert np.isfinite(model.predict(features)).all()


def test_what_one_run_learns_is_no_business_of_another() -> None:
    features = rows()
    before = pretrained().predict(features)
    pretrained().update(features, np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4, np.int64))
    np.testing.assert_array_equal(pretrained().predict(features), before)


def test_it_learns_on_and_says_the_same_when_loaded(tmp_path: Path) -> None:
    model, features = pretrained(), rows()
    before = model.predict(features)
    model.update(features, np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4, np.int64))
    assert not np.array_equal(model.predict(features), before)
    model.save(tmp_path / "learned.json.gz")
    again = NetworkModel.load(tmp_path / "learned.json.gz")
    np.testing.assert_array_equal(again.predict(features), model.predict(features))
    np.testing.assert_array_equal(again.opinions(features), model.opinions(features))


@pytest.mark.parametrize(("version", "width"), [(FEATURES_VERSION + 1, WIDTH), (FEATURES_VERSION - 1, WIDTH - 5)])
def test_a_model_of_other_features_is_refused(version: int, width: int, tmp_path: Path) -> None:
    document = read_document(weights_of(PROCESSORS)) | {"features": version, "width": width}
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(CostModelError, match=f"was trained with version {version} of the features, this is {FEATURES_VERSION}: train it again"):
        NetworkModel.load(tmp_path / "other.json")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    whole = weights_of(PROCESSORS).read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:2000] + b"x" * 200 + whole[2200:]):
        (tmp_path / "torn.json.gz").write_bytes(damaged)
        with pytest.raises(CostModelError, match="found no readable one"):
            NetworkModel.load(tmp_path / "torn.json.gz")


def test_it_answers_for_what_it_was_trained_on() -> None:
    assert knows(PROCESSORS, "seconds") and isinstance(first_model(PROCESSORS, "seconds"), NetworkModel)
    assert knows(BOARDS, "instructions") and isinstance(first_model(BOARDS, "instructions"), NetworkModel)
    assert not knows(PROCESSORS, "instructions") and not knows(BOARDS, "cycles") and not knows("", "seconds")
    assert package_version(PROCESSORS) != package_version(BOARDS) == package_version(parse_target("micro").prior.family)
    other = first_model("", "instructions")
    assert isinstance(other, LightGBMModel) and other.fitted  # the estimate, before anything is measured
