"""An integer network for one target: its kernels in C, the order in which they run, and its memory plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import CSource
from ansor.errors import ModelError
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Operator
from ansor.integer.plan import ArenaPlan, arena_of, steps_of
from ansor.targets.base import Target


@dataclass(frozen=True)
class NetworkKernel:
    """A kernel. stack_bytes: peak size of its local buffers; origin: how it was chosen; cost: cost of one run in the target's unit, None if not measured."""

    code: CSource
    stack_bytes: int
    origin: str = ""
    cost: float | None = None


@dataclass(frozen=True)
class Call:
    """One step: the operator, the index of its kernel, and the C names of its constants."""

    operator: Operator
    kernel: int
    constants: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """The memory of a board, in bytes; None if unknown. together: if not 0, constants and code are in RAM, too, with a stack of this many bytes.
    arena_bytes: the size up to which workspaces may enlarge the arena; 0 limits it to the size that the tensors need."""

    ram_bytes: int | None = None
    flash_bytes: int | None = None
    together: int = 0
    arena_bytes: int = 0

    def check(self, network: IntegerNetwork, plan: ArenaPlan, stack_bytes: int, constant_bytes: int) -> None:
        """Raises ModelError with the numbers if the network needs more memory than the board has. Counts constants, but not code."""
        ram = plan.size + stack_bytes
        if self.ram_bytes is not None and ram > self.ram_bytes:
            peak = steps_of(network)[int(np.argmax(plan.alive))].output
            what = f"{ram} bytes of RAM ({plan.size} in the arena, {stack_bytes} on the stack)"
            raise ModelError(f"{network.name} needs {what}, but the board has {self.ram_bytes}; the peak is at {peak}: use a smaller model or input")
        if self.together and self.ram_bytes is not None and plan.size + self.together + constant_bytes > self.ram_bytes:
            what = f"{plan.size} bytes of arena, {self.together} of stack and {constant_bytes} of constants in one memory"
            raise ModelError(f"{network.name} needs {what}, but the board has {self.ram_bytes}: put its code in flash (-code=flash), or use a smaller model")
        if self.flash_bytes is not None and constant_bytes > self.flash_bytes:
            what = f"{constant_bytes} bytes of flash for its constants"
            raise ModelError(f"{network.name} needs {what}, but the board has {self.flash_bytes}: use a smaller model")

    def check_before(self, network: IntegerNetwork, alignment: int) -> None:
        """The same check before kernels exist, for the least memory that the network needs. Raises ModelError."""
        plan = arena_of(network, [0] * len(steps_of(network)), alignment)
        self.check(network, plan, 0, network.constant_bytes)
        asked = f"asked for an arena of {self.arena_bytes} bytes"
        if self.arena_bytes and self.arena_bytes < plan.size:
            raise ModelError(f"{asked}, but the tensors of {network.name} alone need {plan.size}: ask for more, or leave it out")
        if self.ram_bytes is not None and self.arena_bytes > self.ram_bytes:
            raise ModelError(f"{asked} on a board with {self.ram_bytes} bytes of RAM: ask for less, and leave space for the stack")


@dataclass(frozen=True)
class NetworkCode:
    """constants: arrays by their C names, with elements in the order in which kernels read them."""

    network: IntegerNetwork
    target: Target
    kernels: tuple[NetworkKernel, ...]
    calls: tuple[Call, ...]
    plan: ArenaPlan
    constants: Mapping[str, NDArray[np.generic]] = field(repr=False)

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena, which holds all tensors and workspaces."""
        return self.plan.size

    @property
    def stack_bytes(self) -> int:
        """Peak bytes of local buffers over all kernels. Calls and saved registers need additional stack."""
        return max((one.stack_bytes for one in self.kernels), default=0)

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of weights, biases, multipliers and tables, as they are stored."""
        return sum(array.nbytes for array in self.constants.values())

    def check_fits(self, limits: Limits) -> None:
        """Raises ModelError with the numbers if the board has too little memory. Needs no build."""
        limits.check(self.network, self.plan, self.stack_bytes, self.constant_bytes)
