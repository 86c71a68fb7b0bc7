"""Saves a compiled network in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.export import CallArguments
    from ansor.graph.network import CompiledNetwork

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
    toolchain = target.toolchain()
    if not isinstance(toolchain, CToolchain):
        raise ModelError(f"asked to save a network for {target}, but no C compiler builds programs of this kind; compile it for a processor")
    constants = Constants()
    planning = Planning(network, constants)
    texts = {PLAN_TEXT: plan_text(planning.plan)}
    texts |= {f"{KERNELS}/{number}.c": kernel.code.text for number, kernel in enumerate(planning.kernels)}
    with tempfile.TemporaryDirectory(prefix="ansor-network-") as scratch:
        library = built(tuple(texts.values()), toolchain, Path(scratch) / "network.so").read_bytes()
    pool = pool_bytes(planning.plan.threads)
    SavedNetwork(planning.plan, processor_identity(), toolchain.mcpu, texts, library, constants.content, pool).write(folder)


def built(texts: Sequence[str], toolchain: CToolchain, output: Path) -> Path:
    """Build one library from all texts. Raises ToolchainError with the compiler's message."""
    made = compile_files(toolchain.compiler, texts, output, toolchain.flags, timeout=SECONDS)
    if not made.ok:
        raise ToolchainError(f"the C texts of a network do not build with {toolchain.version}: {made.text}")
    return output
