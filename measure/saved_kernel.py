"""A kernel as four files: kernel.c, kernel.so, constants.npz, and kernel.json, which describes them and holds their digests.

A saved kernel is code: loading one runs it. The digests guard against accidents (a power loss, a partial copy): a truncated library would kill the
process that loads it. None of the files names a program to start.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument, CSource
from ansor.errors import MeasureError
from ansor.support.json_values import brief, told
from ansor.support.safe_files import digest, make_folder, write_whole

VERSION = 2  # 1 had no digests
FILES = ("kernel.c", "kernel.so", "constants.npz")
POOL = "pool.so"
"""The thread pool of kernels that use several threads, so that they run without a compiler. Kernels saved by earlier versions do not have this file."""
ABOUT = "kernel.json"
SEAL = "digest"
"""The field of kernel.json with its own digest."""

T = TypeVar("T")
Files = dict[str, bytes]
"""Contents by name."""


@dataclass(frozen=True)
class Facts:
    """What is known about a kernel. mcpu: the processor that it was made for; ranges: (low, high) of inputs that need other values than usual, such as
    indices."""

    latency_s: float | None
    schedule: str
    origin: str
    name: str = ""
    mcpu: str = "native"
    ranges: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True)
class SavedKernel:
    """The parts of a kernel: its C text and how to call it, the library with its entry point, bound constants by name, and facts about it."""

    source: CSource
    symbol: str
    library: bytes
    constants: Mapping[str, NDArray[np.generic]]
    facts: Facts

    def files(self, pool: bytes = b"") -> Files:
        """The four files, and `POOL` if there is one."""
        held = io.BytesIO()
        np.savez(held, *self.constants.values(), allow_pickle=False)
        files = {"kernel.c": self.source.text.encode(), "kernel.so": self.library, "constants.npz": held.getvalue()}
        files |= {POOL: pool} if pool else {}
        about = {
            "version": VERSION, "entry": self.source.entry, "symbol": self.symbol,
            "arguments": [argument.to_data() for argument in self.source.arguments], "constants": list(self.constants),
            "workspace_bytes": self.source.workspace_bytes, "threads": self.source.threads,
            **asdict(self.facts),
            "digests": {name: digest(content) for name, content in files.items()},
        }  # fmt: skip
        return {**files, ABOUT: (json.dumps(sealed(about), indent=1) + "\n").encode()}


def sealed(about: Mapping[str, object]) -> dict[str, object]:
    """The contents of kernel.json, with the digest of its other fields."""
    rest = {name: value for name, value in about.items() if name != SEAL}
    return {**rest, SEAL: digest(json.dumps(json.loads(json.dumps(rest)), sort_keys=True).encode())}  # as it is read: JSON's keys are text


def write(files: Files, folder: Path) -> None:
    """Write the files, kernel.json last. Raises MeasureError if they cannot be written."""
    try:
        make_folder(folder)
        for name in (*_code(files), ABOUT):
            write_whole(folder / name, files[name], 0o755 if name.endswith(".so") else 0o644)
    except OSError as error:
        raise MeasureError(f"asked to save a kernel in {folder}, which cannot be written to ({error.strerror or error}); name another folder") from error


def _code(files: Files) -> list[str]:
    """All names but the description's, which is written last."""
    return [name for name in files if name != ABOUT]


def pool_of(files: Files) -> bytes:
    """The thread pool that an `opened` kernel brings along; b"" for none, or if the file is not this kernel's."""
    return files[POOL] if POOL in json.loads(files[ABOUT])["digests"] else b""


def read(folder: Path) -> Files:
    """The files of a folder. Raises MeasureError if one is missing."""
    try:
        names = (ABOUT, *FILES, *([POOL] if (folder / POOL).exists() else []))
        return {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        cure = "it holds a saved network, for ansor.load" if (folder / "network.json").exists() else "write one with Kernel.save"
        raise MeasureError(f"{folder}: no saved kernel can be read there: {error}; {cure}") from error


def opened(files: Files, where: str) -> SavedKernel:
    """Parse the files. `where`: where they are, for messages. Raises MeasureError unless they are intact and of this version."""
    try:
        return _opened(files, where)
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, EOFError, RecursionError, OSError, BadZipFile, zlib.error) as error:
        raise MeasureError(f"{where}: the saved kernel cannot be read ({type(error).__name__}: {brief(ascii(str(error))[1:-1])}); save it again") from error


def archive(files: Files) -> bytes:
    """The files as one zip archive, which may be appended to other bytes."""
    held = io.BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return held.getvalue()


def archived(path: Path) -> Files | None:
    """The files of the archive at the end of a file; None if there is no intact one. Raises MeasureError if the file cannot be read."""
    try:
        with ZipFile(path) as zipped:
            names = (ABOUT, *FILES, *([POOL] if POOL in zipped.namelist() else []))
            return {name: zipped.read(name) for name in names}
    except OSError as error:
        raise MeasureError(f"asked for the kernel in {path}, which cannot be read ({error.strerror or error}); name another file") from error
    except (BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError, struct.error):
        return None  # RuntimeError: the archive needs a password, or has an unknown compression method


def _opened(files: Files, where: str) -> SavedKernel:
    about = json.loads(files[ABOUT])
    if not isinstance(about, dict):
        raise ValueError(f"{ABOUT} does not hold a JSON object")
    if about["version"] != VERSION:
        raise MeasureError(f"{where}: a kernel in format version {told(about['version'])}, but this package reads {VERSION}; save it again")
    if about[SEAL] != sealed(about)[SEAL]:
        raise MeasureError(f"{where}: {ABOUT} is damaged; save the kernel again")
    for name in (*FILES, *([POOL] if POOL in about["digests"] else [])):
        if name not in files or about["digests"][name] != digest(files[name]):
            raise MeasureError(f"{where}: {name} is damaged, or was only partly saved; save the kernel again")
    texts = {name: _of(about, name, str) for name in ("entry", "symbol")}
    numbers = {name: _of(about, name, int) for name in ("workspace_bytes", "threads")}
    if numbers["threads"] < 1 or numbers["workspace_bytes"] < 0:
        raise ValueError(f"{numbers} are out of range")
    source = CSource(files["kernel.c"].decode(), texts["entry"], tuple(map(Argument.from_data, _of(about, "arguments", list))),
                     numbers["workspace_bytes"], numbers["threads"])  # fmt: skip
    with np.load(io.BytesIO(files["constants.npz"]), allow_pickle=False) as held:
        constants = {str(name): held[f"arr_{place}"] for place, name in enumerate(_of(about, "constants", list))}
    return SavedKernel(source, texts["symbol"], files["kernel.so"], constants, _facts(about))


def _facts(about: Mapping[str, Any]) -> Facts:
    """Kernels saved by earlier versions lack some of them."""
    latency = about["latency_s"]
    name, mcpu = (_of(about, word, str) if word in about else usual for word, usual in (("name", ""), ("mcpu", "native")))
    ranges = tuple((str(one), float(low), float(high)) for one, low, high in (_of(about, "ranges", list) if "ranges" in about else ()))
    return Facts(None if latency is None else float(latency), _of(about, "schedule", str), _of(about, "origin", str), name, mcpu, ranges)


def _of(about: Mapping[str, object], name: str, kind: type[T]) -> T:
    value = about[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value
