"""Which operators are on the device: against all annotations there are."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.errors import ModelError
from ansor.integer.network import IntegerNetwork
from ansor.offload.annotation import Names, Seconds, between, cheapest, middle
from ansor.offload.phases import phases_of
from tests.offload.networks import drawn_network, turned


def cost(network: IntegerNetwork, there: frozenset[str], seconds: Seconds) -> float:
    """Of an annotation, written down as it is meant."""
    total = sum(seconds.device[one.output] if one.output in there else seconds.host[one.output] for one in network.operators)
    for name in (*network.inputs, *(one.output for one in network.operators)):
        readers = {one.output in there for one in network.operators if name in one.inputs} | ({False} if name in network.outputs else set())
        if not readers <= {name in there}:
            total += seconds.read[name] if name in there else seconds.written[name]
    return total


def seconds_of(network: IntegerNetwork, seed: int) -> Seconds:
    generator = np.random.default_rng(seed)
    names = [one.output for one in network.operators]
    times = [dict(zip(names, generator.integers(0, 9, len(names)).astype(float), strict=True)) for _ in range(2)]
    device = {name: time for name, time in times[1].items() if generator.random() < 0.8}
    written, read = ({name: float(generator.integers(0, 6)) for name in network.tensors} for _ in range(2))
    return Seconds(times[0], device, written, read)


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_the_cheapest_annotation_is_the_cheapest_of_all(seed: int) -> None:
    network = drawn_network(seed, 7)
    seconds = seconds_of(network, seed)
    able = [one.output for one in network.operators if one.output in seconds.device]
    subsets = [frozenset(some) for count in range(len(able) + 1) for some in itertools.combinations(able, count)]
    costs = {some: cost(network, some, seconds) for some in subsets}
    found = cheapest(network, seconds)
    assert costs[found] == min(costs.values())
    assert len(found) == max(len(some) for some, one in costs.items() if one == costs[found])


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_the_order_of_arguments_says_nothing(seed: int) -> None:
    network = drawn_network(seed, 12)
    other = turned(network)
    last = network.operators[-1].output
    seconds = seconds_of(network, seed)
    assert cheapest(network, seconds) == cheapest(other, seconds) and middle(network) == middle(other)
    for one in network.operators:
        found: list[Names | str] = []
        for graph in (network, other):
            try:
                found.append(between(graph, one.output, last))
            except ModelError as error:
                found.append(str(error))
        assert found[0] == found[1]


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_phases_run_everything_once_and_copy_exactly_the_edges_whose_ends_differ(seed: int) -> None:
    network = drawn_network(seed, 12)
    generator = np.random.default_rng(seed)
    there = frozenset(one.output for one in network.operators if generator.random() < 0.5)
    known = {True: set[str](), False: set(network.inputs)}
    copied = []
    for phase in phases_of(network, there):
        for name in phase.brings:
            assert name in known[not phase.on_device]
            known[phase.on_device].add(name)
            copied.append((name, phase.on_device))
        for one in phase.operators:
            assert set(one.inputs) <= known[phase.on_device] and (one.output in there) == phase.on_device
            known[phase.on_device].add(one.output)
    ends = {(name, one.output in there) for one in network.operators for name in one.inputs} | {(name, False) for name in network.outputs}
    assert sorted(copied) == sorted((name, side) for name, side in ends if side != (name in there))
    assert {one.output for one in network.operators} | set(network.inputs) == {name for side in known.values() for name in side}


def test_what_stands_beside_the_first_operator_is_on_the_device_too() -> None:
    network = drawn_network(0, 0)
    assert between(network, "body1", "sum") == {"body1", "body2", "beside", "sum"}
    assert between(network, "beside", "sum") == {"body1", "body2", "beside", "sum"}
    assert between(network, "body2", "sum") == {"body2", "beside", "sum"}
    assert middle(network) == {"body1", "body2", "beside", "sum", "pool", "flat"}
    assert middle(replace(network, operators=network.operators[:1], outputs=("stem",))) == frozenset()


def test_names_that_cannot_be_meant() -> None:
    network = drawn_network(0, 0)
    with pytest.raises(ModelError, match="on a device from nothing to sum, but it has no operator nothing; print the network to see the names$"):
        between(network, "nothing", "sum")
    with pytest.raises(ModelError, match="from sum to body1, which does not depend on it; name them the other way round$"):
        between(network, "sum", "body1")
