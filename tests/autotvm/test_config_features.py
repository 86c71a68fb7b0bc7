"""Feature vectors of configurations."""

import numpy as np
import pytest

from ansor.autotvm import ConfigSpace
from ansor.compat.autotvm.config_features import ConfigFeatures, feature_rows
from ansor.errors import ConfigError
from tests.autotvm.gemm_task import GemmTask


@pytest.mark.parametrize("feature_type, width", [("itervar", 5 * (18 + 24)), ("curve", 3 * 4 * 20 * 2)])
def test_loop_features_have_the_same_length(feature_type: str, width: int) -> None:
    task = GemmTask()
    found = ConfigFeatures(task, feature_type).of_indices(range(10, 98, 7))
    assert {len(vector) for vector in found if vector is not None} == {width}


def test_impossible_configurations_have_no_features() -> None:
    task = GemmTask()
    features = ConfigFeatures(task, "itervar")
    found = features.of_indices(range(98))
    assert [vector is None for vector in found] == [task.config_space.get(index)["tile_x"].size[-1] == 1 for index in range(98)]
    assert features.of_indices([3, 97, 3])[1] is found[97] and task.instantiated == 98  # each instantiated once


def test_numeric_options_are_features() -> None:
    class Task(GemmTask):
        @property
        def config_space(self) -> ConfigSpace:
            made = super().config_space
            made.define_knob("steps", [0, 16, 64])
            made.define_knob("packed", [False, True])
            return made

    space = Task().config_space
    index = space.knob2point([2, 3, 0, 2, 1])
    (vector,) = ConfigFeatures(Task(), "itervar").of_indices([index])
    assert vector is not None and len(vector) == 210 + 2 and vector[-2:].tolist() == [64, 1]


def test_knobs_need_no_loops() -> None:
    space = ConfigSpace()
    space.define_split("tile", 64, num_outputs=2)
    space.define_knob("n", [1, 5])
    (vector,) = ConfigFeatures(space, "knob").of_indices([10])
    assert vector is not None and vector.tolist() == [-1, 8, 5]


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="the features 'loops' of configurations; types are itervar, knob, curve"):
        ConfigFeatures(GemmTask(), "loops")
    with pytest.raises(ConfigError, match="'itervar' of ConfigSpace, which has no programs; give a task, or feature_type='knob'"):
        ConfigFeatures(ConfigSpace(), "itervar")
    with pytest.raises(ConfigError, match="features of knob 'order'"):
        ConfigFeatures(GemmTask(), "knob").of_indices([0])


def test_rows_are_padded() -> None:
    vectors = [np.array([1, 2, 3], np.float32), None, np.array([4], np.float32)]
    found = feature_rows(vectors, 2)
    assert found.rows.tolist() == [[1, 2], [0, 0], [4, 0]] and found.segment.tolist() == [0, 1, 2] and found.count == 3
