"""Graphs of Dynamo in which an extent of the inputs varies, as `dynamic=True` and `mark_dynamic` give them.

Inputs with the same extent often have a symbol each, since Dynamo need not know that they are equal. So calls are padded in which all of these are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ansor.networks.padded import padded_or_cut


@dataclass(frozen=True)
class DynamicGraph:
    """axes: the dimensions of the arguments that vary, by the place of the argument; numbers: the places of arguments that are such an extent, or are
    not used."""

    axes: Mapping[int, tuple[int, ...]]
    numbers: frozenset[int]

    def length(self, given: Sequence[object]) -> int | None:
        """The length of a call; None if the extents that vary differ from each other, or if a tensor has its dimensions in another order in memory, since
        PyTorch's results may then have it, too."""
        tensors = [(one, axes) for place, axes in self.axes.items() if isinstance(one := given[place], torch.Tensor)]
        found = {extent for one, axes in tensors for extent in (one.shape[axis] for axis in axes)}
        return int(found.pop()) if len(found) == 1 and all(_in_order(one) for one, _ in tensors) else None

    def of_length(self, given: Sequence[object], length: int) -> list[object]:
        """The arguments of a call, padded or cut to a length, and contiguous where they vary."""
        return [length if place in self.numbers else self._fitted(one, self.axes.get(place, ()), length) for place, one in enumerate(given)]

    def _fitted(self, one: object, axes: Sequence[int], length: int) -> object:
        for axis in axes:
            assert isinstance(one, torch.Tensor)
            one = padded_or_cut(one, axis, length)
        return one.contiguous() if axes and isinstance(one, torch.Tensor) else one


def _in_order(tensor: torch.Tensor) -> bool:
    """Whether dimensions are in order in memory, as in a contiguous tensor or a slice of one."""
    strides = [stride for stride, extent in zip(tensor.stride(), tensor.shape, strict=True) if extent > 1]
    return strides == sorted(strides, reverse=True) and 0 not in strides


def dynamic_graph(graph: torch.fx.GraphModule) -> DynamicGraph | None:
    """What varies in a graph: extents after the first dimension, which usually is a batch, or if there are none, those of the first dimension. None if nothing
    varies, or if calls cannot be padded, since the graph takes or returns other numbers that follow from these extents."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    given = [node.meta.get("example_value") for node in nodes]
    shapes = [(place, one.shape) for place, one in enumerate(given) if isinstance(one, torch.Tensor)]
    extents: list[tuple[int, int, object]] = [(place, axis, extent) for place, shape in shapes for axis, extent in enumerate(shape)]
    varying = [(place, axis, _symbols(extent)) for place, axis, extent in extents if isinstance(extent, SYMBOLIC)]
    chosen = [one for one in varying if one[1] > 0] or varying
    names = {name for _, _, symbols in chosen for name in symbols}
    numbers = {place: _symbols(one) for place, one in enumerate(given) if isinstance(one, SYMBOLIC) and nodes[place].users}
    followed = [symbols for *_, symbols in varying if symbols & names] + [symbols for symbols in numbers.values() if symbols & names]
    if not names or any(len(symbols) > 1 for symbols in followed) or not all(isinstance(one, torch.Tensor) for one in _results(graph)):
        return None
    axes = {place: tuple(axis for other, axis, symbols in varying if other == place and symbols & names) for place, _, symbols in varying if symbols & names}
    unused = {place for place, one in enumerate(given) if isinstance(one, SYMBOLIC) and not nodes[place].users}
    return DynamicGraph(axes, frozenset(unused | {place for place, symbols in numbers.items() if symbols & names}))


SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _symbols(symbolic: torch.SymInt | torch.SymFloat | torch.SymBool) -> frozenset[str]:
    """The symbol that a number is, or the symbols in it and the whole as another word."""
    expression = symbolic.node.expr
    symbols = {str(one) for one in expression.free_symbols}
    return frozenset(symbols if str(expression) in symbols else {*symbols, str(expression)})


def _results(graph: torch.fx.GraphModule) -> list[object]:
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    (given,) = output.args
    flat = given if isinstance(given, list | tuple) else [given]
    return [one.meta.get("example_value") if isinstance(one, torch.fx.Node) else one for one in flat]
