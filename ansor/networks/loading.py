"""Loads saved networks, without PyTorch."""

from __future__ import annotations

from pathlib import Path

from ansor.networks.loaded_network import LoadedNetwork, loaded
from ansor.networks.loaded_sizes import LoadedBatches, LoadedLengths, LoadedSizes
from ansor.networks.saved_network import SavedNetwork
from ansor.networks.saved_sizes import read
from ansor.support.names import known_names


@known_names()
def load(folder: str | Path) -> LoadedNetwork | LoadedSizes:
    """Load a network that `save` wrote, of `compile`, `compile_batches` or `compile_lengths`. It is code, which is run. On another processor it is built again
    from its C, once.

    Raises MeasureError if it is missing, damaged, of another version, or cannot be built for this processor.
    """
    place = Path(folder)
    saved = read(place)
    if isinstance(saved, SavedNetwork):
        return loaded(saved, place)
    return LoadedLengths(saved, place) if saved.paddings else LoadedBatches(saved, place)
