"""The interface of cost models: three batched methods, and how models are saved. Start here.

A model scores programs by their feature rows; higher is better. It learns from measured programs, failures included.
"""

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.feature_table import FEATURES_VERSION, WIDTH
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows
from ansor.support.safe_files import write_whole

PACKAGE = "package"
"""Requests the package's model, even if one was fitted to this machine."""

FORMAT = 1
"""Version of the header of a saved model; raised when an older reader would misread the file."""


class CostModel(Protocol):
    """Scores batches of programs. Implementations are deterministic for a seed and a sequence of updates."""

    @property
    def fitted(self) -> bool:
        """Whether scores mean anything yet: after an update with a valid program, or when loaded."""
        ...

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """Learn from measured programs, in addition to all earlier ones.

        `seconds` `[n]`: time of each program, NaN or infinity for a program that failed; `tasks` `[n]`: the task each
        belongs to, as times are only compared within a task. Raises CostModelError if the shapes do not agree.
        """
        ...

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """A finite score per program, `[n]`: about best_seconds_of_task / seconds, so higher is better."""
        ...

    def save(self, path: Path) -> None:
        """Write what `load_model` needs to predict (not the training data). No pickle."""
        ...


def write_document(path: Path, kind: str, content: dict[str, object]) -> None:
    """Save a model atomically as one JSON document with a header, compressed if the name ends in .gz."""
    text = json.dumps({"format": FORMAT, "kind": kind, **content}).encode()
    write_whole(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def read_document(path: Path, kind: str | None = None) -> dict[str, object]:
    """The document `write_document` made. Raises CostModelError if it is missing, foreign or of another `kind`."""
    try:
        found = path.read_bytes()
        document = json.loads(gzip.decompress(found) if path.suffix == ".gz" else found)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise CostModelError(f"asked to load the cost model {path}; found no readable one ({error}): pass a file "
                             "that a cost model's `save` wrote") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CostModelError(f"asked to load the cost model {path}; found no model of format {FORMAT}: save it again "
                             "with this version")
    if kind is not None and document.get("kind") != kind:
        raise CostModelError(f"asked to load {path} as a {kind} model; found kind {document.get('kind')!r}: use "
                             "load_model")
    return document


def features_version(width: int | None) -> int | None:
    """The version of features that a saved model records: that of the package's own, None for others."""
    return FEATURES_VERSION if width == WIDTH else None


def check_features_version(path: Path, document: Mapping[str, object]) -> None:
    """Raises CostModelError for a saved model that learned from another version of the package's own features."""
    width, found = document.get("width"), document.get("features")
    wanted = features_version(width if isinstance(width, int) else None)
    if found != wanted:
        told = f"this is {FEATURES_VERSION}" if found != FEATURES_VERSION else f"and says that it takes {width} of them instead of {WIDTH}"
        raise CostModelError(f"asked to load {path}; it was trained with version {found} of the features, {told}: train it again")


def check_width(asked: FeatureRows, width: int | None) -> None:
    """Called by every predict: rows must be as wide as the ones the model learned from (None = not known yet)."""
    if width is not None and asked.width != width:
        raise CostModelError(f"asked to score rows of {asked.width} features; this model knows {width}: use a model "
                             "trained with this feature version")
