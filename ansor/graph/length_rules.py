"""What each kind of node does to the dimensions that follow the length, and which of its operands must be masked beyond the end (`ansor.graph.lengths`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from ansor.graph.ir import ELEMENTWISE, Node, Value
from ansor.graph.lengths import LENGTH_VALUE, AnyLength, Masks, NotForAnyLength, Pair, inputs_of
from ansor.graph.spans import Span, Spans, span_at
from ansor.te.expr import computed


@dataclass(frozen=True)
class Step:
    """A node of the graph to rewrite, and the same node for the other length."""

    node: Node
    other: Node
    masks: Masks

    def shape(self, place: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.masks.pair.graph.value(self.node.inputs[place]).shape

    def spans(self, place: int) -> Spans:
        """The spans of an operand."""
        return self.masks.spans(self.node.inputs[place])

    def keep(self, *inputs: str) -> None:
        """Write the node, with other operands if given, under their names in the new graph."""
        self.masks.write.add(replace(self.node, inputs=inputs or tuple(map(self.masks.write.now, self.node.inputs))))

    def masked(self, place: int, axes: Sequence[int], value: float) -> str:
        """An operand with `value` beyond the end in these dimensions."""
        spans = tuple(one for one in self.spans(place) if one.axis in axes)
        return self.masks.masked(self.node.inputs[place], spans, value)

    def cast(self, name: str, value: Value, dtype: str) -> str:
        """An array of the new graph in another dtype."""
        write = self.masks.write
        return name if value.dtype == dtype else write.add(Node(write.fresh(f"{name}_{dtype}"), "cast", (name,), value.shape, dtype))

    def finish(self, operands: Sequence[str], op: str = "") -> None:
        """Write the node as an operation without attributes on two operands, in the dtype that bfloat16 is computed in if it is of that dtype."""
        node, write, op = self.node, self.masks.write, op or self.node.op
        if computed(node.dtype) == node.dtype:
            write.add(Node(node.name, op, tuple(operands), node.shape, node.dtype))
            return
        found = write.add(Node(write.fresh(f"{node.name}_{op}"), op, tuple(operands), node.shape, computed(node.dtype)))
        write.add(Node(node.name, "cast", (found,), node.shape, node.dtype))

    def places(self, place: int, span: Span | None = None) -> str:
        """An operand that holds indices, 0 beyond the end, where what is computed need not be an index. span: that of the dimension that they index, if it
        follows the length: indices beyond its end become indices beyond its whole extent, which calls find out of range."""
        masks, name = self.masks, self.node.inputs[place]
        value = masks.pair.graph.value(name)
        if name in masks.pair.graph.constants or (name in masks.pair.graph.inputs and span is None):
            return masks.write.now(name)
        axes = range(len(value.shape))
        if span is None:
            return self.masked(place, axes, 0)
        inside = masks.write.add(Node(masks.write.fresh("known"), "lt", (masks.write.now(name), masks.number(value)), value.shape, "bool"))
        attributes = {"scalar": span.extent(masks.pair.length), "scalar_first": False}
        found = masks.write.add(Node(masks.write.fresh("found"), "where", (inside, masks.write.now(name)), value.shape, value.dtype, attributes))
        return masks.masked(name, self.spans(place), 0, found)

    def refused(self, what: str) -> NotForAnyLength:
        return NotForAnyLength(f"{what} (in `{self.node}`)")


Rule = Callable[[Step], Spans]
"""Writes a node, and returns the spans of its result. Raises ModelError for what shorter inputs would change."""


def with_any_length(pair: Pair) -> AnyLength:
    """The graph for inputs of any length. Raises ModelError if the model's results for shorter inputs do not follow from the graph."""
    _check_alike(pair)
    masks = Masks(pair)
    for name, spans in inputs_of(pair).items():
        masks.learn(name, spans)
    for node, other in zip(pair.graph, pair.other, strict=True):
        step = Step(node, other, masks)
        if not any(masks.spans(name) for name in node.inputs) and node.shape == other.shape and node.attributes == other.attributes:
            step.keep()
            masks.learn(node.name, ())
            continue
        rule = RULES.get(node.op)
        if rule is None:
            call = node.attributes.get("call", node.op) if node.op == "torch" else node.op
            raise NotForAnyLength(f"computes `{getattr(call, 'operator', call)}` of its sequence, which is not supported")
        if node.attributes != other.attributes and node.op not in OWN_ATTRIBUTES:
            raise step.refused("computes a number from the length")
        masks.learn(node.name, rule(step))
    ends = tuple(map(masks.spans, pair.graph.outputs))
    return AnyLength(masks.write.finished(), ends, masks.least)


