"""The compiled integer network that users get: the memory that it needs, its C code, and a way to run it on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.integer.firmware import Firmware, build_firmware
from ansor.integer.host import HostNetwork
from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import NetworkCode
from ansor.integer.reference import Bytes, run
from ansor.integer.saved import save
from ansor.integer.table import table_text
from ansor.support.text import counted
from ansor.targets.base import Target

Inputs = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, repr=False)
class IntegerProgram:
    """A compiled integer network, as `ansor.compile_int8` returns it."""

    code: NetworkCode

    def __repr__(self) -> str:
        network = self.network
        parts = f"{counted(len(self.code.calls), 'layer')}, {counted(len(self.code.kernels), 'kernel')}"
        return f"IntegerProgram({network.name} for {self.target}: {parts}, {self.arena_bytes} bytes of arena, {self.constant_bytes} of constants)"

    @property
    def network(self) -> IntegerNetwork:
        """Its operators and tensors."""
        return self.code.network

    @property
    def target(self) -> Target:
        """The machine that it is compiled for."""
        return self.code.target

    @property
    def arena_bytes(self) -> int:
        """Bytes of RAM for all tensors and workspaces."""
        return self.code.arena_bytes

    @property
    def stack_bytes(self) -> int:
        """Peak bytes of local buffers. Calls and saved registers need additional stack."""
        return self.code.stack_bytes

    @property
    def constant_bytes(self) -> int:
        """Bytes of flash for weights, biases, multipliers and tables, not counting the code."""
        return self.code.constant_bytes

    @property
    def table(self) -> str:
        """What each layer needs, as text."""
        return table_text(self.code)

    def save(self, folder: str | Path) -> Path:
        """Write the network as C, with a header, a build script and a self-test. Raises MeasureError if that is not possible."""
        return save(self.code, folder)

    def firmware(self, folder: str | Path) -> Firmware:
        """Write the network as `save` does, and build the whole program of the target's board, `firmware.elf`. Raises TargetError if the target is not a board,
        ToolchainError if the program does not build, and ModelError if it does not fit."""
        return build_firmware(self.code, folder)

    def expected(self, inputs: Inputs) -> dict[str, NDArray[np.float64]]:
        """The outputs that the NumPy reference computes. Inputs and outputs are real numbers by name, in the model's order of dimensions."""
        return self._real(run(self.network, self._stored(inputs)))

    def __call__(self, inputs: Inputs) -> dict[str, NDArray[np.float64]]:
        """The same outputs from the C code, built for this machine. Raises TargetError if the network is compiled for another machine."""
        return self._real(self.on_host.run(self._stored(inputs)))

    def _stored(self, inputs: Inputs) -> dict[str, Bytes]:
        return {name: self.network.tensors[name].stored(inputs[name]) for name in self.network.inputs}

    def _real(self, outputs: Mapping[str, Bytes]) -> dict[str, NDArray[np.float64]]:
        return {name: self.network.tensors[name].read(outputs[name]) for name in self.network.outputs}

    @cached_property
    def on_host(self) -> HostNetwork:
        """The C code, loaded into this process."""
        return HostNetwork(self.code)
