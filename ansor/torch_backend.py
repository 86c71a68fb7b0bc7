"""`torch.compile(model, backend="ansor")`: what Dynamo captures runs as a compiled network, and as PyTorch runs it where that cannot be.

Dynamo hands over a graph and calls what it gets back with the graph's inputs, weights included. Shapes are those of a call: a network is compiled for each
that comes, in its first call. https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ansor.api import CompileKeywords, compile
from ansor.errors import ArgumentError, ModelError
from ansor.graph.network import CompiledNetwork
from ansor.support.forked import Locked
from ansor.support.notices import warn
from ansor.support.text import clip

MOST_NETWORKS = 64
"""Of one graph, for shapes and modules of one class; calls beyond that run in PyTorch."""

Graph = Callable[..., Any]


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[object], *, options: Mapping[str, Any] | None = None, mode: str | None = None) -> Graph:
    """Dynamo's interface of backends.

    options: `threads`, and what `ansor.compile` takes by name (trials, minutes, records, ...); nothing is measured without trials or minutes. Raises
    ArgumentError for others, and for a mode: there are none.
    """
    if mode not in (None, "default"):
        raise ArgumentError(f"asked for mode {mode!r} of the backend ansor, which has no modes; give options, such as {{'trials': 500}}")
    given = dict(options or {})
    known = {"threads", *CompileKeywords.__annotations__}
    if unknown := sorted(given.keys() - known):
        raise ArgumentError(f"the backend ansor has no option {unknown[0]!r}; it takes {', '.join(sorted(known))}")
    threads = given.pop("threads", None)
    target = "cpu" if threads is None else f"cpu -threads={threads}"
    places = [place for place, one in enumerate(example_inputs) if _is_weight(one)]
    return _Networks(graph, places, target, {"progress": False, **given})


def _is_weight(given: object) -> bool:
    """Parameters and buffers of modules: the same tensors in each call."""
    return isinstance(given, torch.Tensor) and (isinstance(given, torch.nn.Parameter) or hasattr(given, "_dynamo_static_input_type"))


@dataclass
class _Made:
    """A network, None where there is none, and the weights that it was made from, with what tells whether they are still the same."""

    network: CompiledNetwork | None
    weights: tuple[torch.Tensor, ...]
    versions: tuple[tuple[int, int], ...]


class _Networks(Locked):
    """A graph of Dynamo, as networks for the shapes and weights that it is called with. Modules of one class share a graph."""

    def __init__(self, graph: torch.fx.GraphModule, weights: Sequence[int], target: str, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._graph, self._weights, self._target, self._options = graph, frozenset(weights), target, options
        self._made: dict[tuple[object, ...], _Made] = {}
        self._said: set[str] = set()

    def __call__(self, *given: Any) -> Any:
        why = self._reason(given)
        if not why:
            network = self._network(given)
            if network is not None:
                return network(*(one for place, one in enumerate(given) if place not in self._weights and isinstance(one, torch.Tensor)))
        elif why not in self._said:
            self._said.add(why)
            warn(f"torch.compile with ansor: {why}; PyTorch runs this part")
        return self._graph(*given)

    def _reason(self, given: Sequence[Any]) -> str:
        """Why a call is PyTorch's to run."""
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            return "gradients are asked for; call it under torch.no_grad() or torch.inference_mode()"
        other = next((one.device for one in tensors if one.device.type != "cpu"), None)
        return "" if other is None else f"its tensors are on {other}"

    def _network(self, given: Sequence[Any]) -> CompiledNetwork | None:
        weights = tuple(given[place] for place in sorted(self._weights))
        versions = tuple(_version(one) for one in weights)
        inputs = (one for place, one in enumerate(given) if place not in self._weights)
        key = (*map(id, weights), *((tuple(one.shape), one.dtype) if isinstance(one, torch.Tensor) else one for one in inputs))
        with self.lock:
            made = self._made.get(key)
            if made is None and len(self._made) == MOST_NETWORKS:
                return None
            if made is None or made.versions != versions:  # new ones, or weights were written to
                made = self._made[key] = _Made(self._compiled(given), weights, versions)
            return made.network

    def _compiled(self, given: Sequence[Any]) -> CompiledNetwork | None:
        """A network for such a call; None, and a line, where there is none."""
        module = _Bound(self._graph, {place: one for place, one in enumerate(given) if place in self._weights or not isinstance(one, torch.Tensor)}, len(given))
        inputs = tuple(one.detach() for place, one in enumerate(given) if place not in self._weights and isinstance(one, torch.Tensor))
        try:
            network = compile(module.eval(), inputs, self._target, **self._options)
            if why := self._shared(given):
                raise ModelError(why)
            return network
        except Exception as error:  # whatever it is, PyTorch can run this
            warn(f"torch.compile with ansor: {clip(' '.join(str(error).split()), 300)}; PyTorch runs this part")
            return None

    def _shared(self, given: Sequence[Any]) -> str:
        """Why results of networks, which are new tensors, would not do: views are to change with what they are of. One run in PyTorch tells."""
        with torch.random.fork_rng(devices=[]):
            results = self._graph(*given)
        places = [one.untyped_storage().data_ptr() for one in results if isinstance(one, torch.Tensor) and one.numel()]
        inputs = {one.untyped_storage().data_ptr() for one in given if isinstance(one, torch.Tensor)}
        if not inputs.isdisjoint(places):
            return "a result shares memory with an input"
        return "two results share memory" if len(set(places)) < len(places) else ""


def _version(weight: torch.Tensor) -> tuple[int, int]:
    """How often it was written to, and where it lies, which assigning to `data` changes; tensors made in inference mode do not count."""
    return 0 if weight.is_inference() else weight._version, weight.data_ptr()


class _Bound(torch.nn.Module):
    """A graph with its weights, and with the numbers that go with a call's shapes."""

    def __init__(self, graph: torch.fx.GraphModule, bound: Mapping[int, Any], arguments: int) -> None:
        super().__init__()
        self._call, self._arguments = graph, arguments
        self._numbers = {place: one for place, one in bound.items() if not isinstance(one, torch.Tensor)}
        self._tensors = [place for place in bound if place not in self._numbers]
        for place in self._tensors:
            self.register_buffer(f"weight{place}", bound[place].detach())

    def forward(self, *inputs: torch.Tensor) -> Any:
        rest = iter(inputs)
        bound = self._numbers | {place: getattr(self, f"weight{place}") for place in self._tensors}
        return self._call(*(bound[place] if place in bound else next(rest) for place in range(self._arguments)))
