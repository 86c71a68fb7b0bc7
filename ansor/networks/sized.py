"""Networks of a model for several sizes of its inputs, each compiled on first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

import torch

from ansor.errors import ModelError
from ansor.graph.network import CompiledNetwork
from ansor.graph.weights import WeightState
from ansor.networks.model_runs import weights_of
from ansor.networks.planning import check_steps
from ansor.support.forked import Locked

Made = TypeVar("Made")


class SizedNetworks(Locked, ABC, Generic[Made]):
    """What networks for any number of rows and for any length have in common. Calls from several threads take turns.

    `networks`: those compiled so far, by size. Constants that are equal, and packed alike, are stored once.
    """

    MADE_BY: str
    """The function that makes such networks."""
    SIZE: str
    """How a size is told, with {} for the number."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model, self._weights = model, WeightState(weights_of(model))
        self.networks: dict[int, Made] = {}

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """All sizes that calls may need networks of, the smallest first."""

    def __reduce__(self) -> NoReturn:
        raise ModelError(f"asked to copy or pickle a network of {self.MADE_BY}, which is bound to memory of this process; write it with save(), and load it "
                         "with ansor.load where it is needed")  # fmt: skip

    def save(self, folder: str | Path) -> Path:
        """Write the networks of all sizes to a folder, for `ansor.load`; those that no call has needed yet are compiled now. They share one file of constants.

        Raises the errors of `CompiledNetwork.save`, and those of compiling.
        """
        made: dict[int, Made] = {}
        for size in reversed(self.sizes):  # the largest is there, so that a network which cannot be saved is found before others are compiled
            made[size] = self._network(size)
            check_steps(self._plain(made[size]))
        self._save(made, Path(folder))
        return Path(folder)

    def _network(self, size: int) -> Made:
        """The network for a size, compiled if it is the first time."""
        known = self.networks.get(size)
        if known is not None:
            return known
        with self.lock:
            if size not in self.networks:
                if not self._weights.is_of(weights_of(self._model)):
                    told = self.SIZE.format(size)
                    raise ModelError(f"asked to compile the network for {told} after the model's weights have changed; call {self.MADE_BY} again")
                self.networks[size] = self._made(size)
            return self.networks[size]

    @abstractmethod
    def _made(self, size: int) -> Made:
        """Compile the network for a size."""

    @abstractmethod
    def _plain(self, made: Made) -> CompiledNetwork:
        """The compiled network in what was made for a size."""

    @abstractmethod
    def _save(self, networks: dict[int, Made], folder: Path) -> None:
        """Write networks of all sizes."""
