"""Moves zero padding into the convolution that reads it: pad(x) ─► conv(padding=p) becomes conv(x, padding=p + pad)."""

from __future__ import annotations

from dataclasses import replace

from ansor.graph.ir import Graph, Node, Rewriter

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


def fold_padding(graph: Graph) -> Graph:
    """The graph with zero padding of spatial dimensions inside convolutions (channels first)."""
    write = Rewriter(graph)
    pads = {node.name: node for node in graph if node.op == "pad" and node.number("value") == 0}
    for node in graph:
        pad = pads.get(node.inputs[0]) if node.op in CONVOLUTIONS else None
        if pad is None or any(pad.integers("before")[:2]) or any(pad.integers("after")[:2]):
            write.keep(node)
            continue
        inputs = (write.now(pad.inputs[0]), *map(write.now, node.inputs[1:]))
        write.add(replace(node.having(padding=_joined(node, pad)), inputs=inputs))
    return write.finished()


def _joined(node: Node, pad: Node) -> tuple[int, ...]:
    more = pad.integers("before")[2:] + pad.integers("after")[2:]
    return tuple(one + other for one, other in zip(node.integers("padding"), more, strict=True))