def _check_alike(pair: Pair) -> None:
    """Raises ModelError unless both graphs have the same nodes."""
    one, two = ([(node.name, node.op, node.inputs, node.dtype) for node in graph] for graph in (pair.graph, pair.other))
    if one != two or pair.graph.outputs != pair.other.outputs or pair.graph.constants.keys() != pair.other.constants.keys():
        differ = next((f" (`{a[1]}` and `{b[1]}`)" if a[1] != b[1] else f" (in `{a[1]}`)" for a, b in zip(one, two, strict=False) if a != b), "")
        raise NotForAnyLength(f"computes differently for {pair.length} and for {pair.shorter} elements{differ}")


def _broadcast(step: Step) -> Spans:
    """Every element of the result depends on the same element of each operand, with broadcasting."""
    found: dict[int, Span] = {}
    for place in range(len(step.node.inputs)):
        skipped = len(step.node.shape) - len(step.shape(place))
        for span in step.spans(place):
            axis = span.axis + skipped
            if found.setdefault(axis, span.at(axis)) != span.at(axis):
                raise step.refused("mixes elements of different places in its sequence")
    for place in range(len(step.node.inputs)):
        skipped = len(step.node.shape) - len(step.shape(place))
        fixed = [axis for axis, extent in enumerate(step.shape(place)) if extent > 1 and not span_at(step.spans(place), axis)]
        if any(axis + skipped in found for axis in fixed):
            raise step.refused("mixes its sequence with something of a fixed length")
    return tuple(found.values())


def _elementwise(step: Step) -> Spans:
    spans, node = _broadcast(step), step.node
    scalars = node.attributes.get("scalar"), step.other.attributes.get("scalar")
    if node.attributes != step.other.attributes:
        _with_length(step, scalars)
    else:
        step.keep()
    return step.spans(0) if node.op == "cast" else spans


def _with_length(step: Step, scalars: tuple[object, object]) -> None:
    """Write a node whose only attribute that differs, its scalar, is the length: as a node of two operands."""
    node, pair = step.node, step.masks.pair
    if scalars != (pair.length, pair.shorter) or node.op == "where" or node.attributes.keys() != {"scalar", "scalar_first"}:
        raise step.refused("computes a number from the length")
    given = pair.graph.value(node.inputs[0])
    data = step.cast(step.masks.write.now(node.inputs[0]), given, computed(given.dtype))
    operands = data, step.masks.number(Value(given.shape, computed(given.dtype)))
    step.finish(operands[::-1] if node.attributes["scalar_first"] else operands)


def _reshape(step: Step) -> Spans:
    step.keep()
    return tuple(_in_shape(step, span) for span in step.spans(0))


def _in_shape(step: Step, span: Span) -> Span:
    """A span of the operand in the shape of the result: its elements keep their order in memory."""
    length = step.masks.pair.length
    apart = span.inner * prod(step.shape(0)[span.axis + 1 :])  # of neighbours in the sequence
    shape = step.node.shape
    for axis in range(len(shape) - 1, -1, -1):
        inside = prod(shape[axis + 1 :])
        if shape[axis] > 1 and inside <= apart < inside * shape[axis]:
            inner, rest = divmod(apart, inside)
            outer, more = divmod(shape[axis], length * inner)
            if not rest and not more:
                return Span(axis, outer, inner, span.zero)
    raise step.refused("divides its sequence into parts")


def _transpose(step: Step) -> Spans:
    step.keep()
    axes = step.node.integers("axes")
    return tuple(replace(span, axis=axes.index(span.axis)) for span in step.spans(0))


def _expand(step: Step) -> Spans:
    """Dimensions of extent 1 may become the sequence."""
    step.keep()
    skipped = len(step.node.shape) - len(step.shape(0))
    moved = tuple(span.at(span.axis + skipped) for span in step.spans(0))
    known = {span.axis for span in moved}
    shape, other = (tuple(0 if axis in known else extent for axis, extent in enumerate(one.shape)) for one in (step.node, step.other))
    more = step.masks.pair.spans_of(shape, other)
    if more is None:
        raise step.refused("repeats elements as often as follows from the length")
    return (*moved, *more)


def _concat(step: Step) -> Spans:
    axis = step.node.integer("axis") % len(step.node.shape)
    spans = [tuple(one.at(one.axis) for one in step.spans(place)) for place in range(len(step.node.inputs))]
    if any(one != spans[0] for one in spans) or span_at(spans[0], axis):
        raise step.refused("joins its sequence with something else")
    step.keep()
    return spans[0]


