"""Chooses the form in which kernels multiply, for the instructions of a target. The results are the same in every form.

Weights have 16 bits for processors that multiply pairs of 16-bit numbers but no bytes (the DSP extension of Cortex-M, without Helium). Extending bytes takes
as many instructions as multiplying them. 16-bit weights need no extension, but twice the flash. A kernel extends the inputs of its layer once.

x86 multiplies unsigned bytes by signed ones (VNNI): kernels read bytes with 128 added, and the bias subtracts what that adds to the sums. All bytes between
layers are stored in this form, which avoids copies. If an instruction sums a group of bytes, channels are padded to a multiple of the group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import Limits
from ansor.integer.operators import SIGNED, Convolution, Dense, Form, Operator, Reshape
from ansor.ir.intrinsics import Intrinsic
from ansor.targets.base import Target

PAIR, BYTES = ("int16", "int16"), ("int8", "int8")
FEW = 4
"""Instructions that sum more bytes than this at once multiply signed bytes directly; others need one of the forms here."""
FOR_CODE = 4
"""One part in FOR_CODE of the flash, a quarter, is reserved for code."""


def in_form(network: IntegerNetwork, target: Target, limits: Limits) -> IntegerNetwork:
    """The network with its layers in the forms that the target multiplies fastest."""
    if any(one.operands == PAIR for one in target.intrinsics):
        return widened(network, target, limits)
    bytewise = next((one for one in target.intrinsics if one.operands == BYTES and one.group <= FEW), None)
    return network if bytewise is None else grouped(network, bytewise)


def grouped(network: IntegerNetwork, instruction: Intrinsic) -> IntegerNetwork:
    """The network with channels padded to whole groups for an instruction that multiplies bytes, and in unsigned form if that saves flipping signs."""
    flips = instruction.offset > 0
    network = unsigned_between(network) if flips else network

    def made(one: Operator) -> Operator:
        if not isinstance(one, (Convolution, Dense)):
            return one
        there = Form(unsigned=network.tensors[one.inputs[0]].dtype == "uint8")
        if isinstance(one, Dense):
            return replace(one, form=Form(unsigned=flips) if one.weights.shape[0] % instruction.group == 0 else there)
        whole = one.window.groups == 1 and not one.depthwise
        return replace(one, form=Form(unsigned=flips, multiple=instruction.group) if whole else there)

    return replace(network, operators=tuple(map(made, network.operators)))


def unsigned_between(network: IntegerNetwork) -> IntegerNetwork:
    """The network with its tensors stored as unsigned bytes, except inputs, outputs and reshapes of these."""
    kept = {*network.inputs, *network.outputs}
    names = [one for one in network.operators if isinstance(one, Reshape)]
    for one in reversed(names):
        kept |= {*one.inputs} if one.output in kept else set()
    for one in names:
        kept |= {one.output} if one.inputs[0] in kept else set()
    tensors = {name: tensor if name in kept else replace(tensor, dtype="uint8") for name, tensor in network.tensors.items()}
    return replace(network, tensors=tensors)


def multiplies_pairs(target: Target) -> bool:
    """Whether a target multiplies pairs of 16-bit numbers, and has no instruction that sums many signed bytes directly."""
    operands = [(one.operands, one.group > FEW) for one in target.intrinsics]
    return any(one == PAIR for one, _ in operands) and (BYTES, True) not in operands


def widened(network: IntegerNetwork, target: Target, limits: Limits) -> IntegerNetwork:
    """The network with 16-bit weights if the target multiplies them in pairs, as far as the flash allows: layers with the most multiplications per weight
    first."""
    if not multiplies_pairs(target):
        return network
    left = float("inf") if limits.flash_bytes is None else limits.flash_bytes * (FOR_CODE - 1) / FOR_CODE - network.constant_bytes
    wide: set[str] = set()
    for one in sorted(_candidates(network.operators), key=lambda one: -one.macs(network.tensors[one.output].shape) / one.weights.size):
        if one.weights.size <= left:
            wide.add(one.output)
            left -= one.weights.size
    return _with(network, wide)


def narrow(network: IntegerNetwork) -> IntegerNetwork:
    """The network with all weights and tensors as signed bytes."""
    return replace(_with(network, set()), tensors={name: replace(tensor, dtype="int8") for name, tensor in network.tensors.items()})


def _candidates(operators: Iterable[Operator]) -> list[Convolution | Dense]:
    """Layers whose sums run over pairs of neighbours in memory."""
    return [one for one in operators if isinstance(one, (Convolution, Dense)) and _in_pairs(one)]


def _in_pairs(one: Convolution | Dense) -> bool:
    if isinstance(one, Dense):
        return int(one.weights.shape[0]) % 2 == 0
    _, columns, channels, _ = one.weights.shape
    return not one.depthwise and one.window.groups == 1 and (channels > 1 or int(columns) % 2 == 0)


def _with(network: IntegerNetwork, wide: set[str]) -> IntegerNetwork:
    def made(one: Operator) -> Operator:
        form = Form(wide=True, multiple=2) if one.output in wide else SIGNED
        return replace(one, form=form) if isinstance(one, (Convolution, Dense)) else one

    return replace(network, operators=tuple(made(one) for one in network.operators))
