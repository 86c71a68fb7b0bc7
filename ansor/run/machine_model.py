"""The model that was fitted to this machine (`ansor doctor --learn`): where it is stored, and when it is used.

It is one file for a target on a processor, in the cache folder, and names them: it is used only for that target on that processor, and only with the version
of the package's model and of the features that it was fitted with. A digest detects damage. Numbers in JSON, no pickle.
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
"""Bytes of a file that is read; what was fitted has about one million."""


@dataclass(frozen=True)
class Fitted:
    """A model of this machine. digest: of its file, in a few digits; about: how it was fitted."""

    model: NetworkModel
    digest: str
    about: Mapping[str, object]


def is_fittable(target: Target) -> bool:
    """Whether a model can be fitted for a target: its programs run on this processor, as what it is, and are timed; and the package's model is a beginning."""
    return target.kind == "cpu" and target.mcpu == "native" and target.is_local and knows(target.prior.family, target.unit.name)


def identity(target: Target) -> dict[str, object]:
    """What a model is fitted to: nothing else may differ where it is used."""
    return {"processor": processor_identity(), "vector_bytes": target.vector_bytes, "threads": target.threads, "target": str(target)}


def version() -> dict[str, object]:
    """What it was fitted with, beside the measurements."""
    return {"package_model": package_version(), "features": FEATURES_VERSION}


def name_of(target: Target) -> str:
    """The processor, its vectors and the threads, fit for the name of a file, and a digest of all that it is for."""
    words = f"{_processor()} {8 * target.vector_bytes} bit {target.threads} threads"
    digest = safe_files.digest(repr(sorted(identity(target).items())).encode())
    return f"{re.sub('[^A-Za-z0-9]+', '-', words).strip('-')[:100]}-{digest[:DIGITS]}"


@lru_cache(maxsize=1)
def _processor() -> str:
    """Read once: where there are many cores that takes milliseconds."""
    return processor_name()


def machine_model(target: Target) -> Fitted | None:
    """The model of this machine for a target, which learns on its own; None where there is none. One that cannot be used is warned of once."""
    if not is_fittable(target):
        return None
    for note in _notes(target):
        try:
            state = note.lstat()
        except OSError:
            continue
        found = _loaded(note, (state.st_mtime_ns, state.st_ino), tuple(identity(target).items()))
        if found is not None:
            return Fitted(found.model.another(), found.digest, found.about)
    return None


def keep_model(target: Target, networks: Sequence[Network], about: Mapping[str, object]) -> Path:
    """Save networks as the model of this machine for a target, in place of an earlier one. Gives the file. Raises CacheError, or OSError on a full disk."""
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
    """Remove the model of this machine for a target; whether there was one. Raises OSError for a folder that cannot be written to."""
    found = [file for note in _notes(target) for file in _files(note)]
    for file in found:
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
    return bool(found)


def _notes(target: Target) -> list[Path]:
    """Where a model may be: what is in a cache that is only read counts, too."""
    try:
        return [folder / FOLDER / name_of(target) for folder in dict.fromkeys((writable_cache(), cache_directory()))]
    except CacheError:  # whatever needs the folder says so
        return []


def _files(note: Path) -> list[Path]:
    return [one for one in (note, *note.parent.glob(f"{note.name}-*{SUFFIX}")) if one.exists() or one.is_symlink()]


@lru_cache(maxsize=8)
def _loaded(note: Path, state: tuple[int, int], wanted: tuple[tuple[str, object], ...]) -> Fitted | None:
    """Read once for each state of the file, so that its warning is said once, too."""
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
        return Fitted(NetworkModel.load(path), safe_files.digest(path.read_bytes())[:DIGITS], about)
    except (AnsorError, OSError, ValueError, RecursionError) as error:
        warn(f"the model of this machine in {path} cannot be used ({error}): {again}")
        return None
