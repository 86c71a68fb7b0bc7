"""The passes that run before a graph is divided into tasks, in order. Each maps a graph to a graph."""

from __future__ import annotations

from collections.abc import Callable

from ansor.graph.ir import Graph
from ansor.graph.passes.batch_norm import fold_batch_norm
from ansor.graph.passes.branches import fold_branches
from ansor.graph.passes.channels_last import channels_last
from ansor.graph.passes.padding import fold_padding
from ansor.graph.passes.padding_taps import trim_padding_taps
from ansor.graph.passes.pointwise import pointwise_products
from ansor.graph.passes.reshapes import sink_reshapes
from ansor.graph.passes.shared_operands import share_operands

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    fold_batch_norm,  # first: it looks for a norm right after its convolution
    fold_padding,
    fold_branches,  # after both: norms and paddings of branches are then in the convolutions
    trim_padding_taps,  # after that: sums of kernels need them whole
    channels_last,  # does not handle batch norms
    share_operands,
    sink_reshapes,  # after that: layouts turn some transpositions into reshapes
    pointwise_products,  # last: its reshapes stay where they are
)


def optimised(graph: Graph) -> Graph:
    """The graph after all passes."""
    for step in PASSES:
        graph = step(graph)
    return graph
