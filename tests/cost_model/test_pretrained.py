import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ansor.cost_model.base import default_model, read_document
from ansor.cost_model.feature_table import FEATURES_VERSION, WIDTH
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.pretrained import WEIGHTS, pretrained
from ansor.dataset.train import MEMBERS
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

pytestmark = pytest.mark.lightgbm


def rows(width: int = WIDTH) -> FeatureRows:
    generator = np.random.default_rng(0)
    return FeatureRows(generator.uniform(0, 8, (6, width)).astype(np.float32), np.array([0, 0, 1, 2, 2, 3]), 4, np.arange(6.0))


def test_the_packages_model_is_for_these_features_and_says_how_it_was_made() -> None:
    document = read_document(WEIGHTS, "lightgbm")
    about = document["about"]
    assert isinstance(about, dict) and about["features"] == FEATURES_VERSION and document["width"] == WIDTH
    assert about["held_out"] == "fold 0 of 5 by task" and about["tasks"] >= 150 and about["networks"] == MEMBERS
    assert WEIGHTS.stat().st_size < 1_500_000


def test_it_serves_where_features_are_the_packages_own() -> None:
    model = default_model(informed=True)
    assert isinstance(model, LightGBMModel) and model.fitted
    assert not default_model().fitted
    features = rows()
    np.testing.assert_array_equal(model.predict(features), pretrained().predict(features))


def test_each_network_has_an_opinion() -> None:
    model, features = pretrained(), rows()
    opinions = model.opinions(features)
    assert opinions.shape == (3, 4) and (opinions > 0).all() and not np.array_equal(opinions[0], opinions[1])
    np.testing.assert_array_equal(LightGBMModel(informed=True).opinions(features), LightGBMModel(informed=True).predict(features)[None, :])


def test_networks_serve_without_the_library_that_learning_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pretrained().predict(rows())
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    model = LightGBMModel.load(WEIGHTS)
    np.testing.assert_array_equal(model.predict(rows()), expected)
    with pytest.raises(CostModelError, match="libgomp1"):
        model.update(rows(), np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4, np.int64))


def test_it_learns_on_and_says_the_same_when_loaded(tmp_path: Path) -> None:
    model, features = pretrained(), rows()
    before = model.predict(features)
    model.update(features, np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4, np.int64))
    assert not np.array_equal(model.predict(features), before)
    model.save(tmp_path / "learned.json.gz")
    again = LightGBMModel.load(tmp_path / "learned.json.gz")
    np.testing.assert_array_equal(again.predict(features), model.predict(features))
    np.testing.assert_array_equal(again.opinions(features), model.opinions(features))


@pytest.mark.parametrize(("version", "width"), [(FEATURES_VERSION + 1, WIDTH), (FEATURES_VERSION - 1, WIDTH - 5)])
def test_a_model_of_other_features_is_refused(version: int, width: int, tmp_path: Path) -> None:
    document = read_document(WEIGHTS) | {"features": version, "width": width}
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(CostModelError, match=f"was trained with version {version} of the features, this is {FEATURES_VERSION}: train it again"):
        LightGBMModel.load(tmp_path / "other.json")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    whole = WEIGHTS.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:2000] + b"x" * 200 + whole[2200:]):
        (tmp_path / "torn.json.gz").write_bytes(damaged)
        with pytest.raises(CostModelError, match="found no readable one"):
            LightGBMModel.load(tmp_path / "torn.json.gz")
