"""Makes convolutions and pools run with channels last: NHWC data, HWIO weights.

Each array of the old graph is channels first, by PyTorch's convention. The pass keeps a channels-last twin, in addition to it or instead of it:

    input ─► transpose ─► conv ─► relu ─► pool ─► … ─► mean ─► dense
    NCHW                  NHWC    NHWC    NHWC         NC

Convolutions and pools read the twin and make one. Elementwise nodes, concatenation, slices, padding, expansion, look-ups of places, softmax and reductions make
one if an operand has only a twin. Everything else reads the array itself, which a transposition makes from the twin. A transposition that moves only dimensions
of extent 1 is a reshape, which costs nothing. Weights are permuted here, once. One and three spatial dimensions work the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ansor.graph.ir import ELEMENTWISE, Graph, Node, Rewriter, moves_nothing

LAST = {"NCW": "NWC", "NCHW": "NHWC", "NCDHW": "NDHWC"}


def to_last(rank: int) -> tuple[int, ...]:
    """Axes of the transposition from channels first to channels last: (0, 2, 3, 1) for rank 4."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """Axes of the transposition from channels last to channels first: (0, 3, 1, 2) for rank 4."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(graph: Graph) -> Graph:
    """The graph with channels-last convolutions and pools; inputs and outputs stay as they were."""
    return _ChannelsLast(graph).run()


