"""Networks of one model for several sizes of its inputs, in a folder: network.json, constants.bin, which all of them read, and a folder for each network."""

from __future__ import annotations

import dataclasses
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansor.errors import MeasureError
from ansor.graph.spans import Padding, padding_of
from ansor.measure.saved_kernel import sealed
from ansor.networks.saved_network import ABOUT, CONSTANTS_FILE, VERSION, SavedNetwork, about_in, checked, mapped, network_in, reading
from ansor.support.safe_files import digest, make_folder, write_whole


@dataclass(frozen=True)
class SavedSizes:
    """networks: by size, without their constants; constants: those of all, bytes or the mapped file. axes, paddings: for networks of any length, the dimension
    of each input that varies, None for fixed ones, and how each network is called, with `ends` of arrays only. Both are empty for networks of any number of
    rows."""

    networks: Mapping[int, SavedNetwork]
    constants: bytes | mmap.mmap
    axes: tuple[int | None, ...] = ()
    paddings: Mapping[int, Padding] = dataclasses.field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write all files, network.json last. Raises MeasureError if they cannot be written."""
        for size, network in self.networks.items():
            network.write(folder / str(size))
        try:
            make_folder(folder)
            constants = bytes(self.constants)
            write_whole(folder / CONSTANTS_FILE, constants)
            parts = {str(size): digest((folder / str(size) / ABOUT).read_bytes()) for size in self.networks}
            about = {
                "version": VERSION, "sizes": parts, "axes": self.axes, "paddings": {size: dataclasses.asdict(one) for size, one in self.paddings.items()},
                "digests": {CONSTANTS_FILE: digest(constants)},
            }  # fmt: skip
            write_whole(folder / ABOUT, (json.dumps(sealed(about), indent=1) + "\n").encode())
        except OSError as error:
            raise MeasureError(f"asked to save networks in {folder}, which cannot be written to ({error.strerror or error}); name another folder") from error


def read(folder: Path) -> SavedNetwork | SavedSizes:
    """The network or the networks in a folder. Raises MeasureError unless they are complete and of this version."""
    with reading(folder):
        about = about_in(folder)
        return _sizes_in(folder, about) if "sizes" in about else network_in(folder, about)


def _sizes_in(folder: Path, about: Mapping[str, Any]) -> SavedSizes:
    constants = mapped(folder / CONSTANTS_FILE)
    checked(folder, CONSTANTS_FILE, constants, about["digests"])
    networks = {}
    for size, wanted in about["sizes"].items():
        part = folder / size
        checked(folder, f"{size}/{ABOUT}", (part / ABOUT).read_bytes(), {f"{size}/{ABOUT}": wanted})
        networks[int(size)] = replace(network_in(part, about_in(part)), constants=constants)
    paddings = {int(size): padding_of(one) for size, one in about["paddings"].items()}
    if not networks or paddings and paddings.keys() != networks.keys():
        raise ValueError("the networks and their sizes do not agree")
    return SavedSizes(networks, constants, tuple(about["axes"]), paddings)
