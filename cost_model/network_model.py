"""Networks trained on many operators, corrected by new measurements during use: the default cost model.

A network corrects the estimated log time of each statement; times add up over statements, and a program's score is 1 / their sum. The networks' errors
on the programs measured so far, compared within each task, are carried over to similar programs (`kriging`). Two programs are similar
if the first network's output consists of the same parts, each statement weighted by its share of the time: the network's own distinctions count.

Why not trees that learn on top: from few programs they learn worse than nothing. docs/cost_model.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.network_library import distinct
from ansor.cost_model.base import check_features_version, check_width, features_version, read_document, write_document
from ansor.cost_model.kriging import Kriging, Points, fit_kriging, kriging_from_document
from ansor.cost_model.network import Network, network_from_document
from ansor.cost_model.shared_loops import without_shared_loops
from ansor.cost_model.training_set import TrainingSet, means, scores
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

KIND = "networks"

MOST = 2048
"""The most programs to carry errors over from; of more, the fastest of each task, equally many of each."""

FARTHEST = 2.0
"""Errors are clipped to this, in log time: those of failed programs, or of ones the networks did not understand at all."""

DECIMALS = 6
"""Corrections are rounded to this, so that the order of a sum does not matter."""


class NetworkModel:
    """networks: one or more members for rows of the same width, whose outputs are averaged. corrections: earlier ones.

    Raises ValueError without a network, and for corrections whose points do not match the first network's parts.
    """

    def __init__(self, networks: Sequence[Network], corrections: Sequence[Kriging] = ()) -> None:
        if not networks:
            raise ValueError("a model of networks needs one")
        units = len(networks[0].layers.last)
        if any(one.points.shape[1] != units for one in corrections):
            raise ValueError(f"corrections of a network of {units} units are for points of as many dimensions")
        self._networks = tuple(networks)
        self._earlier = tuple(corrections)
        self._correction: Kriging | None = None
        self._data = TrainingSet()
        self._points: list[Points] = []
        self._logs: list[NDArray[np.float64]] = []

    @property
    def networks(self) -> tuple[Network, ...]:
        """The members, without corrections."""
        return self._networks

    @property
    def fitted(self) -> bool:
        """Always: networks are useful before anything is measured."""
        return True

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """See CostModel.update."""
        check_width(features, self._networks[0].width)
        self._data.add(features, seconds, tasks)
        if not features.count:
            return
        members, points = self._described(features)
        logs = members.mean(axis=0)
        self._points.append(points)
        self._logs.append(self._totals(logs, points, features))
        if self._data.any_valid:
            self._correction = self._carried_over()

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """See CostModel.predict."""
        check_width(features, self._networks[0].width)
        if not self._corrections():
            return scores(self._members(features).mean(axis=0), features)
        members, points = self._described(features)
        return scores(members.mean(axis=0), features) * np.exp(-self._correct(points))

    def opinions(self, features: FeatureRows) -> NDArray[np.float64]:
        """Scores by each network alone, with the same corrections, `[networks, n]`."""
        if not self._corrections():
            return np.array([scores(logs, features) for logs in self._members(features)])
        members, points = self._described(features)
        correction = np.exp(-self._correct(points))
        return np.array([scores(logs, features) * correction for logs in members])

    def _corrections(self) -> Sequence[Kriging]:
        return self._earlier if self._correction is None else (*self._earlier, self._correction)

    def save(self, path: Path) -> None:
        """Write networks and corrections to a JSON document."""
        write_networks(path, self._networks, corrections=self._corrections())

    @classmethod
    def load(cls, path: Path) -> NetworkModel:
        """Load a saved model; updates then correct it further."""
        document = read_document(path, KIND)
        check_features_version(path, document)
        try:
            networks, corrections = document["networks"], document["corrections"]
            if not isinstance(networks, list) or not isinstance(corrections, list):
                raise ValueError("no list of networks")
            return cls([*map(network_from_document, networks)], [*map(kriging_from_document, corrections)])
        except (KeyError, TypeError, ValueError) as error:
            raise CostModelError(f"asked to load {path}; found a damaged model ({error}): save it again") from error

    def another(self) -> NetworkModel:
        """An independent copy that learns on its own."""
        return NetworkModel(self._networks, self._corrections())

    def _rows(self, features: FeatureRows) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The distinct feature rows as shown to the networks, and the index of each row among them."""
        return distinct(without_shared_loops(features.rows, self._networks[0].layers.inputs))

    def _members(self, features: FeatureRows) -> NDArray[np.float64]:
        """Log time of each row by each network, `[networks, r]`."""
        rows, places = self._rows(features)
        members: NDArray[np.float64] = features.prior_logs() + np.array([network(rows)[places] for network in self._networks])
        return members

    def _described(self, features: FeatureRows) -> tuple[NDArray[np.float64], Points]:
        """Log time of each row by each network, `[networks, r]`, and each program's point: the parts of the first network's output, `[n, units]`."""
        rows, places = self._rows(features)
        first, parts = self._networks[0].in_parts(rows)
        members = features.prior_logs() + np.array([first[places], *(network(rows)[places] for network in self._networks[1:])])
        logs, parts = members.mean(axis=0), parts[places]
        points = np.zeros((features.count, parts.shape[1]), np.float32)
        if len(rows):
            present, begin = np.unique(features.segment, return_index=True)
            times = np.exp(logs - np.maximum.reduceat(logs, begin)[np.searchsorted(present, features.segment)])
            share = times / features.sums(times)[features.segment]
            points[present] = np.add.reduceat(parts * share[:, None].astype(np.float32), begin, axis=0)
        return members, points

    def _totals(self, logs: NDArray[np.float64], points: Points, features: FeatureRows) -> NDArray[np.float64]:
        """Log time of each program by the networks and all earlier corrections, `[n]`."""
        earlier = sum((one(points) for one in self._earlier), np.zeros(features.count))
        return -np.log(np.maximum(scores(logs, features), 1e-300)) + earlier

    def _correct(self, points: Points) -> NDArray[np.float64]:
        """Log time to add for each program, `[n]`."""
        return sum((one(points) for one in self._corrections()), np.zeros(len(points))).round(DECIMALS)

    def _carried_over(self) -> Kriging:
        slowness, weights, tasks = self._data.slowness(), self._data.weights(), self._data.members()
        errors = slowness - np.concatenate(self._logs)
        errors -= means(errors, np.where(self._data.valid(), weights, 1e-3), tasks)[tasks]
        chosen = _fastest(slowness, tasks, MOST)
        self._points = [np.concatenate(self._points)]
        return fit_kriging(self._points[0][chosen], np.clip(errors[chosen], -FARTHEST, FARTHEST), weights[chosen])


def write_networks(path: Path, networks: Sequence[Network], about: Mapping[str, object] | None = None, corrections: Sequence[Kriging] = ()) -> None:
    """Save a model that `NetworkModel.load` reads. about: how it was made, for information."""
    width = networks[0].width
    write_document(path, KIND, {
        "about": dict(about or {}), "width": width, "features": features_version(width), "networks": [network.document() for network in networks],
        "corrections": [one.document() for one in corrections],
    })  # fmt: skip


def _fastest(slowness: NDArray[np.float64], tasks: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Indices of at most `most` programs, ascending: the fastest of each task, tasks taking turns."""
    if len(tasks) <= most:
        return np.arange(len(tasks))
    order = np.lexsort((slowness, tasks))
    rank = np.empty(len(tasks), np.int64)
    rank[order] = np.arange(len(tasks)) - np.searchsorted(tasks[order], tasks[order])
    return np.sort(np.lexsort((np.arange(len(tasks)), rank))[:most])
