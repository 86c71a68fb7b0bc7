"""Weights as numbers of 16 bits, for processors that multiply those two at a time and bytes not at all (the DSP extension of Cortex-M, without Helium).

Extending bytes takes as many instructions as multiplying them; 16 bits in flash need none, and twice the flash. What a layer reads is extended once, in its
kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import Limits
from ansor.integer.operators import Convolution, Dense, Operator
from ansor.targets.base import Target

PAIR, BYTES = ("int16", "int16"), ("int8", "int8")
FEW = 4
"""Bytes that an instruction has to extend first: those that sum more at once multiply them as they are."""
FOR_CODE = 4
"""A quarter of the flash is left to code."""


def widened(network: IntegerNetwork, target: Target, limits: Limits) -> IntegerNetwork:
    """The network with 16-bit weights where the target multiplies pairs of them, as long as there is flash: most multiplications for a byte first."""
    if not any(one.operands == PAIR for one in target.intrinsics) or any(one.operands == BYTES and one.group > FEW for one in target.intrinsics):
        return network
    left = float("inf") if limits.flash_bytes is None else limits.flash_bytes * (FOR_CODE - 1) / FOR_CODE - network.constant_bytes
    wide: set[str] = set()
    for one in sorted(_candidates(network.operators), key=lambda one: -one.macs(network.tensors[one.output].shape) / one.weights.size):
        if one.weights.size <= left:
            wide.add(one.output)
            left -= one.weights.size
    return _with(network, wide)


def narrow(network: IntegerNetwork) -> IntegerNetwork:
    """The network with all weights as bytes."""
    return _with(network, set())


def _candidates(operators: Iterable[Operator]) -> list[Convolution | Dense]:
    """Layers whose sums run over neighbours in memory, in pairs."""
    return [one for one in operators if isinstance(one, (Convolution, Dense)) and _in_pairs(one)]


def _in_pairs(one: Convolution | Dense) -> bool:
    if isinstance(one, Dense):
        return int(one.weights.shape[0]) % 2 == 0
    _, columns, channels, _ = one.weights.shape
    return not one.depthwise and one.window.groups == 1 and (channels > 1 or int(columns) % 2 == 0)


def _with(network: IntegerNetwork, wide: set[str]) -> IntegerNetwork:
    def made(one: Operator) -> Operator:
        return replace(one, wide=one.output in wide) if isinstance(one, (Convolution, Dense)) else one

    return replace(network, operators=tuple(made(one) for one in network.operators))
