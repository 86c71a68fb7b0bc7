"""Which arrays of a graph are computed row by row: the rows of a batch, each from the same row of the inputs and from arrays that all rows share.

    images ─► conv2d ─► reshape ─► dense        with 8 images, each array is 8 equal parts of memory, one for each image
                 ▲                   ▲
              weights             weights       shared

An array is *in rows* if its first extent is a multiple of the number of rows, and its parts of that many elements are computed from one row each. It is
*shared* if it depends on no row, and *mixed* if it is neither, or is not known to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansor.graph.ir import ELEMENTWISE, Graph, Node, Value

Operands = Sequence[tuple[Value, bool]]
"""The operands of a node, and whether each is in rows; the others are shared."""

Rule = Callable[[Node, Operands], bool]
"""Whether the result is in rows."""


@dataclass(frozen=True)
class Rows:
    """The arrays of a graph that are in rows, and those that are mixed. All others are shared. count: the number of rows.

    repeated: constants that have the same values for each row, as PyTorch folds masks and positions. Some nodes read them in rows (`reads`).
    """

    count: int
    inside: frozenset[str]
    mixed: frozenset[str]
    repeated: frozenset[str]

    def reads(self, node: Node, name: str, value: Value) -> bool:
        """Whether a node reads this operand in rows."""
        return _operand(node, value, name in self.inside, name in self.repeated)[1]


def rows_of(graph: Graph) -> Rows | None:
    """The rows of a graph, whose number is the first extent of its first input; None if there are fewer than two.

    Inputs with that many rows are in rows, others are shared. If that is not what they mean, arrays are found to be mixed.
    """
    shapes = [value.shape for value in graph.inputs.values() if value.shape]
    count = shapes[0][0] if shapes else 0
    if count < 2:
        return None
    inside = {name for name, value in graph.inputs.items() if value.shape[:1] == (count,)}
    repeated, mixed = _repeated(graph, count), set[str]()
    for node in graph:
        operands = [_operand(node, graph.value(name), name in inside, name in repeated) for name in node.inputs]
        if node.op == "torch" or any(name in mixed for name in node.inputs):
            mixed.add(node.name)
        elif _in_rows(node, operands, count):
            inside.add(node.name)
        elif any(name in inside for name in node.inputs):
            mixed.add(node.name)
    return Rows(count, frozenset(inside), frozenset(mixed), repeated)


def _repeated(graph: Graph, count: int) -> frozenset[str]:
    """The constants with the same values for each row, among those that a node may read in rows."""
    may = {name for node in graph for name in node.inputs if name in graph.constants and _may_repeat(node, graph.value(name))}
    bits = {name: np.ascontiguousarray(graph.constants[name]).view(np.uint8) for name in may if graph.constants[name].shape[0] % count == 0}
    parts = {name: array.reshape(count, -1) for name, array in bits.items()}  # bits, since 0.0 == -0.0
    return frozenset(name for name, array in parts.items() if bool((array == array[:1]).all()))


def _operand(node: Node, value: Value, inside: bool, repeated: bool) -> tuple[Value, bool]:
    """An operand of a node, and whether the node reads it in rows."""
    return value, inside or (repeated and _may_repeat(node, value))


def _may_repeat(node: Node, value: Value) -> bool:
    """Whether this constant operand may stand for rows: it has the first dimension of the result."""
    same = len(value.shape) == len(node.shape) > 0 and value.shape[0] == node.shape[0]
    return same and (node.op in ELEMENTWISE or node.op == "concat")


def _in_rows(node: Node, operands: Operands, count: int) -> bool:
    if not node.shape or not node.shape[0] or node.shape[0] % count:
        return False
    if node.op == "expand":  # a shared operand may be repeated for each row
        return _broadcasts(node, operands)
    rule = RULES.get(node.op)
    return rule is not None and any(inside for _, inside in operands) and rule(node, operands)


def _reshapes(node: Node, operands: Operands) -> bool:
    """Always: the order of the elements stays, and the new first extent is a multiple of the number of rows."""
    return True


def _first_kept(node: Node, operands: Operands) -> bool:
    """For operators that read element i of the first dimension of their first operand for element i of the result; other operands are shared."""
    (data, inside), *others = operands
    return inside and data.shape[0] == node.shape[0] and not any(other for _, other in others)


def _all_kept(node: Node, operands: Operands) -> bool:
    """The same if all operands are read in that way."""
    return all(inside and value.shape[0] == node.shape[0] for value, inside in operands)


def _broadcasts(node: Node, operands: Operands) -> bool:
    """Each operand has the result's first extent and is in rows, or is the same for all elements of the first dimension."""
    return all(inside == (len(value.shape) == len(node.shape) and value.shape[0] == node.shape[0]) for value, inside in operands)


def _batch_first(node: Node, operands: Operands) -> bool:
    return node.text("layout").startswith("N") and _first_kept(node, operands)


def _not_over_first(node: Node, operands: Operands) -> bool:
    rank = len(operands[0][0].shape)
    axes = node.integers("axes") if "axes" in node.attributes else (node.integer("axis"),)
    return 0 not in (axis % rank for axis in axes) and _first_kept(node, operands)


def _transposes(node: Node, operands: Operands) -> bool:
    return node.integers("axes")[0] == 0


def _pads(node: Node, operands: Operands) -> bool:
    return node.integers("before")[0] == node.integers("after")[0] == 0


def _concatenates(node: Node, operands: Operands) -> bool:
    return node.integer("axis") % len(node.shape) != 0 and _all_kept(node, operands)


def _slices(node: Node, operands: Operands) -> bool:
    return node.integers("starts")[0] == 0 and node.integers("steps")[0] == 1 and _first_kept(node, operands)


def _looks_up(node: Node, operands: Operands) -> bool:
    (_, table_inside), (indices, inside) = operands
    return inside and not table_inside and indices.shape[0] == node.shape[0]


def _gathers(node: Node, operands: Operands) -> bool:
    return node.integer("axis") % len(node.shape) != 0 and _all_kept(node, operands)


def _indexes(node: Node, operands: Operands) -> bool:
    return 0 not in node.integers("dims") and node.integer("at") > 0 and _first_kept(node, operands)


RULES: Mapping[str, Rule] = {
    "reshape": _reshapes,
    **dict.fromkeys(ELEMENTWISE, _broadcasts),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), _batch_first),
    **dict.fromkeys(("pool1d", "pool2d", "pool3d", "adaptive_pool1d", "adaptive_pool2d", "adaptive_pool3d"), _batch_first),
    **dict.fromkeys(("dense", "integer_dense"), _first_kept),
    "batch_matmul": _all_kept,
    **dict.fromkeys(("mean", "sum", "max", "min", "prod", "argmax", "argmin"), _not_over_first),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "layer_norm"), _not_over_first),
    "transpose": _transposes,
    "pad": _pads,
    "concat": _concatenates,
    "slice": _slices,
    "embedding": _looks_up,
    "gather": _gathers,
    "index": _indexes,
}