def _slice(step: Step) -> Spans:
    """Dimensions of the sequence are kept whole, or lose all but some elements at the start or at the end."""
    from_end: tuple[int, int] | None = None
    kept = []
    starts, steps, others = step.node.integers("starts"), step.node.integers("steps"), step.other.integers("starts")
    if steps != step.other.integers("steps"):
        raise step.refused("computes a number from the length")
    for axis, (start, by) in enumerate(zip(starts, steps, strict=True)):
        span, extent = span_at(step.spans(0), axis), step.node.shape[axis]
        fixed = extent == step.other.shape[axis]
        if span is None and start == others[axis]:
            continue
        if span is None:
            raise step.refused("computes a number from the length")
        if span.extent(step.masks.pair.length) == extent and not fixed:
            kept.append(span)
        elif span.plain and fixed and start == others[axis]:
            step.masks.raise_least(start + (extent - 1) * by + 1)
        elif span.plain and fixed and by == 1 and start - others[axis] == step.masks.pair.length - step.masks.pair.shorter and from_end is None:
            from_end = axis, step.masks.pair.length - start
        else:
            raise step.refused("takes a part of its sequence")
    if from_end is None:
        step.keep()
    else:
        _take_from_end(step, *from_end)
    return tuple(kept)


def _take_from_end(step: Step, axis: int, back: int) -> None:
    """Write a slice as a look-up: elements from `length - back` on. Other dimensions are sliced first."""
    write, node = step.masks.write, step.node
    step.masks.raise_least(back)
    count, data = node.shape[axis], write.now(node.inputs[0])
    whole = (*node.shape[:axis], step.shape(0)[axis], *node.shape[axis + 1 :])
    if whole != step.shape(0):
        starts = tuple(0 if one == axis else start for one, start in enumerate(node.integers("starts")))
        data = write.add(replace(node, name=write.fresh(node.name), shape=whole, inputs=(data,)).having(starts=starts))
    known = write.constant("behind", np.arange(count, dtype=np.int32) - back)
    places = write.add(Node(write.fresh("places"), "add", (known, step.masks.length), (count,), LENGTH_VALUE.dtype))
    write.add(replace(node, op="index", inputs=(data, places), attributes={"dims": (axis,), "at": axis, "common": 1}))


def _pad(step: Step) -> Spans:
    before, after = step.node.integers("before"), step.node.integers("after")
    if any(before[span.axis] or after[span.axis] for span in step.spans(0)):
        raise step.refused("pads its sequence")
    step.keep()
    return tuple(span.at(span.axis) for span in step.spans(0))


def _embedding(step: Step) -> Spans:
    """Rows of a table, which may be the sequence."""
    table = _indexed(step, 0)
    if len(step.spans(0)) > (table is not None):
        raise step.refused("looks up elements of its sequence")
    step.keep(step.masks.write.now(step.node.inputs[0]), step.places(1, table))
    return tuple(span.at(span.axis) for span in step.spans(1))


def _gather(step: Step) -> Spans:
    axis = step.node.integer("axis") % len(step.node.shape)
    others = (tuple(span.at(span.axis) for span in step.spans(place) if span.axis != axis) for place in (0, 1))
    if len(set(others)) > 1:
        raise step.refused("looks up elements of its sequence")
    step.keep(step.masks.write.now(step.node.inputs[0]), step.places(1, _indexed(step, axis)))
    return tuple(span.at(span.axis) for span in step.spans(1))


def _index(step: Step) -> Spans:
    node, dims, at, common = step.node, step.node.integers("dims"), step.node.integer("at"), step.node.integer("common")
    found: dict[int, Span] = {}
    places = [step.places(place, _indexed(step, dim, place)) for place, dim in enumerate(dims, 1)]
    for place in range(1, len(node.inputs)):
        for span in step.spans(place):
            axis = at + common - len(step.shape(place)) + span.axis
            if found.setdefault(axis, span.at(axis)) != span.at(axis):
                raise step.refused("mixes elements of different places in its sequence")
    rest = [axis for axis in range(len(node.shape)) if not at <= axis < at + common]
    of_data = [dim for dim in range(len(step.shape(0))) if dim not in dims]
    step.keep(step.masks.write.now(node.inputs[0]), *places)
    kept = ((axis, span_at(step.spans(0), dim)) for axis, dim in zip(rest, of_data, strict=True))
    return (*found.values(), *(span.at(axis) for axis, span in kept if span))


