"""Networks of one model for several sizes of its inputs, in a folder: network.json, constants.bin, which all of them read, and a folder for each network."""

from __future__ import annotations

import dataclasses
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansor.errors import MeasureError
from ansor.graph.plan import NetworkPlan, PlacedArray
from ansor.graph.spans import Padding, padding_of
from ansor.measure.saved_kernel import sealed
from ansor.networks.saved_network import ABOUT, CONSTANTS_FILE, VERSION, SavedNetwork, about_in, checked, mapped, network_in, reading
from ansor.networks.size_arithmetic import all_batch_sizes
from ansor.support.safe_files import digest, make_folder, write_whole


@dataclass(frozen=True)
class SavedSizes:
    """networks: by size, the smallest first; constants: those of all, bytes or the mapped file. axes, paddings: for networks of any length, the dimension of
    each input that varies, None for fixed ones, and how each network is called, with `ends` of arrays only. Both are empty for networks of any number of rows.

    Raises ValueError for networks that do not belong together.
    """

    networks: Mapping[int, SavedNetwork]
    constants: bytes | mmap.mmap
    axes: tuple[int | None, ...] = ()
    paddings: Mapping[int, Padding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plans = {size: network.plan for size, network in self.networks.items()}
        if list(plans) != sorted(plans) or not plans or self.paddings and self.paddings.keys() != plans.keys():
            raise ValueError("its sizes are not those of its networks")
        whole = {(json.dumps(plan.results), tuple(one.name for one in plan.inputs), len(plan.outputs)) for plan in plans.values()}
        if len(whole) > 1:
            raise ValueError("its networks take something else, or return other numbers or in another nesting, for other sizes")
        if not self.paddings and (tuple(plans) != all_batch_sizes(max(plans)) or not self.inputs or self.axes):
            raise ValueError(f"networks for {', '.join(map(str, plans))} rows do not make up all numbers of rows")
        if any(not _takes_length(plans[size], padding, size) for size, padding in self.paddings.items()):
            raise ValueError("its networks do not take the length, or give other results")
        if len(self.varying) != len(self.inputs) or set(self.varying) <= {None}:
            raise ValueError("its inputs are others than those of its networks, or none of them varies")
        if any(axis is not None and axis not in range(len(one.shape)) for one, axis in zip(self.inputs, self.varying, strict=True)):
            raise ValueError("its inputs lack the dimension that varies")

    @property
    def inputs(self) -> tuple[PlacedArray, ...]:
        """Those of the largest network that a caller gives."""
        return self.inputs_of(self.networks[max(self.networks)].plan)

    @property
    def varying(self) -> tuple[int | None, ...]:
        """The dimension of each input that varies, None for fixed ones."""
        return self.axes if self.paddings else (0,) * len(self.inputs)

    def inputs_of(self, plan: NetworkPlan) -> tuple[PlacedArray, ...]:
        """The inputs of a network without the length."""
        return plan.inputs[:-1] if self.paddings else plan.inputs

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
                "version": VERSION, "sizes": parts, "axes": self.axes, "paddings": {str(size): dataclasses.asdict(one) for size, one in self.paddings.items()},
                "digests": {CONSTANTS_FILE: digest(constants)},
            }  # fmt: skip
            write_whole(folder / ABOUT, (json.dumps(sealed(about), indent=1) + "\n").encode())
        except OSError as error:
            raise MeasureError(f"asked to save networks in {folder}, which cannot be written to ({error.strerror or error}); name another folder") from error


def _takes_length(plan: NetworkPlan, padding: Padding, size: int) -> bool:
    last = [(one.dtype, one.shape) for one in plan.inputs[-1:]]
    return last == [("int32", (1,))] and padding.length == size and len(padding.ends) == len(plan.outputs)


def read(folder: Path) -> SavedNetwork | SavedSizes:
    """The network or the networks in a folder. Raises MeasureError unless they are complete and of this version."""
    with reading(folder):
        about = about_in(folder)
        return _sizes_in(folder, about) if "sizes" in about else network_in(folder, about)


def _sizes_in(folder: Path, about: Mapping[str, Any]) -> SavedSizes:
    constants = mapped(folder / CONSTANTS_FILE)
    checked(folder, CONSTANTS_FILE, constants, about["digests"])
    networks = {}
    for size in sorted(about["sizes"], key=int):
        part, name = folder / size, f"{size}/{ABOUT}"
        checked(folder, name, (part / ABOUT).read_bytes(), {name: about["sizes"][size]})
        networks[int(size)] = replace(network_in(part, about_in(part)), constants=constants)
    return SavedSizes(networks, constants, tuple(about["axes"]), {int(size): padding_of(one) for size, one in about["paddings"].items()})
