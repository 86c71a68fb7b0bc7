"""The model fitted to this machine (`ansor doctor --learn`): where it is stored, and when it is used.

Each pair of target and processor has one file in the cache folder that names them. It is used only for that target and processor, and only with the versions
of the package's model and features that it was fitted with. A digest detects damage. The file is JSON, without pickles.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ansor.codegen.toolchain import processor_name
from ansor.cost_model.base import read_document
from ansor.cost_model.feature_table import FEATURES_VERSION
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel, write_networks
from ansor.cost_model.pretrained import knows, package_version
from ansor.errors import AnsorError, CacheError
from ansor.measure.machine_identity import processor_identity
from ansor.support import safe_files
from ansor.support.notices import warn
from ansor.support.settings import cache_directory, cache_part, writable_cache
from ansor.targets.base import Target

FOLDER, SUFFIX = "models", ".json.gz"
DIGITS = 8
LARGEST = 64 << 20
"""The largest file that is read, in bytes; a fitted model has about one million."""


@dataclass(frozen=True)
class FittedModel:
    """A model of this machine. digest: a short digest of its file; about: how it was fitted."""

    model: NetworkModel
    digest: str
    about: Mapping[str, object]


def is_fittable(target: Target) -> bool:
    """Whether a model can be fitted for a target: its programs are timed natively on this processor, and the package's model is a starting point."""
    return target.kind == "cpu" and target.mcpu == "native" and target.is_local and knows(target.prior.family, target.unit.name)


def identity(target: Target) -> dict[str, object]:
    """What a model is fitted to; all of it has to match where the model is used."""
    return {"processor": processor_identity(), "vector_bytes": target.vector_bytes, "threads": target.threads, "target": str(target)}


def version() -> dict[str, object]:
    """The versions that it was fitted with, besides the measurements."""
    return {"package_model": package_version(), "features": FEATURES_VERSION}


def name_of(target: Target) -> str:
    """A file name from the processor, its vectors and the threads, with a digest of `identity`."""
    words = f"{_processor()} {8 * target.vector_bytes} bit {target.threads} threads"
    digest = safe_files.digest(repr(sorted(identity(target).items())).encode())
    return f"{re.sub('[^A-Za-z0-9]+', '-', words).strip('-')[:100]}-{digest[:DIGITS]}"


@lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's name, read once: with many cores that takes milliseconds."""
    return processor_name()


def machine_model(target: Target) -> FittedModel | None:
    """A copy of this machine's model for a target, which can learn independently; None when there is none. Warns once about a model that cannot be used."""
    if not is_fittable(target):
        return None
    for note in _notes(target):
        try:
            state = note.lstat()
        except OSError:
            continue
        found = _loaded(note, (state.st_mtime_ns, state.st_ino), tuple(identity(target).items()))
        if found is not None:
            return FittedModel(found.model.another(), found.digest, found.about)
    return None


def keep_model(target: Target, networks: Sequence[Network], about: Mapping[str, object]) -> Path:
    """Save networks as this machine's model for a target, replacing an earlier one; return the file. Raises CacheError, or OSError on a full disk."""
    place = cache_part(FOLDER) / name_of(target)
    before = _files(place)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"model{SUFFIX}"
        write_networks(made, networks, {**about, **identity(target), **version()})
        kept = safe_files.keep(place, SUFFIX, made.read_bytes())
    for old in before:
        if old not in (kept, place):
            old.unlink(missing_ok=True)
    return kept


def forget_model(target: Target) -> bool:
    """Remove this machine's model for a target; return whether there was one. Raises OSError for a folder that cannot be written to."""
    found = [file for note in _notes(target) for file in _files(note)]
    for file in found:
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
    return bool(found)


def _notes(target: Target) -> list[Path]:
    """The places where a model may be, including a read-only cache."""
    try:
        return [folder / FOLDER / name_of(target) for folder in dict.fromkeys((writable_cache(), cache_directory()))]
    except CacheError:  # code that needs the folder reports this
        return []


def _files(note: Path) -> list[Path]:
    return [one for one in (note, *note.parent.glob(f"{note.name}-*{SUFFIX}")) if one.exists() or one.is_symlink()]


@lru_cache(maxsize=8)
def _loaded(note: Path, state: tuple[int, int], wanted: tuple[tuple[str, object], ...]) -> FittedModel | None:
    """The model in a file, read once for each state of the file, so that a warning also appears once."""
    again = "the package's model is used; `ansor doctor --learn MINUTES` fits one again, `--learn 0` removes this one"
    path = safe_files.kept(note, SUFFIX)
    if path is None:
        warn(f"the model of this machine in {note} is damaged, or is not this user's alone: {again}")
        return None
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
        about = read_document(path).get("about")
        if not isinstance(about, dict):
            raise ValueError("it does not name its target")
        wrong = [name for name, value in (*wanted, *version().items()) if about.get(name) != value]
        if wrong:
            warn(f"the model of this machine in {path} was fitted with another {' and '.join(wrong).replace('_', ' ')}: {again}")
            return None
        return FittedModel(NetworkModel.load(path), safe_files.digest(path.read_bytes())[:DIGITS], about)
    except (AnsorError, OSError, ValueError, RecursionError) as error:
        warn(f"the model of this machine in {path} cannot be used ({error}): {again}")
        return None