def _indexed(step: Step, axis: int, place: int = 1) -> Span | None:
    """The span of a dimension of the first operand that another operand indexes. Raises ModelError if that is not the sequence alone, or for constant indices
    that are not known to lie before the end wherever they are themselves."""
    span = span_at(step.spans(0), axis)
    if span is None:
        return None
    if not span.plain:
        raise step.refused("looks up elements of its sequence")
    constant = step.masks.pair.graph.constants.get(step.node.inputs[place])
    if constant is not None:
        _check_constant(step, place, constant.astype(np.int64))
    return span


def _check_constant(step: Step, place: int, known: NDArray[np.int64]) -> None:
    """Raises ModelError unless constant indices into the sequence lie before its end: they are positions, for example, or the first elements."""
    spans = step.spans(place)
    if not spans:
        step.masks.raise_least(int(known.max()) + 1)
        return
    own = spans[0]
    positions = np.arange(known.shape[own.axis]) // own.inner % step.masks.pair.length
    if len(spans) > 1 or (known > positions.reshape(-1, *(1,) * (known.ndim - own.axis - 1))).any():
        raise step.refused("looks up elements of its sequence")


def _dense(step: Step) -> Spans:
    """[rows, inner] by [columns, inner]."""
    inner = span_at(step.spans(0), 1) or span_at(step.spans(1), 1)
    if inner and step.node.op != "dense":
        raise step.refused("adds up integers of its sequence")
    step.keep(*_factors(step, (1, 1)), *map(step.masks.write.now, step.node.inputs[2:]))
    return (*_of_axis(step, 0, 0, 0), *_of_axis(step, 1, 0, 1))


def _batch_matmul(step: Step) -> Spans:
    """[batch, rows, inner] by [batch, columns, inner] or [batch, inner, columns]."""
    inner, columns = (2, 1) if step.node.attributes["transpose_b"] else (1, 2)
    batch = _of_axis(step, 0, 0, 0)
    if batch != _of_axis(step, 1, 0, 0):
        raise step.refused("mixes elements of different places in its sequence")
    step.keep(*_factors(step, (2, inner)))
    return (*batch, *_of_axis(step, 0, 1, 1), *_of_axis(step, 1, columns, 2))


def _factors(step: Step, inner: tuple[int, int]) -> tuple[str, str]:
    """The factors of a product, both 0 beyond the end in the dimension that is added up: there, the other one may hold anything.

    The weights of a softmax are 0 there already, or NaN, if all elements before the end are NaN, too, and with them the product.
    """
    left, right = (span_at(step.spans(place), axis) for place, axis in enumerate(inner))
    if (left is None) != (right is None) or (left and right and left.at(0) != right.at(0)):
        raise step.refused("mixes its sequence with something of a fixed length")
    first = step.masks.write.now(step.node.inputs[0]) if left and left.zero else step.masked(0, inner[:1], 0.0)
    second = step.masks.write.now(step.node.inputs[1]) if right and right.zero else step.masked(1, inner[1:], 0.0)
    return first, second


def _of_axis(step: Step, place: int, axis: int, result: int) -> Spans:
    """The span of a dimension of an operand, as a dimension of the result."""
    span = span_at(step.spans(place), axis)
    return () if span is None else (span.at(result),)


NEUTRAL: Mapping[str, float] = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -inf, "min": inf, "argmax": -inf, "argmin": inf}
"""What does not change the result of a reduction."""


def _reduction(step: Step) -> Spans:
    node, axes = step.node, step.node.integers("axes")
    over = [span for span in step.spans(0) if span.axis in axes]
    if over and node.op.startswith("arg") and (len(axes) > 1 or not over[0].plain):
        raise step.refused("numbers elements of more than its sequence")
    neutral = NEUTRAL[node.op]
    if over and abs(neutral) == inf and not _is_float(step):
        neutral = _extreme(step, neutral)
    data = step.masked(0, axes, neutral) if over else step.masks.write.now(node.inputs[0])
    if over and node.op == "mean":
        _mean(step, data, axes, over)
    else:
        step.keep(data)
    keeps = bool(node.attributes["keepdims"])
    moved = {span: span.axis - (0 if keeps else sum(axis < span.axis for axis in axes)) for span in step.spans(0) if span.axis not in axes}
    return tuple(span.at(axis) for span, axis in moved.items())


def _is_float(step: Step) -> bool:
    return "float" in step.masks.pair.graph.value(step.node.inputs[0]).dtype


