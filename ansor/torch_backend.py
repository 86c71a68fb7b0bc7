"""`torch.compile(model, backend="ansor")`: graphs that Dynamo captures run as compiled networks; those that cannot be compiled run in PyTorch.

Dynamo passes a graph to the backend and calls the result with the graph's inputs, including weights. A network is compiled for each new combination of shapes
and weights, usually on the first call with it. https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ansor.api import CompileKeywords, compile_sharing
from ansor.errors import ArgumentError, ModelError
from ansor.graph.any_length import Calls, extract_lengths
from ansor.graph.lengths import NotForAnyLength
from ansor.graph.network import CompiledNetwork
from ansor.graph.shared_constants import SharedConstants
from ansor.graph.spans import Padding, padding_of
from ansor.graph.tasks import ExtractedGraph, extract
from ansor.graph.traced import argument_text, state_text, traced_text, weight_text
from ansor.graph.weights import WeightState
from ansor.networks import background, kept_networks
from ansor.networks.dynamic_graph import DynamicGraph, dynamic_graph
from ansor.networks.kept_tuning import TUNED
from ansor.networks.model_runs import alike
from ansor.networks.number_tensors import as_numbers, with_numbers
from ansor.networks.padded import PaddedNetwork, length_for, lengths_to_try, others_of, shortest_for
from ansor.support import kept_data, safe_files
from ansor.support.bfloat16 import array_of
from ansor.support.forked import Locked
from ansor.support.notices import warn
from ansor.support.text import clip, did_you_mean

KEPT_OPTIONS = {"library", "seed", "progress", "records"}
"""With any other option (measurements, callbacks), networks are not cached for other processes."""

MEASURES = {"trials", "minutes", "report"}
"""With one of these options, time passes between reading a network's weights and packing them, so they are copied when they are read."""

BACKGROUND_MINUTES = 5
BESIDE_BACKGROUND = {"threads", "library", "seed", "progress"}
"""Options allowed with background tuning, whose records are in the cache folder."""

UNTUNED = "this part is not tuned in the background, because it cannot be cached: parts of it have no text form"

MOST_NETWORKS = 64
"""The most networks of one graph, over all its shapes and all modules of its class; calls that would need more run in PyTorch."""
SHAPES_AT_ONCE, NUMBERS_AT_ONCE, CALLS = 8, 2, 3
"""A module's first 8 shapes are compiled on their first call. Later shapes, which may not recur, are compiled on their third call."""
MOST_COUNTED = 4096
"""The most shapes whose calls are counted. When exceeded, counting starts over."""

SHARED = SharedConstants()
"""Those of all networks. Dynamo makes several graphs of a model, for changing shapes for example, and each graph has networks of its own."""

Graph = Callable[..., Any]


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[object], *, options: Mapping[str, Any] | None = None, mode: str | None = None) -> Graph:
    """Dynamo's backend interface.

    options: `threads`, `tune` ('background'), `pad` (True: extents that vary are padded, for fewer networks), and keyword arguments of `ansor.compile`
    (trials, minutes, records, ...). Nothing is measured without trials, minutes or `tune`. Raises ArgumentError for other options, and for any mode but
    'default'.
    """
    if mode not in (None, "default"):
        raise ArgumentError(f"asked for mode {mode!r} of the backend ansor, which has no modes; give options, such as {{'trials': 500}}")
    given = dict(options or {})
    known = {"threads", "tune", "pad", *CompileKeywords.__annotations__}
    if unknown := sorted(given.keys() - known):
        hint = did_you_mean(unknown[0], known)
        raise ArgumentError(f"asked for the option {unknown[0]!r}, which the backend ansor does not have{hint}; it takes {', '.join(sorted(known))}")
    pad = given.pop("pad", False)
    if not isinstance(pad, bool):
        raise ArgumentError(f"asked for the option pad={pad!r} of the backend ansor; give True or False")
    minutes = _background_minutes(given)
    if pad and minutes is not None:
        raise ArgumentError("asked for the options tune='background' and pad of the backend ansor, which exclude each other; leave one out")
    threads = given.pop("threads", None)
    target = "cpu" if threads is None else f"cpu -threads={threads}"
    places = [place for place, one in enumerate(example_inputs) if _is_weight(one)]
    return _Networks(graph, places, target, {"progress": False, **given}, minutes, dynamic_graph(graph) if pad else None)


