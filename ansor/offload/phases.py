"""The order in which a network runs on host and device. They alternate: each copies what it needs from the other, and then runs everything that it can."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Operator
from ansor.offload.annotation import Names


@dataclass(frozen=True)
class Phase:
    """Operators that one side runs without the other. brings: tensors that are copied from the other side first, each once, in the order of the network."""

    on_device: bool
    operators: tuple[Operator, ...]
    brings: tuple[str, ...]


def phases_of(network: IntegerNetwork, device: Names) -> tuple[Phase, ...]:
    """The phases, which alternate between the sides. The host begins, unless only the device can. If outputs are on the device, a last phase without operators
    copies them to the host."""
    known = {True: set[str](), False: set(network.inputs)}
    order = (*network.inputs, *(one.output for one in network.operators))
    left, found, on_device = list(network.operators), list[Phase](), False
    while left:
        ready = _ready(left, known[True] | known[False], device, on_device)
        if ready:
            inside = {one.output for one in ready}
            wanted = {name for one in ready for name in one.inputs} - known[on_device] - inside
            brings = tuple(name for name in order if name in wanted)
            found.append(Phase(on_device, ready, brings))
            known[on_device] |= wanted | inside
            left = [one for one in left if one not in ready]
        on_device = not on_device
    last = tuple(name for name in order if name in network.outputs and name not in known[False])
    return (*found, Phase(False, (), last)) if last else tuple(found)


def _ready(left: list[Operator], known: set[str], device: Names, on_device: bool) -> tuple[Operator, ...]:
    """Everything that one side can run now, in the order of the network."""
    found: list[Operator] = []
    made = set(known)
    for one in left:
        if (one.output in device) == on_device and all(name in made for name in one.inputs):
            found.append(one)
            made.add(one.output)
    return tuple(found)
