"""Trees that were read from LightGBM's text against LightGBM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansor.codegen import tree_library
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.lightgbm_trees import fast_sums
from ansor.ir.feature_rows import FeatureRows
from tests.cost_model.test_contract import programs

pytestmark = [pytest.mark.lightgbm, pytest.mark.compiler]


def trained(count: int) -> LightGBMModel:
    model = LightGBMModel()
    features, seconds = programs(count)
    model.update(features, seconds, np.zeros(count, np.int64))
    return model


@pytest.mark.parametrize("count", [16, 64, 400])
def test_the_same_bits_as_lightgbm(count: int) -> None:
    (booster,) = trained(count)._learned[0].trees
    rows = np.concatenate([programs(count)[0].rows, programs(300, seed=1)[0].rows, np.zeros((1, 12), np.float32)])
    fast = fast_sums(booster.model_to_string())
    assert fast is not None
    np.testing.assert_array_equal(fast(rows), booster.predict(rows, raw_score=True, num_threads=1))


def test_scores_without_a_compiler_are_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, unseen = trained(100), programs(80, seed=2)[0]
    model.save(tmp_path / "model.json")
    monkeypatch.setattr(tree_library, "_library", lambda: None)
    plain = LightGBMModel.load(tmp_path / "model.json")
    assert fast_sums(plain._base[0].trees[0].model_to_string()) is None
    np.testing.assert_array_equal(plain.predict(unseen), model.predict(unseen))


def test_scores_of_no_program() -> None:
    assert trained(50).predict(FeatureRows(np.zeros((0, 12), np.float32), np.zeros(0, np.int64), 0)).shape == (0,)


@pytest.mark.parametrize("change", [("decision_type=2", "decision_type=3"), ("decision_type=2", "decision_type=10"), ("num_cat=0", "num_cat=1")])
def test_other_decisions_are_left_to_lightgbm(change: tuple[str, str]) -> None:
    text = trained(50)._learned[0].trees[0].model_to_string()
    assert change[0] in text and fast_sums(text) is not None
    assert fast_sums(text.replace(*change)) is None
