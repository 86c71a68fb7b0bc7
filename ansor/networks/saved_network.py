"""A network in a folder: network.json, the C texts, network.so, and constants.bin, which is mapped into memory and never copied.

A saved network is code: loading one runs it. The digests detect accidental damage, like those of saved kernels. Constants are stored in the layout that the
kernels read, so that processes that load the same folder share their pages.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansor.errors import MeasureError
from ansor.graph.plan import ARENA, CONSTANTS, Call, Check, NetworkPlan, Place, PlacedArray, PlannedKernel, Room
from ansor.measure.saved_kernel import SEAL, sealed
from ansor.support.json_values import brief, told
from ansor.support.safe_files import digest, make_folder, write_whole

VERSION = 1
ABOUT, LIBRARY, CONSTANTS_FILE, PLAN_TEXT, POOL = "network.json", "network.so", "constants.bin", "network.c", "pool.so"
KERNELS = "kernels"


@dataclass(frozen=True)
class SavedNetwork:
    """processor: the one its machine code is for; mcpu: the processor option for compiling again; texts: file names -> C; constants: bytes, or the mapped file;
    pool: the library of the thread pool, for processes without a compiler, b"" for a network of one thread."""

    plan: NetworkPlan
    processor: str
    mcpu: str
    texts: Mapping[str, str]
    library: bytes
    constants: bytes | mmap.mmap
    pool: bytes = b""

    def write(self, folder: Path) -> None:
        """Write all files, network.json last. Raises MeasureError if they cannot be written."""
        files = {name: text.encode() for name, text in self.texts.items()} | {LIBRARY: self.library, CONSTANTS_FILE: bytes(self.constants)}
        files |= {POOL: self.pool} if self.pool else {}
        about = {
            "version": VERSION, "processor": self.processor, "mcpu": self.mcpu, "texts": list(self.texts), "plan": dataclasses.asdict(self.plan),
            "digests": {name: digest(content) for name, content in files.items()},
        }  # fmt: skip
        try:
            make_folder(folder / KERNELS)
            for name, content in files.items():
                write_whole(folder / name, content, 0o755 if name in (LIBRARY, POOL) else 0o644)
            write_whole(folder / ABOUT, (json.dumps(sealed(about), indent=1) + "\n").encode())
        except OSError as error:
            raise MeasureError(f"asked to save a network in {folder}, which cannot be written to ({error.strerror or error}); name another folder") from error


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Inside the `with` block, errors of files that are missing, damaged or of another form become a MeasureError that says what to do."""
    try:
        yield
    except OSError as error:
        other = "it holds a saved kernel, for ansor.Kernel.load" if (folder / "kernel.json").exists() else ""
        other = "it holds a network as C, to be built (docs/networks.md)" if (folder / "network.h").exists() else other
        cure = other or "write one with save() of a compiled network"
        raise MeasureError(f"{folder}: no saved network can be read there: {error}; {cure}") from error
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise MeasureError(f"{folder}: the saved network cannot be read ({type(error).__name__}: {brief(ascii(str(error))[1:-1])}); save it again") from error


def about_in(folder: Path) -> Mapping[str, Any]:
    """What network.json says. Raises MeasureError if it is damaged or of another version; for other errors see `reading`."""
    about = json.loads((folder / ABOUT).read_bytes())
    if not isinstance(about, dict):
        raise ValueError(f"{ABOUT} does not hold an object")
    if about["version"] != VERSION:
        raise MeasureError(f"{folder}: a network in format version {told(about['version'])}, but this package reads {VERSION}; save it again")
    if about[SEAL] != sealed(about)[SEAL]:
        raise MeasureError(f"{folder}: {ABOUT} is damaged; save the network again")
    return about


def network_in(folder: Path, about: Mapping[str, Any]) -> SavedNetwork:
    """The network of which network.json says this. Raises MeasureError if a file is damaged; for other errors see `reading`."""
    names = [*about["texts"], LIBRARY, *([POOL] if POOL in about["digests"] else [])]
    files = {name: (folder / name).read_bytes() for name in names}
    constants = mapped(folder / CONSTANTS_FILE)
    for name in (*names, CONSTANTS_FILE):
        checked(folder, name, files.get(name, constants), about["digests"])
    texts = {name: files[name].decode() for name in about["texts"]}
    return SavedNetwork(plan_of_data(about["plan"]), about["processor"], about["mcpu"], texts, files[LIBRARY], constants, files.get(POOL, b""))


def checked(folder: Path, name: str, content: bytes | mmap.mmap, digests: Mapping[str, str]) -> None:
    """Raises MeasureError unless a file holds what was written to it."""
    if hashlib.sha256(content).hexdigest() != digests[name]:
        raise MeasureError(f"{folder}: {name} is damaged, or was only partly saved; save the network again")


def mapped(path: Path) -> bytes | mmap.mmap:
    """The bytes of a file, read-only. An empty one cannot be mapped."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def plan_of_data(data: Mapping[str, object]) -> NetworkPlan:
    """A plan from its JSON. Raises KeyError, TypeError or ValueError for anything else."""
    held = json.loads(json.dumps(data))  # plain lists and dicts
    kernels = tuple(PlannedKernel(**one) for one in held["kernels"])
    room = Room(**held["room"])
    calls = tuple(Call(one["kernel"], tuple(map(_place, one["places"])), tuple(map(_check, one["checks"]))) for one in held["calls"])
    inputs, outputs = (tuple(map(_placed, held[name])) for name in ("inputs", "outputs"))
    return NetworkPlan(kernels, calls, inputs, outputs, held["results"], room)


def _place(data: Mapping[str, object]) -> Place:
    memory, offset = data["memory"], data["offset"]
    if memory not in (ARENA, CONSTANTS) or not isinstance(offset, int) or offset < 0:
        raise ValueError(f"not a place: {data}")
    return Place(str(memory), offset)


def _placed(data: Mapping[str, object]) -> PlacedArray:
    shape = data["shape"]
    if not isinstance(shape, list):
        raise TypeError(f"not a shape: {shape}")
    return PlacedArray(str(data["name"]), str(data["dtype"]), tuple(map(int, shape)), _place(_object(data["place"])))


def _check(data: Mapping[str, object]) -> Check:
    count, rows = data["count"], data["rows"]
    if not isinstance(count, int) or not isinstance(rows, int):
        raise TypeError(f"not a check: {data}")
    return Check(str(data["name"]), str(data["dtype"]), count, _place(_object(data["place"])), rows)


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"not an object: {value}")
    return value