class _ChannelsLast:
    """One run of the pass. `last` and `first` map an old array to the names of its two forms in the new graph, if they exist."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.write = Rewriter(graph)
        self.last: dict[str, str] = {}
        self.first: dict[str, str] = {name: name for name in (*graph.inputs, *graph.constants)}

    def run(self) -> Graph:
        for node in self.graph:
            rule = self._rule(node)
            if rule is None or not rule(node):
                self._keep(node)
        for name in self.graph.outputs:
            self.write.forward(name, self.as_first(name))
        return self.write.finished()

    def _rule(self, node: Node) -> Callable[[Node], bool] | None:
        if "layout" in node.attributes:
            return self._windowed
        rules = {"transpose": self._transpose, "reshape": self._reshape}
        if node.op in rules:
            return rules[node.op]
        if not any(name in self.last and name not in self.first for name in node.inputs):
            return None
        if node.op in ELEMENTWISE:
            return self._elementwise
        others = {"concat": self._concat, "pad": self._pad, "slice": self._slice, "softmax": self._softmax, "log_softmax": self._softmax,
                  "expand": self._expand, "index": self._index}
        return self._reduction if node.op in ("mean", "sum", "max", "min", "prod") else others.get(node.op)

    # The two forms of an array

    def as_first(self, name: str) -> str:
        """The array in its original layout, in the new graph."""
        if name not in self.first:
            shape = self.graph.value(name).shape
            self.first[name] = self._transposed(self.last[name], to_first(len(shape)), f"{name}_channels_first")
        return self.first[name]

    def as_last(self, name: str) -> str:
        """The array with channels last, in the new graph."""
        if name not in self.last:
            rank = len(self.graph.value(name).shape)
            self.last[name] = self._transposed(self.first[name], to_last(rank), f"{name}_channels_last")
        return self.last[name]

    def _transposed(self, name: str, axes: tuple[int, ...], hint: str) -> str:
        value = self.write.values[name]
        shape = tuple(value.shape[axis] for axis in axes)
        array = self.write.constant_array(name)
        if array is not None:
            return self.write.constant(hint, array.transpose(axes))  # copied once, when it is packed
        if axes == tuple(range(len(axes))):
            return name
        if moves_nothing(value.shape, axes):
            return self.write.reshaped(name, shape, hint)
        return self.write.add(Node(self.write.fresh(hint), "transpose", (name,), shape, value.dtype, {"axes": axes}))

    def _keep(self, node: Node) -> None:
        self.write.add(replace(node, inputs=tuple(map(self.as_first, node.inputs))))
        self.first[node.name] = node.name

    def _made_last(self, node: Node, inputs: Sequence[str], **attributes: object) -> bool:
        """Adds the channels-last form of a node under the node's name."""
        shape = tuple(node.shape[axis] for axis in to_last(len(node.shape)))
        self.last[node.name] = self.write.add(replace(node.having(**attributes), inputs=tuple(inputs), shape=shape))
        return True

    # One rule for each kind of node: True if it made a channels-last form

    def _windowed(self, node: Node) -> bool:
        inputs = [self.as_last(node.inputs[0])]
        if node.op.startswith("conv"):
            rank = len(node.shape)
            spatial = tuple(range(2, rank))
            # OIHW, or IOHW for transposed convolutions, to HWIO
            order = spatial + ((0, 1) if node.op.endswith("_transpose") else (1, 0))
            inputs.append(self._transposed(self.as_first(node.inputs[1]), order, f"{node.name}_weight_last"))
            inputs += map(self.as_first, node.inputs[2:])
        return self._made_last(node, inputs, layout=LAST[node.text("layout")])

    def _elementwise(self, node: Node) -> bool:
        rank = len(node.shape)
        if rank < 3:
            return False
        return self._made_last(node, [self._operand(name, rank) for name in node.inputs])

    def _operand(self, name: str, rank: int) -> str:
        """A channels-last operand of a broadcasting node of this rank."""
        value = self.graph.value(name)
        if len(value.shape) == rank:
            return self.as_last(name)
        if value.size == 1:
            return self.as_first(name)
        wide = (1,) * (rank - len(value.shape)) + value.shape
        return self._transposed(self.write.reshaped(self.as_first(name), wide, f"{name}_wide"), to_last(rank), f"{name}_channels_last")

    def _concat(self, node: Node) -> bool:
        return self._made_last(node, list(map(self.as_last, node.inputs)), axis=to_last(len(node.shape)).index(node.integer("axis")))

    def _pad(self, node: Node) -> bool:
        return self._made_last(node, [self.as_last(node.inputs[0])], before=_permuted(node, "before"), after=_permuted(node, "after"))

    def _slice(self, node: Node) -> bool:
        return self._made_last(node, [self.as_last(node.inputs[0])], starts=_permuted(node, "starts"), steps=_permuted(node, "steps"))

    def _softmax(self, node: Node) -> bool:
        return self._made_last(node, [self.as_last(node.inputs[0])], axis=to_last(len(node.shape)).index(node.integer("axis")))

    def _expand(self, node: Node) -> bool:
        if len(self.graph.value(node.inputs[0]).shape) != len(node.shape):
            return False
        return self._made_last(node, [self.as_last(node.inputs[0])])

    def _index(self, node: Node) -> bool:
        dims, at = node.integers("dims"), node.integer("at")
        if node.inputs[0] not in self.last or min(*dims, at) < 2:  # only places of images are looked up, as when they are resized
            return False
        return self._made_last(node, [self.as_last(node.inputs[0]), *map(self.as_first, node.inputs[1:])], dims=tuple(dim - 1 for dim in dims), at=at - 1)

    def _reduction(self, node: Node) -> bool:
        order = to_last(len(self.graph.value(node.inputs[0]).shape))
        axes = node.integers("axes")
        given = self.as_last(node.inputs[0])
        moved = tuple(sorted(order.index(axis) for axis in axes))
        left = [axis for axis in order if axis not in axes]
        if node.attributes["keepdims"]:
            return self._made_last(node, [given], axes=moved)
        if left != sorted(left):  # channels and some spatial dimension are left, so the result has a channels-last form itself
            return 0 in left and self._made_last(node, [given], axes=moved)
        self.first[node.name] = self.write.add(replace(node.having(axes=moved), inputs=(given,)))
        return True

    def _transpose(self, node: Node) -> bool:
        source, axes = node.inputs[0], node.integers("axes")
        rank = len(axes)
        if source in self.last and source not in self.first:
            order = to_last(rank)
            self.first[node.name] = self._transposed(self.last[source], tuple(order.index(axis) for axis in axes), node.name)
            return True
        if rank < 3 or axes != to_first(rank):
            return False
        self.last[node.name] = self.as_first(source)  # a reader that needs the array itself transposes it then
        return True

    def _reshape(self, node: Node) -> bool:
        source = node.inputs[0]
        if source not in self.last or source in self.first:
            return False
        given, old, new = self.last[source], self.graph.value(source).shape, node.shape
        if moves_nothing(self.write.values[given].shape, to_first(len(old))):
            self.first[node.name] = self.write.reshaped(given, new, node.name)
            return True
        if len(new) >= 3 and new[:2] == old[:2]:  # only spatial dimensions are joined or split
            self.last[node.name] = self.write.reshaped(given, (new[0], *new[2:], new[1]), node.name)
            return True
        return False


def _permuted(node: Node, key: str) -> tuple[int, ...]:
    values = node.integers(key)
    return tuple(values[axis] for axis in to_last(len(values)))