def _background_minutes(given: dict[str, Any]) -> float | None:
    """Remove the options of background tuning, and return its minutes, or None if it is not requested. Raises ArgumentError for options that conflict."""
    tune = given.pop("tune", None)
    if tune is None:
        return None
    if tune != "background":
        raise ArgumentError(f"asked for the option tune={tune!r} of the backend ansor; give 'background', or leave it out")
    minutes = given.pop("minutes", BACKGROUND_MINUTES)
    if not isinstance(minutes, int | float) or not 0 < minutes < float("inf"):
        raise ArgumentError(f"asked to tune in the background for minutes={minutes!r}; give a number above 0")
    if other := sorted(given.keys() - BESIDE_BACKGROUND):
        raise ArgumentError(f"asked for the options tune='background' and {other[0]}; background tuning allows minutes, {', '.join(sorted(BESIDE_BACKGROUND))}")
    return float(minutes)


def _is_weight(given: object) -> bool:
    """Whether it is a parameter or buffer of a module: the same tensor in each call."""
    return isinstance(given, torch.Tensor) and (isinstance(given, torch.nn.Parameter) or hasattr(given, "_dynamo_static_input_type"))


@dataclass
class _CachedNetwork:
    """A network, or None if PyTorch runs the calls. `strides`: those of the results, where they differ from the strides that networks return.

    `weights`: their state when the network was made, or at a later call. `outdated`: whether they have changed since the network was made. `alive`: weak
    references to them, which discard this entry when a weight dies. `name`: its key in the cache, "" if there is nothing to tune. `padding`: how it is called,
    if it takes padded inputs.
    """

    network: CompiledNetwork | None
    strides: tuple[tuple[int, ...] | None, ...] = ()
    weights: WeightState | None = None
    outdated: bool = False
    alive: tuple[weakref.ref[torch.Tensor], ...] = ()
    name: str = ""
    padding: Padding | None = None

    def __call__(self, tensors: Sequence[torch.Tensor], length: int | None = None) -> tuple[Any, ...]:
        assert self.network is not None
        if self.padding is not None:
            assert length is not None
            padded: Callable[..., Any] = PaddedNetwork(self.network, self.padding)
            return tuple(padded((tuple(tensors), {}), length))
        network: Callable[..., Any] = self.network
        results = zip(network(*tensors), self.strides, strict=True)
        return tuple(one if strides is None else one.new_empty_strided(one.shape, strides).copy_(one) for one, strides in results)


class _NotPadded(Exception):
    """Calls of a graph cannot be padded. ever: to any length."""

    def __init__(self, why: str, *, ever: bool = True) -> None:
        super().__init__(why)
        self.ever = ever