def _extreme(step: Step, neutral: float) -> int:
    """The least or the largest integer of a dtype, or flag."""
    dtype = step.masks.pair.graph.value(step.node.inputs[0]).dtype
    if dtype == "bool":
        return int(neutral > 0)
    limits = np.iinfo(dtype)
    return int(limits.min if neutral < 0 else limits.max)


def _mean(step: Step, data: str, axes: Sequence[int], over: Sequence[Span]) -> None:
    """Write a mean as a sum, divided by the number of elements before the end."""
    if len(over) > 1:
        raise step.refused("averages over pairs of elements of its sequence")
    node, write, dtype = step.node, step.masks.write, computed(step.node.dtype)
    data = step.cast(data, Value(step.shape(0), node.dtype), dtype)
    total = write.add(replace(node, name=write.fresh(f"{node.name}_sum"), op="sum", inputs=(data,), dtype=dtype))
    count = step.masks.number(Value(node.shape, dtype), prod(step.shape(0)[axis] for axis in axes) // step.masks.pair.length)
    step.finish((total, count), "div")


def _softmax(step: Step) -> Spans:
    axis = step.node.integer("axis")
    step.keep(step.masked(0, (axis,), -inf))
    return tuple(replace(span.at(span.axis), zero=span.axis == axis and step.node.op == "softmax") for span in step.spans(0))


def _normalised(step: Step) -> Spans:
    if any(span.axis in step.node.integers("axes") for span in step.spans(0)) or any(step.spans(place) for place in range(1, len(step.node.inputs))):
        raise step.refused("normalises over its sequence")
    step.keep()
    return tuple(span.at(span.axis) for span in step.spans(0))


def _batch_norm(step: Step) -> Spans:
    if span_at(step.spans(0), 1):
        raise step.refused("has its sequence in place of channels")
    step.keep()
    return tuple(span.at(span.axis) for span in step.spans(0))


def _running(step: Step) -> Spans:
    """An element depends on those before it only."""
    span = span_at(step.spans(0), step.node.integer("axis"))
    if span and not span.plain:
        raise step.refused("adds up several sequences one after another")
    step.keep()
    return tuple(one.at(one.axis) for one in step.spans(0))


def _convolution(step: Step) -> Spans:
    """Convolutions along the sequence keep its length, and read zeros beyond the end as they read padding."""
    node, layout = step.node, step.node.text("layout")
    if any(step.spans(place) for place in range(1, len(node.inputs))):
        raise step.refused("computes the weights of a convolution from its sequence")
    strides, padding, dilation = (node.integers(key) for key in ("strides", "padding", "dilation"))
    kernel = step.shape(1)[2:]
    for span in step.spans(0):
        place = span.axis - 2
        if layout[span.axis] == "C" or (place >= 0 and not span.plain):
            raise step.refused("convolves several sequences at once")
        if place < 0:
            continue
        added = padding[place] + padding[place + len(kernel)]
        if strides[place] != 1 or added != dilation[place] * (kernel[place] - 1):
            raise step.refused("changes the length of its sequence by a convolution")
    spatial = range(2, 2 + len(kernel))
    step.keep(step.masked(0, spatial, 0.0), *map(step.masks.write.now, node.inputs[1:]))
    return tuple(span.at(span.axis) for span in step.spans(0))


def _of_images(step: Step) -> Spans:
    """Images are independent of each other; the sequence is the batch."""
    if any(span.axis > 0 for span in step.spans(0)) or any(step.spans(place) for place in range(1, len(step.node.inputs))):
        raise step.refused(f"computes `{step.node.op}` along its sequence")
    step.keep()
    return tuple(span.at(span.axis) for span in step.spans(0))


IMAGES = [f"{op}{rank}d{kind}" for op, kind in (("pool", ""), ("adaptive_pool", ""), ("conv", "_transpose")) for rank in (1, 2, 3)]

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "reshape": _reshape, "transpose": _transpose, "expand": _expand, "concat": _concat, "slice": _slice, "pad": _pad,
    "embedding": _embedding, "gather": _gather, "index": _index,
    **dict.fromkeys(("dense", "integer_dense"), _dense), "batch_matmul": _batch_matmul,
    **dict.fromkeys(NEUTRAL, _reduction), **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    "layer_norm": _normalised, "batch_norm": _batch_norm, **dict.fromkeys(("cumsum", "cumprod"), _running),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution), **dict.fromkeys(IMAGES, _of_images),
}  # fmt: skip

OWN_ATTRIBUTES = ELEMENTWISE | {"slice"}
"""Operators whose rules compare attributes themselves."""

