"""Reads a model as a network for inputs of any length between two: `ansor.graph.lengths`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.export import CallArguments, Report
from ansor.graph.from_torch import Signature, TorchModel, from_torch
from ansor.graph.ir import unused
from ansor.graph.length_rules import with_any_length
from ansor.graph.lengths import LENGTH, AnyLength, NotForAnyLength, Pair
from ansor.graph.opened import opened
from ansor.graph.passes.pipeline import optimised
from ansor.graph.spans import Padding
from ansor.graph.tasks import ExtractedGraph, with_graph
from ansor.support.garbage import uncollected
from ansor.support.text import first_line

Calls = Mapping[int, CallArguments]
"""Calls of a model whose inputs have the same shapes but for one extent, by that length: first the one to read, then one to compare it with, or several in
order of preference, for models that do not take every length."""


@dataclass(frozen=True)
class ExtractedLengths:
    """A network for inputs of any length up to that of its padding."""

    network: ExtractedGraph
    padding: Padding


def extract_lengths(model: object, asked: Calls, report: Report | None = None, *, borrowed: bool = False) -> ExtractedLengths:
    """Read a model for two lengths; report, borrowed: as in `from_torch`. Raises ModelError if it cannot be read, or not for any length."""
    length = next(iter(asked))
    with uncollected():
        whole = _read(model, asked[length], report, borrowed=borrowed)
        made = _compared(model, whole, asked)
        args, kwargs = asked[length]
        parameters = () if whole.signature.parameters is None else whole.signature.parameters.parameters
        keyword = unused(LENGTH, {*kwargs, *parameters})
        examples = args, {**kwargs, keyword: np.asarray([length], np.int32)}
        signature = _with_length(whole.signature, list(made.graph.inputs)[-1], examples)
        extracted = ExtractedGraph(made.graph, signature, (), (), whole.torch_calls, examples, whole.watched)
        leaves = [made.ends[leaf] if isinstance(leaf, int) else None for leaf in signature.output_leaves]
        return ExtractedLengths(with_graph(extracted, optimised(made.graph)), Padding(keyword, tuple(leaves), length, made.least))


def _compared(model: object, whole: TorchModel, calls: Calls) -> AnyLength:
    """The graph for any length, by comparison with the first of the shorter calls that the model takes. Raises ModelError unless the length of each call before
    that one turns out to be less than what the model needs."""
    length, *others = calls
    failed: list[tuple[int, ModelError]] = []
    for shorter in others:
        try:
            other = _read_shorter(model, calls[shorter], shorter)
            if other.signature.output_leaves != whole.signature.output_leaves:
                raise NotForAnyLength("returns a number that follows from the length")
            made = with_any_length(Pair(whole.graph, other.graph, length, shorter))
        except ModelError as error:
            failed.append((shorter, error))
            continue
        unexplained = [error for tried, error in failed if tried >= made.least]
        if unexplained:
            raise unexplained[0]
        return made
    raise failed[-1][1]  # that of the length nearest to the one to read


def _read_shorter(model: object, call: CallArguments, length: int) -> TorchModel:
    try:
        return _read(model, call, lambda line: None, borrowed=True)
    except ModelError as error:
        raise NotForAnyLength(f"cannot be read for the length {length} ({first_line(error)})") from error


def _read(model: object, call: CallArguments, report: Report | None, *, borrowed: bool) -> TorchModel:
    args, kwargs = call
    if args and kwargs:
        raise ModelError("asked for a network of any length with positional and keyword arguments together; give one kind")
    return from_torch(model, kwargs or args, report, borrowed=borrowed)


def _with_length(signature: Signature, name: str, examples: CallArguments) -> Signature:
    """The signature for such a call, whose last keyword argument is the input `name` of the graph."""
    _, tree = pytree.tree_flatten(opened(examples) if signature.opened else examples)
    return replace(signature, input_tree=tree, input_leaves=(*signature.input_leaves, name), parameters=None)

