"""Cost models of states, under TVM's names: `XGBModel` is the model that ships with the package. Source: TVM 0.9, `auto_scheduler.cost_model`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ansor.compat.auto_scheduler.declared_task import DeclaredTask, recovered
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.record import RecordReader
from ansor.cost_model.base import CostModel, read_document, write_document
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.random_model import RandomModel as OurRandomModel
from ansor.cost_model.saved import load_model
from ansor.errors import AnsorError, CostModelError
from ansor.ir.feature_rows import FeatureRows, join
from ansor.run.scoring_model import GIVEN, PACKAGES
from ansor.schedule.matching import found_among
from ansor.tasks.sketch_space import SketchSpace

Scores = NDArray[np.float64]


class PythonBasedModel:
    """Base class for models that score states: override `predict`, and `update` if the model learns. Higher scores are better. Tasks are `SearchTask`s."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements, in addition to all earlier ones."""

    def predict(self, task: Any, states: Sequence[State]) -> Sequence[float] | Scores:
        """Return a score for each state."""
        raise NotImplementedError

    def predict_stages(self, task: Any, states: Sequence[State]) -> Sequence[float]:
        """Scores of single stages. Not used here."""
        raise NotImplementedError


class _FeatureModel:
    """Scores states by the features of their programs. `model` is the same model as our search takes it, `called` its name in reports."""

    def __init__(self, model: CostModel, called: str = GIVEN) -> None:
        self.model, self.called = model, called
        self._tasks: dict[str, int] = {}

    def predict(self, task: DeclaredTask, states: Sequence[State]) -> Scores:
        """A score for each state; -inf for one without a program."""
        programs = [features_of(task, state) for state in states]
        known = [one for one in programs if one is not None]
        scores = iter(self.model.predict(join(known)).tolist() if known else [])
        return np.array([-np.inf if one is None else next(scores) for one in programs])

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements. Ignores those without a program."""
        features, seconds, numbers = [], [], []
        for inp, result in zip(inputs, results, strict=True):
            try:
                whole = recovered(inp, rebuild_state=True)
            except AnsorError:
                continue
            assert isinstance(whole.task, DeclaredTask) and isinstance(whole.state, State)
            found = features_of(whole.task, whole.state)
            if found is not None:
                features.append(found)
                seconds.append(result.mean_cost)
                numbers.append(self._tasks.setdefault(whole.task.workload_key, len(self._tasks)))
        if features:
            self._learn(join(features), np.array(seconds), np.array(numbers))

    def _learn(self, features: FeatureRows, seconds: Scores, numbers: NDArray[np.int64]) -> None:
        self.model.update(features, seconds, numbers)

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> None:
        """Learn from the first `n_lines` records of a log."""
        pairs = list(islice(iter(RecordReader(file_name)), n_lines))
        self.update([inp for inp, _ in pairs], [result for _, result in pairs])

    def save(self, file_name: str | Path) -> None:
        """Write the model. The file is not a pickle."""
        self.model.save(Path(file_name))

    def load(self, file_name: str | Path) -> None:
        """Restore a saved model. Raises CostModelError for any other file."""
        self.model, self.called = load_model(Path(file_name)), GIVEN


class RandomModel(_FeatureModel):
    """Scores states at random."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(OurRandomModel(seed))


class XGBModel(_FeatureModel):
    """The model that ships with the package, corrected by measurements. Once a task is measured, scores are about its best seconds / seconds.

    verbose_eval, num_warmup_sample, seed, adaptive_training: accepted for compatibility and ignored. This model prints nothing, is trained from the start, is
    deterministic, and learns from every round.
    model_file: a saved model to start from.
    """

    def __init__(
        self, verbose_eval: int = 25, num_warmup_sample: int = 100, seed: int | None = None, model_file: str | Path | None = None,
        adaptive_training: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(pretrained(), PACKAGES)
        self._levels: dict[str, tuple[float, float]] = {}
        if model_file is not None:
            self.load(model_file)

    def predict(self, task: DeclaredTask, states: Sequence[State]) -> Scores:
        """A score for each state; -inf for one without a program."""
        best, level = self._levels.get(task.workload_key, (1.0, 1.0))
        return super().predict(task, states) * best * level

    def save(self, file_name: str | Path) -> None:
        """Write the model. The file is not a pickle."""
        super().save(file_name)
        content = read_document(Path(file_name))
        write_document(Path(file_name), str(content["kind"]), {**content, "levels": self._levels})

    def load(self, file_name: str | Path) -> None:
        """Restore a saved model. Raises CostModelError for any other file."""
        super().load(file_name)
        levels = cast("dict[str, tuple[float, float]]", read_document(Path(file_name)).get("levels", {}))
        try:
            self._levels = {key: (float(best), float(level)) for key, (best, level) in levels.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise CostModelError(f"asked to load {file_name}; found a damaged model ({error}): save it again") from error

    def _learn(self, features: FeatureRows, seconds: Scores, numbers: NDArray[np.int64]) -> None:
        """Learn, and store what relates the unitless scores of each task to its times: the best seconds, and a factor."""
        super()._learn(features, seconds, numbers)
        valid, scores = np.isfinite(seconds), self.model.predict(features)
        for key, number in self._tasks.items():
            own = valid & (numbers == number)
            if own.any():
                best = min(self._levels.get(key, (np.inf, 1.0))[0], float(seconds[own].min()))
                self._levels[key] = best, float(np.exp(-np.log(scores[own] * seconds[own]).mean()))


Model = _FeatureModel | PythonBasedModel


def features_of(task: DeclaredTask, state: State) -> FeatureRows | None:
    """The features of a state's program; None if no processor can run it, or a length is open."""
    try:
        program = task.compute_dag.replay(state, task.layout_rewrite_option).sketch
        if program.choices:
            return None
        found = found_among(program, [space.sketch for space in task.local.spaces])
        if found is not None:  # the space has recorded its features
            space, row = task.local.spaces[found[0]], found[1]
            return space.features(np.array([row], np.int64).reshape(1, len(row)))
        return SketchSpace(program, task.local_target).features(np.zeros((1, 0), np.int64))
    except AnsorError:
        return None
