"""Saves compiled networks in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.pool_library import pool_bytes
from ansor.codegen.toolchain import compile_files
from ansor.errors import ModelError, ToolchainError
from ansor.measure.machine_identity import processor_identity
from ansor.networks.exporting import export
from ansor.networks.plan_code import plan_text
from ansor.networks.planning import Constants, Planning
from ansor.networks.saved_network import KERNELS, PLAN_TEXT, SavedNetwork
from ansor.networks.saved_sizes import SavedSizes
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.export import CallArguments
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.spans import Padding

SECONDS = 900.0
"""The time limit for one call of the compiler, which builds all kernels of a network."""


@dataclass(frozen=True)
class NetworkWriter:
    """Writes a network to a folder; `target` is what it was compiled for."""

    target: Target

    def save(self, network: CompiledNetwork, folder: Path) -> None:
        """Write it for `ansor.load`."""
        save(network, folder, self.target)

    def export(self, network: CompiledNetwork, folder: Path, examples: CallArguments | None, embed: bool) -> None:
        """Write it as C only."""
        export(network, folder, self.target, examples, embed)


def save(network: CompiledNetwork, folder: Path, target: Target) -> None:
    """Write a network that was compiled for `target`. Raises ModelError if it cannot run without PyTorch, ToolchainError if it does not build,
    and MeasureError if the folder cannot be written to."""
    constants = Constants()
    replace(saved(network, constants, target), constants=constants.content).write(folder)


def save_sizes(networks: Mapping[int, CompiledNetwork], folder: Path, paddings: Mapping[int, Padding] | None = None, axes: Sequence[int | None] = ()) -> None:
    """Write networks of one model, by size. paddings, axes: as in `SavedSizes`. Raises the errors of `save`, and ModelError for fixed results that depend on
    the size."""
    constants = Constants()
    made = {size: saved(networks[size], constants, _target_of(networks[size])) for size in sorted(networks)}
    room = {size: replace(one.plan.room, constants=constants.size) for size, one in made.items()}
    whole = {size: replace(one, plan=replace(one.plan, room=room[size])) for size, one in made.items()}
    try:
        several = SavedSizes(whole, constants.content, tuple(axes), paddings or {})
    except ValueError as error:
        raise ModelError(f"asked to save networks for several sizes, but {error}; save the network of each size") from error
    several.write(folder)


def _target_of(network: CompiledNetwork) -> Target:
    assert isinstance(network.writer, NetworkWriter)  # it is made by `compiled`
    return network.writer.target


def saved(network: CompiledNetwork, constants: Constants, target: Target) -> SavedNetwork:
    """A network that was compiled for `target`, without its constants, which are added to `constants`. Raises ModelError if it cannot run without PyTorch, and
    ToolchainError if it does not build."""
    toolchain = target.toolchain()
    if not isinstance(toolchain, CToolchain):
        raise ModelError(f"asked to save a network for {target}, but no C compiler builds programs of this kind; compile it for a processor")
    planning = Planning(network, constants)
    texts = {PLAN_TEXT: plan_text(planning.plan)}
    texts |= {f"{KERNELS}/{number}.c": kernel.code.text for number, kernel in enumerate(planning.kernels)}
    with tempfile.TemporaryDirectory(prefix="ansor-network-") as scratch:
        library = built(tuple(texts.values()), toolchain, Path(scratch) / "network.so").read_bytes()
    return SavedNetwork(planning.plan, processor_identity(), toolchain.mcpu, texts, library, b"", pool_bytes(planning.plan.threads))


def built(texts: Sequence[str], toolchain: CToolchain, output: Path) -> Path:
    """Build one library from all texts. Raises ToolchainError with the compiler's message."""
    made = compile_files(toolchain.compiler, texts, output, toolchain.flags, timeout=SECONDS)
    if not made.ok:
        raise ToolchainError(f"the C texts of a network do not build with {toolchain.version}: {made.text}")
    return output