class _Networks(Locked):
    """A Dynamo graph, compiled into a network for each combination of shapes and weights of its calls. Modules of one class share a graph."""

    def __init__(
        self, graph: torch.fx.GraphModule, weights: Sequence[int], target: str, options: Mapping[str, Any], minutes: float | None = None,
        dynamic: DynamicGraph | None = None,
    ) -> None:  # fmt: skip
        """`minutes`: of background tuning; None: no background tuning. `dynamic`: what varies, if calls are padded."""
        super().__init__()
        self._minutes, self._dynamic, self._unpadded = minutes, dynamic, frozenset[int]()
        self._graph, self._numbers = with_numbers(graph)
        self._weights, self._target, self._options = frozenset(weights), target, options
        self._made: dict[tuple[object, ...], _CachedNetwork] = {}
        self._said: set[str] = set()
        self._calls: Counter[tuple[object, ...]] = Counter()
        calls = [node for part in graph.modules() if isinstance(part, torch.fx.GraphModule) for node in part.graph.nodes if node.op == "call_function"]
        self._transforms = any("functorch" in str(getattr(node.target, "__module__", "")) for node in calls)
        self._asks_for_gradients = any(node.target is torch._C._set_grad_enabled and node.args == (True,) for node in calls)

    def __call__(self, *arguments: Any) -> Any:
        given = as_numbers(arguments, self._numbers)
        if why := self._reason(given):
            self._say(why)
            return self._graph(*given)
        dynamic = self._dynamic
        if dynamic is not None and (length := dynamic.length(given)) is not None and length_for(length) not in self._unpadded:
            return self._padded_call(given, dynamic, length)
        made, results = self._network(given)
        if results is not None:
            return results
        if made is None:
            return self._graph(*given)
        return made(self._inputs(given))

    def _padded_call(self, given: Sequence[Any], dynamic: DynamicGraph, length: int) -> Any:
        padded = dynamic.of_length(given, length_for(length))
        try:
            made, _ = self._network(padded, dynamic)
        except _NotPadded as why:
            self._end_padding(length_for(length), why)
            return self(*given)
        if made is None or made.padding is None or length < made.padding.least:
            return self._graph(*given)
        return made(self._inputs(padded), length)

    def _end_padding(self, length: int, why: _NotPadded) -> None:
        """Stop padding to this length, or at all."""
        with self.lock:
            if self._dynamic is None or length in self._unpadded:
                return
            self._unpadded |= {length}
            if why.ever:
                self._dynamic = None
            to = "" if why.ever else f" to the length {length}"
            warn(f"torch.compile with ansor: calls are not padded{to}, so each shape has its own network: {why}")

    def _inputs(self, given: Sequence[Any]) -> list[torch.Tensor]:
        """The arguments that are neither weights nor numbers."""
        return [one for place, one in enumerate(given) if place not in self._weights and isinstance(one, torch.Tensor)]

    def _say(self, why: str) -> None:
        """Warn once per reason."""
        if why not in self._said:
            self._said.add(why)
            warn(f"torch.compile with ansor: {why}; PyTorch runs this part")

    def _reason(self, given: Sequence[Any]) -> str:
        """Why PyTorch has to run a call; empty if it does not."""
        if self._transforms:
            return "it is transformed by torch.func"
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        if (torch.is_grad_enabled() or self._asks_for_gradients) and any(one.requires_grad for one in tensors):
            return "gradients are asked for; call it under torch.no_grad() or torch.inference_mode()"
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(one).tangent is not None for one in tensors):  # type: ignore[no-untyped-call]  # PyTorch has no types for it
            return "forward gradients are asked for"
        other = next((one.device for one in tensors if one.device.type != "cpu"), None)
        return "" if other is None else f"its tensors are on {other}"

    def _network(self, given: Sequence[Any], dynamic: DynamicGraph | None = None) -> tuple[_CachedNetwork | None, Any]:
        """The network for a call, or None if PyTorch has to run it; and the call's results, if they were computed while compiling.

        dynamic: what varies, if the call is padded. Raises _NotPadded if it cannot be."""
        weights = tuple(given[place] for place in sorted(self._weights))
        inputs = (one for place, one in enumerate(given) if place not in self._weights)
        key = (*map(id, weights), tuple(_kind(given[place]) for place in sorted(self._numbers)), dynamic is not None, *map(_kind, inputs))
        with self.lock:
            made = self._made.get(key)
            if made is None and len(self._made) >= MOST_NETWORKS:
                self._say(f"it was already called with {MOST_NETWORKS} other combinations of shapes and weights")
                return None, None
            if made is None and dynamic is None and (others := self._others(key, len(weights))):
                self._say(f"it was already called with {others}, so a new one is compiled on its {CALLS}rd call")
                return None, None
            if made is not None and made.weights is not None and not made.weights.is_of(weights):
                self._say("weights have changed since the last call; a network is compiled once they stop changing")
                made.weights, made.outdated = WeightState(weights), True
                return None, None
            results = None
            if made is None or made.outdated:
                made, results = self._compiled(given, weights, dynamic)
                made.alive = tuple(weakref.ref(one, partial(self._forget, key)) for one in weights)
                self._made[key] = made
                self._tune(key, made)
            return made if made.network is not None else None, results

    def _others(self, key: tuple[object, ...], weights: int) -> str:
        """Which other calls are compiled instead of a new one that does not recur; empty to compile it. key: as in `_network`: ids of weights, numbers, ..."""
        known = [one for one in self._made if one[:weights] == key[:weights]]
        numbers = {one[weights] for one in known} - {key[weights]}
        if len(known) < SHAPES_AT_ONCE and len(numbers) < NUMBERS_AT_ONCE:
            return ""
        if len(self._calls) >= MOST_COUNTED:
            self._calls.clear()
        self._calls[key] += 1
        if self._calls[key] >= CALLS:
            return ""
        return f"{NUMBERS_AT_ONCE} other numbers" if len(numbers) >= NUMBERS_AT_ONCE else f"{SHAPES_AT_ONCE} other shapes"

    def _tune(self, key: tuple[object, ...], made: _CachedNetwork) -> None:
        """Request a faster network, if background tuning is on."""
        if self._minutes is None or made.network is None or not made.name:
            return
        owner = weakref.ref(self)

        def better() -> None:
            networks = owner()
            if networks is not None:
                networks._take(key, made)

        job = {"name": made.name, "target": self._target, "minutes": self._minutes, "torch_threads": torch.get_num_threads(),
               "library": bool(self._options.get("library", True)), "seed": self._options.get("seed", 0)}  # fmt: skip
        background.tune(background.TuningRequest(job, better, lambda line: warn(f"torch.compile with ansor: {line}")))

    def _take(self, key: tuple[object, ...], made: _CachedNetwork) -> None:
        """Replace the network with the one now in the cache, unless weights have changed or change meanwhile. The next call uses the new one."""
        weights = [one.detach() for alive in made.alive if (one := alive()) is not None]  # `.data` of the originals may be set to other memory and back
        if len(weights) < len(made.alive) or not self._holds(key, made, weights):
            return
        found = kept_networks.found(made.name, self._target, [_array(one) for one in weights], SHARED)
        with self.lock:
            if found is not None and found.network is not None and self._holds(key, made, weights):
                made.network = found.network

    def _holds(self, key: tuple[object, ...], made: _CachedNetwork, weights: Sequence[torch.Tensor]) -> bool:
        """Whether a network is still in use for its calls, and these are the weights that it was made with."""
        with self.lock:
            return self._made.get(key) is made and not made.outdated and made.weights is not None and made.weights.is_of(weights)

    def _forget(self, key: tuple[object, ...], _: object) -> None:
        """Called when a weight dies: another tensor may get its id."""
        self._made.pop(key, None)

    def _compiled(self, given: Sequence[Any], weights: Sequence[torch.Tensor], dynamic: DynamicGraph | None) -> tuple[_CachedNetwork, Any]:
        """Compile a network for such a call; if that fails, warn and leave the network out. Also returns PyTorch's results if the call must not run twice."""
        name, state = self._name(given, weights, dynamic), WeightState(weights)
        kept = self._kept(name, weights, state) if name else None
        if kept is not None:
            return kept, None
        lines: list[str] = []
        try:
            extracted, padding = self._read(given, lines.append, dynamic)
            network = compile_sharing(extracted, (), self._target, SHARED, **self._options)
        except _NotPadded:
            raise
        except Exception as error:  # PyTorch can run this in any case
            self._say(_in_brief(error))
            return _CachedNetwork(None), None
        finally:
            for line in lines:
                warn(line)
        if dynamic is not None and padding is not None:
            made = self._tried_padded(_CachedNetwork(network, weights=state, padding=padding), dynamic, given)
        else:
            numbers = torch.get_rng_state()
            results, why = self._tried(given)
            if why:
                self._say(why)
                self._keep(self._renamed(name, given, weights, dynamic), {"why": why}, weights)
                return _CachedNetwork(None), results
            torch.set_rng_state(numbers)
            made = _CachedNetwork(network, tuple(map(_strides, results)), state)
        if state.is_of(weights):
            about = {"why": "", "strides": made.strides, "lines": lines, "padding": None if padding is None else asdict(padding)}
            made.name = name
            self._keep(self._renamed(name, given, weights, dynamic), about, weights, extracted, network)
        if self._minutes is not None and not name and UNTUNED not in self._said:
            self._said.add(UNTUNED)
            warn(f"torch.compile with ansor: {UNTUNED}")
        return made, None

    def _read(
        self, given: Sequence[Any], say: Callable[[str], None], dynamic: DynamicGraph | None
    ) -> tuple[ExtractedGraph, Padding | None]:  # fmt: skip
        """What is to be compiled for such a call. Raises _NotPadded if it is padded, and cannot be."""
        borrowed = not self._options.keys() & MEASURES
        bound = {place: one for place, one in enumerate(given) if place in self._weights or not isinstance(one, torch.Tensor)}
        module = _Bound(self._graph, bound, len(given), dynamic).eval()
        length = dynamic.length(given) if dynamic is not None else None
        if dynamic is None or length is None:
            return extract(module, tuple(one.detach() for one in self._inputs(given)), say, borrowed=borrowed), None
        lengths = (length, *others_of(length, shortest_for(length)))
        calls: Calls = {one: (tuple(self._inputs(dynamic.of_length(given, one))), {}) for one in lengths}
        try:
            made = extract_lengths(module, calls, say, borrowed=borrowed)
        except ModelError as error:
            if isinstance(error, NotForAnyLength):
                raise _NotPadded(f"it {error.why}") from error
            raise _NotPadded(_in_brief(error), ever=False) from error
        return made.network, made.padding

    def _tried(self, given: Sequence[Any]) -> tuple[Any, str]:
        """PyTorch's results, and why a network must not replace it, which its graph may not show; empty if it may. Errors of the graph go to the caller."""
        before = WeightState(_tensors(given))
        results = self._graph(*given)
        return results, "it writes to its inputs or weights" if not before.is_of(_tensors(given)) else _apart(given, results)

    def _tried_padded(self, made: _CachedNetwork, dynamic: DynamicGraph, given: Sequence[Any]) -> _CachedNetwork:
        """The network, if it computes shorter calls as PyTorch does; raises _NotPadded if not. given: a call that is padded."""
        assert made.padding is not None
        numbers, length = torch.get_rng_state(), made.padding.length
        copies = [one.clone() if isinstance(one, torch.Tensor) and not isinstance(one, torch.nn.Parameter) else one for one in given]
        try:
            results, why = self._tried(copies)
            if any(_strides(one) is not None for one in results):
                why = "a result has its dimensions in another order in memory"
            for one in () if why else lengths_to_try(length, min(max(shortest_for(length), made.padding.least), length)):
                if not alike(made(self._inputs(given), one), self._graph(*dynamic.of_length(copies, one))):
                    why = f"results for the length {one} are not those of the operators for {length}"
        except Exception as error:  # the user's call need not fail
            raise _NotPadded(_in_brief(error), ever=False) from error
        finally:
            torch.set_rng_state(numbers)
        if why:
            raise _NotPadded(why)
        return made

    def _name(self, given: Sequence[Any], weights: Sequence[torch.Tensor], dynamic: DynamicGraph | None) -> str:
        """The key of such a network in the cache; empty if it cannot be cached, for example because something it depends on has no text form."""
        if not kept_data.ENABLED or self._options.keys() - KEPT_OPTIONS:
            return ""
        try:
            words = [traced_text(self._graph), state_text()]
            words += [argument_text(one) for place, one in enumerate(given) if place not in self._weights]
            words += [weight_text(one) for one in weights] if None not in words else []
            records = self._options.get("records")
            recorded = safe_files.digest(Path(records).read_bytes()) if records is not None and Path(records).exists() else ""
            told = (self._target, sorted(self._weights), self._options.get("library", True), self._options.get("seed", 0), recorded, self._minutes is not None,
                    dynamic and (sorted(dynamic.axes.items()), sorted(dynamic.numbers)))  # fmt: skip
            return "" if None in words else kept_networks.name_of(self._target, [*told, *words])
        except Exception:  # unusual tensors may raise anything; compiling reports mistakes in the options
            return ""

    def _renamed(self, name: str, given: Sequence[Any], weights: Sequence[torch.Tensor], dynamic: DynamicGraph | None) -> str:
        """The key of a network after it was compiled: comparisons may have been added to the records, of which the key has a digest."""
        return self._name(given, weights, dynamic) if name and "records" in self._options else name

    def _kept(self, name: str, weights: Sequence[torch.Tensor], state: WeightState) -> _CachedNetwork | None:
        """The network that another process made for such a call."""
        found = kept_networks.found(name, self._target, [_array(one) for one in weights], SHARED)
        if found is None:
            return None
        if found.network is None:
            self._say(found.about["why"])
            return _CachedNetwork(None)
        for line in found.about["lines"]:
            warn(line)
        strides = tuple(None if one is None else tuple(one) for one in found.about["strides"])
        padding = found.about.get("padding")
        return _CachedNetwork(found.network, strides, state, name="" if found.about.get(TUNED) else name, padding=padding and padding_of(padding))

    def _keep(
        self, name: str, about: object, weights: Sequence[torch.Tensor], extracted: ExtractedGraph | None = None, network: CompiledNetwork | None = None
    ) -> None:
        """Cache the network for other processes."""
        if name:
            kept_networks.keep(name, about, [_array(one) for one in weights], extracted, network, self._target)


