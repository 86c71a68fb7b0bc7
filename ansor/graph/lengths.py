"""Networks for inputs of any length up to that of the example inputs: sequences of words, for example.

Shorter inputs are padded, and the network gets their length. Elements beyond it are computed like any others, but nothing before it may depend on them: where
a sum, a maximum or a product runs over the sequence, they are replaced by what does not change its result.

    words ─► embedding ─► dense ─► scores ─► where ─► softmax      made for 128 words, called with 100: all 128 rows are
                                              ▲                    computed, and the softmax of a row is over 100 scores
                                            length

The model is read for two lengths. The two graphs must be equal up to extents; so the extents that differ are those that follow the length, and numbers that
were computed from a length are found. Which elements of an array lie beyond the end is derived from its operands, node by node (`ansor.graph.length_rules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.graph.ir import Array, Graph, Node, Rewriter, Value, unused
from ansor.graph.spans import Span, Spans, before

LENGTH = "length"
"""The name of the input that is added, unless it is taken."""

LENGTH_VALUE = Value((1,), "int32")


@dataclass(frozen=True)
class AnyLength:
    """A graph with the length as its last input, int32 of shape (1,). ends: the spans of each output; least: the smallest length that it may be called with."""

    graph: Graph
    ends: tuple[Spans, ...]
    least: int


@dataclass(frozen=True)
class Pair:
    """A graph for two lengths: the graph to rewrite, for the longer one, and the other, to compare with."""

    graph: Graph
    other: Graph
    length: int
    shorter: int

    def spans_of(self, shape: tuple[int, ...], other: tuple[int, ...]) -> Spans | None:
        """The dimensions in which two shapes differ, if all of them are the sequence itself; else None."""
        if len(shape) != len(other):
            return None
        found = [axis for axis, (one, two) in enumerate(zip(shape, other, strict=True)) if one != two]
        return tuple(map(Span, found)) if all((shape[axis], other[axis]) == (self.length, self.shorter) for axis in found) else None


class NotForAnyLength(ModelError):
    """Results of a model for shorter inputs do not follow from its graph. why: what the model does."""

    def __init__(self, why: str) -> None:
        super().__init__(f"asked for a network of any length of a model that {why}; compile it for each length")
        self.why = why


class Masks:
    """Writes the new graph, and knows the spans of every array of the old one. Mutable, and private to one run."""

    def __init__(self, pair: Pair) -> None:
        name = unused(LENGTH, pair.graph.values)
        self.pair, self.least = pair, 1
        self.write = Rewriter(replace(pair.graph, inputs={**pair.graph.inputs, name: LENGTH_VALUE}))
        self.length = name
        self._spans: dict[str, Spans] = {}
        self._masks: dict[tuple[int, int, int], str] = {}
        self._masked: dict[tuple[str, Spans, float, str], str] = {}

    def learn(self, name: str, spans: Spans) -> None:
        """Remember the spans of an array. Raises ModelError if they do not explain its shape in both graphs."""
        for one, length in ((self.pair.graph, self.pair.length), (self.pair.other, self.pair.shorter)):
            shape = one.value(name).shape
            if any(shape[span.axis] != span.extent(length) for span in spans):
                raise NotForAnyLength(f"has an array, {name}, whose shape does not follow the length")
        fixed = set(range(len(self.pair.graph.value(name).shape))) - {span.axis for span in spans}
        if any(self.pair.graph.value(name).shape[axis] != self.pair.other.value(name).shape[axis] for axis in fixed):
            raise NotForAnyLength(f"has an array, {name}, whose shape {self.pair.graph.value(name).shape} follows the length in an unknown way")
        self._spans[name] = tuple(sorted(spans, key=lambda span: span.axis))

    def spans(self, name: str) -> Spans:
        """The spans of an array that an earlier node made, an input, or a constant. Raises ModelError for a constant that no length explains."""
        if name not in self._spans and name in self.pair.graph.constants:
            self.learn(name, _of_constant(name, self.pair))
        return self._spans[name]

    def raise_least(self, least: int) -> None:
        """Note that shorter inputs lack an element that the model reads."""
        self.least = max(self.least, least)

    def number(self, like: Value, factor: int = 1) -> str:
        """The length times a factor, for arithmetic with an array."""
        write, name = self.write, self.length
        if not like.shape:
            name = write.add(Node(write.fresh("length_alone"), "reshape", (name,), (), LENGTH_VALUE.dtype))
        shape = write.values[name].shape
        if like.dtype != LENGTH_VALUE.dtype:
            name = write.add(Node(write.fresh("length_as"), "cast", (name,), shape, like.dtype))
        if factor == 1:
            return name
        return write.add(Node(write.fresh("times"), "mul", (name,), shape, like.dtype, {"scalar": factor, "scalar_first": False}))

    def masked(self, name: str, spans: Spans, value: float, made: str = "") -> str:
        """An array of the old graph, under its new name, with `value` in the elements that lie beyond the end of one of these spans. made: an array of the new
        graph of the same shape, to be masked instead."""
        key = name, spans, value, made
        if key not in self._masked:
            found, old = made or self.write.now(name), self.pair.graph.value(name)
            for span in spans:
                inside = self._inside(span, len(old.shape), old.shape[span.axis])
                attributes = {"scalar": value, "scalar_first": False}
                found = self.write.add(Node(self.write.fresh(f"{name}_inside"), "where", (inside, found), old.shape, old.dtype, attributes))
            self._masked[key] = found
        return self._masked[key]

    def _inside(self, span: Span, rank: int, extent: int) -> str:
        """Whether an element lies before the end of a span, in a shape that broadcasts: `[extent, 1, ...]`."""
        shape = (extent, *(1,) * (rank - span.axis - 1))
        key = span.outer, span.inner, len(shape)
        if key not in self._masks:
            places = np.arange(extent, dtype=np.int32) // span.inner % self.pair.length
            known = self.write.constant("places", places.reshape(shape))
            self._masks[key] = self.write.add(Node(self.write.fresh("inside"), "lt", (known, self.length), shape, "bool"))
        return self._masks[key]


def _of_constant(name: str, pair: Pair) -> Spans:
    """The spans of a constant. Raises ModelError unless what it has for the shorter length is what the longer one has before that end."""
    one, two = pair.graph.constants[name], pair.other.constants[name]
    if one.shape == two.shape:
        if _same(one, two):
            return ()
        raise NotForAnyLength(f"computes a constant, {name}, from the length")
    candidates = [pair.spans_of(one.shape, two.shape), *_repeated(one.shape, two.shape, pair)]
    for spans in candidates:
        if spans is not None and _same(before(one, spans, pair.length, pair.shorter), two):
            return spans
    raise NotForAnyLength(f"computes a constant, {name}, whose elements depend on the length")


def _repeated(one: tuple[int, ...], two: tuple[int, ...], pair: Pair) -> list[Spans]:
    """Ways in which a single dimension can be several sequences, or a sequence of several elements each."""
    differ = [axis for axis in range(len(one)) if len(one) == len(two) and one[axis] != two[axis]]
    if len(differ) != 1 or one[differ[0]] % pair.length:
        return []
    times = one[differ[0]] // pair.length
    if two[differ[0]] != times * pair.shorter:
        return []
    return [(Span(differ[0], outer=times),), (Span(differ[0], inner=times),)]


def _same(one: Array, two: Array) -> bool:
    """Whether two arrays hold the same bits; weights that two graphs share need no comparison."""
    if one.__array_interface__["data"] == two.__array_interface__["data"] and one.strides == two.strides:
        return True
    return one.dtype == two.dtype and np.array_equal(_bits(one), _bits(two))


def _bits(array: Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def inputs_of(pair: Pair) -> Mapping[str, Spans]:
    """The spans of the inputs, whose shapes differ in the length only. Raises ModelError if another extent differs."""
    found: dict[str, Spans] = {}
    for name, value in pair.graph.inputs.items():
        spans = pair.spans_of(value.shape, pair.other.inputs[name].shape)
        if spans is None:
            raise NotForAnyLength(f"takes the input {name} with shapes of which not only the length differs")
        found[name] = spans
    return found
