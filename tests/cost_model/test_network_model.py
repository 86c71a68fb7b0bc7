from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.network_library import Layers, Scaling
from ansor.cost_model.kriging import fit_kriging
from ansor.cost_model.metrics import pairwise_accuracy
from ansor.cost_model.network import Network, rounded
from ansor.cost_model.network_model import MOST, NetworkModel, _fastest
from ansor.errors import CostModelError
from tests.cost_model.test_contract import programs

WIDTH = 12


def network(seed: int) -> Network:
    """One of chance: it tells programs apart, and knows nothing of their times."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return (0.3 * rng.standard_normal(shape)).astype(np.float32)

    first = draw(WIDTH, 32) * np.where(np.arange(WIDTH) < 4, 1, 0.1).astype(np.float32)[:, None]
    inputs = Scaling(np.full(WIDTH, 4, np.float32), np.full(WIDTH, 0.5, np.float32))
    layers = Layers(inputs, first, draw(32), draw(2, 32, 32), draw(2, 32), 0.2 * draw(32), 0.0, 4.0)
    return Network(rounded(layers))


def test_what_is_measured_corrects_programs_like_it() -> None:
    model = NetworkModel([network(0), network(1)])
    features, seconds = programs(400)
    unseen, truth = programs(200, seed=1)
    before = pairwise_accuracy(truth.min() / truth, model.predict(unseen))
    model.update(features, seconds, np.zeros(400, np.int64))
    after = pairwise_accuracy(truth.min() / truth, model.predict(unseen))
    assert after > before + 0.05 and after > 0.65


def test_a_task_says_nothing_about_how_fast_another_is() -> None:
    features, seconds = programs(120)
    tasks = np.arange(120) % 2
    one, other = (NetworkModel([network(0)]) for _ in range(2))
    one.update(features, np.where(tasks == 1, seconds * 1024, seconds), tasks)
    other.update(features, seconds, tasks)
    np.testing.assert_allclose(one.predict(features), other.predict(features), rtol=1e-4)


def test_all_members_are_corrected_alike() -> None:
    model = NetworkModel([network(0), network(1)])
    features, seconds = programs(40)
    before = model.opinions(features)
    assert before.shape == (2, 40) and not np.array_equal(before[0], before[1])
    model.update(features, seconds, np.zeros(40, np.int64))
    corrected = model.opinions(features) / before
    np.testing.assert_allclose(corrected[0], corrected[1])
    assert corrected.std() > 0.01


def test_what_fails_is_avoided_and_does_not_hide_the_rest() -> None:
    model = NetworkModel([network(0)])
    features, seconds = programs(100)
    failed = np.arange(100) % 2 == 0
    before = model.predict(features)
    model.update(features, np.where(failed, np.inf, seconds), np.zeros(100, np.int64))
    gained = np.log(model.predict(features) / before)
    assert gained[failed].mean() < gained[~failed].mean() - 1
    none = NetworkModel([network(0)])
    none.update(features, np.full(100, np.nan), np.zeros(100, np.int64))
    np.testing.assert_array_equal(none.predict(features), before)


def test_another_knows_the_same_and_learns_on_its_own() -> None:
    model = NetworkModel([network(0)])
    features, seconds = programs(40)
    model.update(features, seconds, np.zeros(40, np.int64))
    another = model.another()
    known = model.predict(features)
    np.testing.assert_array_equal(another.predict(features), known)
    another.update(features, seconds[::-1], np.zeros(40, np.int64))
    np.testing.assert_array_equal(model.predict(features), known)
    assert not np.array_equal(another.predict(features), known)


def test_what_is_left_out_without_corrections_changes_no_bit() -> None:
    model, (features, _) = NetworkModel([network(0), network(1)]), programs(20)
    members, points = model._described(features)
    assert (members == model._members(features)).all() and (model._correct(points) == 0).all()


def test_a_program_scores_the_same_whatever_stands_beside_it() -> None:
    model = NetworkModel([network(0), network(1)])
    features, seconds = programs(60)
    model.update(features, seconds, np.zeros(60, np.int64))
    together = model.predict(features)
    for k in (0, 7, 59):
        assert model.predict(features.take(np.array([k])))[0] == together[k]


def test_of_too_many_the_fastest_of_each_task_are_kept() -> None:
    tasks, slowness = np.array([0, 0, 0, 1, 1, 2]), np.array([0.0, 2.0, 1.0, 3.0, 0.0, 0.0])
    assert _fastest(slowness, tasks, 3).tolist() == [0, 4, 5]
    assert _fastest(slowness, tasks, 5).tolist() == [0, 2, 3, 4, 5]
    assert _fastest(slowness, tasks, MOST).tolist() == list(range(6))


def test_a_model_without_networks_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs one"):
        NetworkModel([])
    with pytest.raises(ValueError, match="32 units"):
        NetworkModel([network(0)], [fit_kriging(np.zeros((2, 5), np.float32), np.zeros(2), np.ones(2))])
    NetworkModel([network(0)]).save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    for wrong in (text.replace('"corrections": []', '"corrections": [{}]'), text.replace('"networks": [{', '"networks": [], "other": [{')):
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(CostModelError, match="damaged model"):
            NetworkModel.load(tmp_path / "wrong.json")