def _in_brief(error: Exception) -> str:
    return clip(" ".join(str(error).split()), 300)


def _array(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.generic]] | None:
    """A weight's memory; None if NumPy has no such dtype."""
    try:
        return array_of(tensor.detach())
    except (TypeError, RuntimeError):
        return None


def _kind(given: object) -> object:
    """The properties of an input that a network depends on."""
    if not isinstance(given, torch.Tensor):
        return type(given), repr(given) if isinstance(given, float) else given  # 0.0 equals -0.0, and no NaN another one
    return given.shape, given.dtype, given.stride() if given.layout is torch.strided else given.layout


def _tensors(given: Sequence[object]) -> list[torch.Tensor]:
    return [one for one in given if isinstance(one, torch.Tensor)]


def _apart(given: Sequence[object], results: Sequence[object]) -> str:
    """Why a network's results, which are always new and dense, would be wrong: views must change with their base. Empty if they would be right."""
    if any(one.layout is not torch.strided for one in (*_tensors(given), *_tensors(results))):
        return "a tensor is not dense"
    places = [one.untyped_storage().data_ptr() for one in _tensors(results) if one.numel()]
    if not {one.untyped_storage().data_ptr() for one in _tensors(given)}.isdisjoint(places):
        return "a result shares memory with an input"
    return "two results share memory" if len(set(places)) < len(places) else ""


