"""Feature vectors of configurations: of their values, or of the loops that a task's template builds from them. Source: AutoTVM 0.9, `XGBoostCostModel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.base_tuner import HasSpace
from ansor.compat.autotvm.feature import SAMPLES, get_buffer_curve_sample_flatten, get_itervar_feature_flatten
from ansor.errors import AnsorError, ConfigError
from ansor.ir.feature_rows import FeatureRows
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor
from ansor.templates.space import ConfigEntity, ConfigSpace

Vector = NDArray[np.float32]

FEATURE_TYPES = ("itervar", "knob", "curve")
CACHED = 100_000
"""The maximum number of cached vectors; once it is reached, the cache is cleared."""


@runtime_checkable
class Instantiable(Protocol):
    """Makes a schedule and its arguments from a configuration. Raises an AnsorError if that is impossible."""

    def instantiate(self, config: ConfigEntity) -> tuple[Schedule, Sequence[Tensor]]: ...


class ConfigFeatures:
    """Feature vectors of one task's configurations, by index, with a cache.

    itervar and curve: features of loops (`feature`), followed by numeric options; knob: the values themselves, without loops.
    Raises ConfigError for another type, and for itervar or curve on a bare space.
    """

    def __init__(self, task: HasSpace | ConfigSpace, feature_type: str) -> None:
        if feature_type not in FEATURE_TYPES:
            raise ConfigError(f"asked for the features {feature_type!r} of configurations; types are {', '.join(FEATURE_TYPES)}")
        if feature_type != "knob" and not isinstance(task, Instantiable):
            raise ConfigError(f"asked for the features {feature_type!r} of {type(task).__name__}, which has no programs; give a task, or feature_type='knob'")
        self.feature_type = feature_type
        self._task = task
        self._space = task if isinstance(task, ConfigSpace) else task.config_space
        self._known: dict[int, Vector | None] = {}

    def of_indices(self, indices: Sequence[int]) -> list[Vector | None]:
        """One vector per configuration, of any length; None for one that cannot be instantiated."""
        if len(self._known) >= CACHED:
            self._known.clear()
        for index in indices:
            if index not in self._known:
                self._known[index] = self.of_config(self._space.get(index), self._task)
        return [self._known[index] for index in indices]

    def of_config(self, config: ConfigEntity, task: object) -> Vector | None:
        """The vector of a configuration of any task; None if it cannot be instantiated. Raises ConfigError for `knob` and non-numeric options."""
        if self.feature_type == "knob":
            return config.get_flatten_feature()
        if not isinstance(task, Instantiable):
            return None
        try:
            schedule, args = task.instantiate(config)
            config.check()
            loops = _of_loops[self.feature_type](schedule, args)
        except AnsorError:
            return None
        options = [float(value) for value in config.get_other_option().values() if isinstance(value, int | float)]
        return np.concatenate([loops, np.array(options, dtype=np.float32)])


_of_loops: dict[str, Callable[[Schedule, Sequence[Tensor]], Vector]] = {
    "itervar": get_itervar_feature_flatten,
    "curve": lambda schedule, args: get_buffer_curve_sample_flatten(schedule, args, sample_n=SAMPLES),
}


def feature_rows(vectors: Sequence[Vector | None], width: int) -> FeatureRows:
    """One program with a single row per vector: short vectors are padded with zeros, long ones truncated; None gives all zeros."""
    rows = np.zeros((len(vectors), width), dtype=np.float32)
    for row, vector in zip(rows, vectors, strict=True):
        if vector is not None:
            row[: len(vector)] = vector[:width]
    return FeatureRows(rows, np.arange(len(rows)), len(rows))
