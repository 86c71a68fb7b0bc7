"""Candidates as objects: entry points with their manifests are one, each loop nest another, compiled only if no candidate had it before.

A nest is compiled under the name `STAND_IN`, and gets its name in a candidate by replacing that in the object: the names are equally long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansor.codegen.c_toolchain import apart
from ansor.codegen.identity import code_digests
from ansor.codegen.image.frames import frames, largest_frame
from ansor.codegen.image.kept_objects import KeptObjects, NestObject
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiled
from ansor.codegen.trial.manifest import MANIFEST, program_text

ENTRIES = "entries"
"""The name of the object with the entry points that only call nests. Each has its own sections."""
STAND_IN = "ansor_candidate_any_nest__"
KEPT_BYTES = 64 << 20
"""Some ten thousand nests."""

_kept = KeptObjects(KEPT_BYTES)


@dataclass(frozen=True, slots=True)
class Units:
    """A candidate as translation units. entry: defines `symbol` and the manifest; nests: each defines `STAND_IN`."""

    symbol: str
    entry: str
    nests: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its nests, as the entry calls them."""
        return tuple(_nest_name(self.symbol, number) for number in range(len(self.nests)))


@dataclass(frozen=True, slots=True)
class Objects:
    """A candidate's objects; others may share the first. frame: bytes of stack for its deepest nest and the entry point, or the largest of those in the same
    object; digest: of the machine code, '' if unknown."""

    paths: tuple[Path, ...]
    frame: int
    digest: str


def units_of(source: CSource, symbol: str) -> Units:
    """A candidate as translation units; one if its text has no parts."""
    parts, names = source.apart, list[str]()
    if parts is not None:
        names = [_nest_name(symbol, number) for number in range(len(parts.nests))]
    if parts is None or any(len(name) != len(STAND_IN) for name in names):
        return Units(symbol, _entry_text(source, symbol))
    renamed = "".join(f"#define {nest.name} {name}\n" for nest, name in zip(parts.nests, names, strict=True))
    entry = renamed + _entry_text(replace(source, text=parts.entry), symbol) + "".join(f"#undef {nest.name}\n" for nest in parts.nests)
    return Units(symbol, entry, tuple(nest.text(STAND_IN) for nest in parts.nests))


def compiled_objects(
    candidates: Sequence[Units], folder: Path, compiler: Sequence[str], compiled: Callable[[Sequence[Path]], Compiled]
) -> tuple[Compiled, tuple[Objects, ...]]:
    """The objects of each candidate, in `folder`; none if something does not compile. compiler: all that objects depend on besides their text;
    compiled: makes an object beside each C file."""
    keys = {text: _key(text, compiler) for one in candidates for text in one.nests}
    nests = {text: found for text, key in keys.items() if (found := _kept.get(key)) is not None}
    entries = _entry_files(candidates, folder)
    files = {text: _file(folder / f"nest{number}.c", text) for number, text in enumerate(keys) if text not in nests}
    said = compiled([*dict.fromkeys(entries), *files.values()])
    if not said.ok:
        return said, ()
    for text, file in files.items():
        nests[text] = _nest_object(file.with_suffix(".o"))
        _kept.keep(keys[text], nests[text])
    return said, tuple(_objects(one, file.with_suffix(".o"), nests) for one, file in zip(candidates, entries, strict=True))


def _entry_files(candidates: Sequence[Units], folder: Path) -> list[Path]:
    """The file of each candidate's entry point: one for all that only call their nests, as a compiler takes longer to begin a file than to compile one."""
    shared = folder / f"{ENTRIES}.c"
    if any(one.nests for one in candidates):
        shared.write_text("\n".join(one.entry for one in candidates if one.nests))
    return [shared if one.nests else _file(folder / f"{one.symbol}.c", one.entry) for one in candidates]


def _nest_name(symbol: str, number: int) -> str:
    start = f"{symbol}_nest"
    return f"{start}{number:0{max(1, len(STAND_IN) - len(start))}d}"


def _entry_text(source: CSource, symbol: str) -> str:
    return apart(replace(source, text=program_text(source, small=True)), symbol, MANIFEST)


def _key(text: str, compiler: Sequence[str]) -> str:
    return hashlib.sha256("\0".join((*compiler, text)).encode()).hexdigest()


def _file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _nest_object(path: Path) -> NestObject:
    return NestObject(path.read_bytes(), code_digests(path, [STAND_IN]).get(STAND_IN, ""), sum(frames(path)))


def _objects(one: Units, entry: Path, nests: Mapping[str, NestObject]) -> Objects:
    named = {name: nests[text] for name, text in zip(one.names, one.nests, strict=True)}
    paths = [entry]
    for name, nest in named.items():
        paths.append(entry.with_name(f"{name}.o"))
        paths[-1].write_bytes(nest.content.replace(STAND_IN.encode(), name.encode()))
    digests = {name: nest.digest for name, nest in named.items()}
    digest = code_digests(entry, [one.symbol], digests).get(one.symbol, "") if all(digests.values()) else ""
    return Objects(tuple(paths), largest_frame(entry) + max((nest.frame for nest in named.values()), default=0), digest)