def _strides(result: object) -> tuple[int, ...] | None:
    """The strides of a dense result whose dimensions are in another order in memory, since views of it rely on them; None for other results."""
    if not isinstance(result, torch.Tensor) or result.is_contiguous():
        return None
    return result.stride() if torch.empty_like(result, device="meta").stride() == result.stride() else None


class _Bound(torch.nn.Module):
    """A graph with its weights bound, and with the numbers that depend on a call's shapes."""

    def __init__(self, graph: torch.fx.GraphModule, bound: Mapping[int, Any], arguments: int, dynamic: DynamicGraph | None = None) -> None:
        """dynamic: numbers that are extents of the inputs are taken from them, so that the graph can be read for several lengths."""
        super().__init__()
        self._call, self._arguments, self._dynamic = graph, arguments, dynamic
        self._numbers = {place: one for place, one in bound.items() if not isinstance(one, torch.Tensor)}
        self._tensors = [place for place in bound if place not in self._numbers]
        for place in self._tensors:
            self.register_buffer(f"weight{place}", bound[place].detach())

    def forward(self, *inputs: torch.Tensor) -> Any:
        rest = iter(inputs)
        bound = self._numbers | {place: getattr(self, f"weight{place}") for place in self._tensors}
        given = [bound[place] if place in bound else next(rest) for place in range(self._arguments)]
        if self._dynamic is not None and (length := self._dynamic.length(given)) is not None:
            given = [length if place in self._dynamic.numbers else one for place, one in enumerate(given)]
        return self._call(*given)
