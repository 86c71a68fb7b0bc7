"""Chooses the operators of a network that run on the device. Every choice depends only on the graph, not on the order of an operator's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx

from ansor.errors import ModelError
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Convolution, Dense

Names = frozenset[str]
"""Operators, by the tensors that they make."""


@dataclass(frozen=True)
class Annotation:
    """device: the operators on the device; refused: operators that were asked for but cannot run there, and why."""

    device: Names
    refused: Mapping[str, str]


@dataclass(frozen=True)
class Seconds:
    """Estimated times in seconds. host, device: of each operator; written: of copying each tensor to the device; read: of copying it back, including the wait
    for queued operators."""

    host: Mapping[str, float]
    device: Mapping[str, float]
    written: Mapping[str, float]
    read: Mapping[str, float]


def graph_of(network: IntegerNetwork) -> networkx.DiGraph:
    """The operators and inputs, with an edge from what makes a tensor to each operator that reads it."""
    graph = networkx.DiGraph()
    graph.add_nodes_from([*network.inputs, *(one.output for one in network.operators)])
    graph.add_edges_from((name, one.output) for one in network.operators for name in one.inputs)
    return graph


def between(network: IntegerNetwork, first: str, last: str) -> Names:
    """Everything that `last` needs and `first` does not, including both. Operators parallel to `first` in a residual block are included, too.

    Raises ModelError for names that no operator has, and if `last` does not need `first`.
    """
    made = {one.output for one in network.operators}
    for name in (first, last):
        if name not in made:
            asked = f"asked to run {network.name} on a device from {first} to {last}"
            raise ModelError(f"{asked}, but it has no operator {name}; print the network to see the names")
    graph = graph_of(network)
    needed = {last, *networkx.ancestors(graph, last)}
    if first not in needed:
        raise ModelError(f"asked to run {network.name} on a device from {first} to {last}, which does not depend on it; name them the other way round")
    return frozenset(needed - networkx.ancestors(graph, first) - set(network.inputs))


def middle(network: IntegerNetwork) -> Names:
    """Everything between the first and the last layers with weights, without these layers."""
    graph, weighted = graph_of(network), [one.output for one in network.operators if isinstance(one, Convolution | Dense)]
    before = [name for name in weighted if not any(name in networkx.descendants(graph, other) for other in weighted)]
    after = [name for name in weighted if not any(other in networkx.descendants(graph, name) for other in weighted)]
    inner = set(graph) - set(network.inputs)
    for name in before:
        inner -= {name, *networkx.ancestors(graph, name)}
    for name in after:
        inner -= {name, *networkx.descendants(graph, name)}
    behind = set().union(*(networkx.descendants(graph, name) for name in before)) if before else set()
    ahead = set().union(*(networkx.ancestors(graph, name) for name in after)) if after else set()
    return frozenset(inner & behind & ahead)


def cheapest(network: IntegerNetwork, seconds: Seconds) -> Names:
    """The placement for which operators and transfers take the least time in total; inputs, outputs and operators without a time on the device are on the host.

    It is a minimum cut: a tensor is moved once, however many operators read it. Of equal cuts, it is the one with the most operators on the device.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(("host", "device"))
    for one in network.operators:
        graph.add_edge("device", ("at", one.output), capacity=_whole(seconds.host[one.output]))
        if one.output in seconds.device:
            graph.add_edge(("at", one.output), "host", capacity=_whole(seconds.device[one.output]))
        else:
            graph.add_edge(("at", one.output), "host")
    readers: dict[str, list[object]] = {name: [] for name in (*network.inputs, *(one.output for one in network.operators))}
    for one in network.operators:
        for name in dict.fromkeys(one.inputs):
            readers[name].append(("at", one.output))
    for name in network.outputs:
        readers[name].append("host")
    for name, reading in readers.items():
        source: object = "host" if name in network.inputs else ("at", name)
        _moves(graph, (source, *reading), name, (_whole(seconds.written[name]), _whole(seconds.read[name])))
    _, (there, _) = networkx.minimum_cut(graph, "device", "host")
    return frozenset(one.output for one in network.operators if ("at", one.output) in there)


def _moves(graph: networkx.DiGraph, users: tuple[object, ...], name: str, costs: tuple[int, int]) -> None:
    """Add the cost of moving a tensor, paid once if any reader is on the other side. users: the operator that makes it, then its readers; costs: of writing
    it to the device, and of reading it."""
    source, *readers = users
    down, up = ("down", name), ("up", name)  # from the device to the host, and the other way
    graph.add_edge(up, source, capacity=costs[0])
    graph.add_edge(source, down, capacity=costs[1])
    for reader in readers:
        graph.add_edge(down, reader)
        graph.add_edge(reader, up)


def _whole(seconds: float) -> int:
    """Seconds in whole picoseconds, as sums of whole numbers do not depend on their order."""
    return round(seconds * 1e12)
