"""Runs the host's operators of a network, by the NumPy reference or as C built for this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.integer.compiling import compiled
from ansor.integer.host import HostNetwork
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Operator, Reshape
from ansor.integer.reference import computed
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.targets.base import Target

Int8 = NDArray[np.int8]
Runs = Callable[[Mapping[str, Int8]], dict[str, Int8]]
"""A function from the tensors that operators need to those that they make."""


def by_reference(network: IntegerNetwork, operators: Sequence[Operator]) -> Runs:
    """The operators in NumPy: slow, but the oracle."""

    def run(given: Mapping[str, Int8]) -> dict[str, Int8]:
        known = dict(given)
        for one in operators:
            known[one.output] = computed(one, *(known[name] for name in one.inputs))
        return {one.output: known[one.output] for one in operators}

    return run


def as_c(network: IntegerNetwork, operators: Sequence[Operator], target: Target, asked: RunOptions, reporter: Reporter) -> Runs:
    """The operators as kernels in C. Raises what compiling for `target` raises."""
    if all(isinstance(one, Reshape) for one in operators):
        return by_reference(network, operators)
    made = HostNetwork(compiled(part_of(network, operators), target, asked, reporter))

    def run(given: Mapping[str, Int8]) -> dict[str, Int8]:
        return made.run({name: given[name] for name in made.program.network.inputs})

    return run


def part_of(network: IntegerNetwork, operators: Sequence[Operator]) -> IntegerNetwork:
    """Some of the operators as a network. Its outputs are the tensors that the other operators need, and the outputs of the whole network."""
    made = [one.output for one in operators]
    inside = {id(one) for one in operators}
    wanted = {name for one in network.operators if id(one) not in inside for name in one.inputs} | set(network.outputs)
    inputs = tuple(dict.fromkeys(name for one in operators for name in one.inputs if name not in made))
    outputs = tuple(name for name in made if name in wanted)
    tensors = {name: network.tensors[name] for name in (*inputs, *made)}
    return IntegerNetwork(f"{network.name}_{made[0]}", inputs, outputs, tensors, tuple(operators)).checked()
