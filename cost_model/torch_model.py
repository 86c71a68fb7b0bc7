"""A small segment-sum MLP: each row through three layers to a log time, times added up per program.

Aggregation, target and weights are those of `lightgbm_model`, which says why.

Useful for custom features if LightGBM does not load, and for comparing kinds of models.
Parameters are plain arrays made by a NumPy generator, so training touches no global torch state but the number of threads, which it restores.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import check_width, read_document, write_document
from ansor.cost_model.training_set import LIMIT, TINY, TrainingSet, scores
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = 64
CLIP = 6.0
"""Standard deviations at which a feature is clipped, so that a program unlike all others gets no absurd score."""


class TorchModel:
    """MLP trained for `steps` steps of Adam on batches of `batch` programs; retrained like LightGBMModel by `growth`."""

    def __init__(self, seed: int = 0, steps: int = 300, batch: int = 256, learning_rate: float = 3e-3,
                 growth: float = 0.03) -> None:
        self._seed = seed
        self._steps = steps
        self._batch = batch
        self._learning_rate = learning_rate
        self._growth = growth
        self._data = TrainingSet()
        self._trained_on = 0
        self._width: int | None = None
        self._start: list[NDArray[np.float32]] | None = None  # loaded parameters, where training starts
        self._parameters: list[NDArray[np.float32]] | None = None  # mean, 1/deviation, then weight and bias per layer

    @property
    def fitted(self) -> bool:
        """After the first update with a valid program, or when loaded."""
        return self._parameters is not None

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """See CostModel.update."""
        check_width(features, self._width)
        self._data.add(features, seconds, tasks)
        self._width = features.width
        enough = len(self._data) > self._trained_on * (1 + self._growth)
        if not self._data.any_valid or not enough:
            return
        self._parameters = self._train()
        self._trained_on = len(self._data)

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """See CostModel.predict; zeros before anything is learned."""
        check_width(features, self._width)
        if self._parameters is None or not features.count:
            return np.zeros(features.count)
        import torch

        with one_thread(), torch.no_grad():
            layers = [torch.from_numpy(parameter) for parameter in self._parameters]
            logs = _forward(layers, torch.from_numpy(features.rows))
            return scores(features.prior_logs() + logs.numpy().astype(np.float64), features)

    def save(self, path: Path) -> None:
        """Parameters as base64 of little-endian float32, in a JSON document."""
        parameters = self._parameters or []
        arrays = [[list(array.shape), base64.b64encode(array.astype("<f4").tobytes()).decode()] for array in parameters]
        write_document(path, "torch", {"width": self._width, "parameters": arrays})

    @classmethod
    def load(cls, path: Path, seed: int = 0) -> "TorchModel":
        """A saved model; updates then train on from its parameters."""
        document = read_document(path, "torch")
        arrays, width = document.get("parameters"), document.get("width")
        if not isinstance(arrays, list) or not (width is None or isinstance(width, int)):
            raise CostModelError(f"asked to load {path}; found a header without parameters: save the model again")
        model = cls(seed=seed)
        model._width = width
        if arrays:
            model._start = [np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32).reshape(shape)
                            for shape, text in arrays]
            model._parameters = model._start
        return model

    def _train(self) -> list[NDArray[np.float32]]:
        import torch

        features, slowness, weights = self._data.features(), self._data.slowness(), self._data.weights()
        prior = self._data.shifted(features.prior_logs())
        generator = np.random.default_rng(self._seed)
        start = self._start or _initial_parameters(features, generator)
        with one_thread():
            fixed = [torch.from_numpy(array) for array in start[:2]]
            moving = [torch.from_numpy(array.copy()).requires_grad_() for array in start[2:]]
            optimizer = torch.optim.Adam(moving, lr=self._learning_rate, weight_decay=1e-5)
            for _ in range(self._steps):
                chosen = np.sort(generator.permutation(features.count)[: self._batch])
                part = FeatureRows(features.rows, features.segment, features.count, prior).take(chosen)
                target = torch.from_numpy(slowness[chosen].astype(np.float32))
                weight = torch.from_numpy(weights[chosen].astype(np.float32))
                base = torch.from_numpy(part.prior_logs().astype(np.float32))
                times = torch.exp(torch.clamp(base + _forward([*fixed, *moving], torch.from_numpy(part.rows)), -LIMIT, LIMIT))
                total = torch.zeros(part.count).index_add(0, torch.from_numpy(part.segment), times)
                loss = (weight * (torch.log(total + TINY) - target) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # of torch
                torch.nn.utils.clip_grad_norm_(moving, 0.5)
                optimizer.step()
            return start[:2] + [tensor.detach().numpy() for tensor in moving]


def _initial_parameters(features: FeatureRows, generator: np.random.Generator) -> list[NDArray[np.float32]]:
    mean = features.rows.mean(axis=0, dtype=np.float64)
    deviation = features.rows.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 1e-6 * (1 + np.abs(mean)), 1 / np.maximum(deviation, 1e-30), 0.0)  # 0: a constant carries no information
    parameters = [mean.astype(np.float32), scale.astype(np.float32)]
    for inputs, outputs in ((features.width, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)):
        gain = 2.0 if outputs > 1 else 0.1  # scores start near equal
        weight = generator.normal(0.0, np.sqrt(gain / max(inputs, 1)), (inputs, outputs))
        parameters += [weight.astype(np.float32), np.zeros(outputs, np.float32)]
    return parameters


def _forward(layers: "list[Tensor]", rows: "Tensor") -> "Tensor":
    """Log time of each row, `[r]`."""
    import torch

    mean, scale, first, first_bias, second, second_bias, third, third_bias, last, last_bias = layers
    hidden = torch.clamp((rows - mean) * scale, -CLIP, CLIP)
    hidden = torch.relu(torch.addmm(first_bias, hidden, first))
    hidden = torch.relu(torch.addmm(second_bias, hidden, second))
    hidden = torch.relu(torch.addmm(third_bias, hidden, third)) + hidden
    return torch.addmm(last_bias, hidden, last)[:, 0]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: the result is the same on every machine, and the other cores stay free for measuring."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
