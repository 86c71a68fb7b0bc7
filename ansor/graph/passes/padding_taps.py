"""Leaves out the outer taps of a constant kernel that read nothing but padding, along each dimension.

    14 x 14, 3x3 kernel, dilation 24, padding 24      becomes      1x1 kernel, no padding

Pyramids of dilated convolutions have them where the image is small: DeepLab (Chen et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ansor.graph.ir import Graph, Node, Rewriter
from ansor.graph.passes.padding import CONVOLUTIONS


def trim_padding_taps(graph: Graph) -> Graph:
    """The graph with smaller kernels where outer taps read nothing but padding."""
    write = Rewriter(graph)
    for node in graph:
        dimensions = _dimensions(graph, node) if node.op in CONVOLUTIONS and node.inputs[1] in graph.constants else []
        if any(one.is_shorter for one in dimensions) and np.isfinite(graph.constants[node.inputs[1]]).all():  # times padding, infinity is not 0
            _trim(write, node, dimensions)
        else:
            write.keep(node)
    return write.finished()


@dataclass(frozen=True)
class _Dimension:
    """A convolution along one dimension. extent: of the data; before, after: the padding."""

    extent: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    def reads(self, tap: int) -> bool:
        """Whether a tap reads any element of the data."""
        return any(0 <= place * self.stride + tap * self.dilation - self.before < self.extent for place in range(self.outputs))

    @property
    def kept(self) -> range:
        """The taps that stay. What a kernel begins or ends with is left out only together with padding: padding is never negative."""
        first, end = 0, self.taps
        while end - first > 1 and not self.reads(first) and (first + 1) * self.dilation <= self.before:
            first += 1
        while end - first > 1 and not self.reads(end - 1) and (self.taps - end + 1) * self.dilation <= self.after:
            end -= 1
        return range(first, end)

    @property
    def is_shorter(self) -> bool:
        """Whether any tap is left out."""
        return len(self.kept) < self.taps

    @property
    def trimmed(self) -> _Dimension:
        """The same results by the kept taps alone."""
        kept, dilation = self.kept, self.dilation
        return replace(self, taps=len(kept), dilation=dilation if len(kept) > 1 else 1,
                       before=self.before - kept.start * dilation, after=self.after - (self.taps - kept.stop) * dilation)  # fmt: skip


def _dimensions(graph: Graph, node: Node) -> list[_Dimension]:
    data, kernel, padding = graph.value(node.inputs[0]).shape, graph.constants[node.inputs[1]].shape, node.integers("padding")
    rank = len(data) - 2
    return [_Dimension(*numbers) for numbers in zip(data[2:], node.shape[2:], kernel[2:], node.integers("strides"), node.integers("dilation"),
                                                    padding[:rank], padding[rank:], strict=True)]  # fmt: skip


def _trim(write: Rewriter, node: Node, dimensions: Sequence[_Dimension]) -> None:
    kept: tuple[slice, ...] = (slice(None), slice(None), *(slice(one.kept.start, one.kept.stop) for one in dimensions))
    weight = write.graph.constants[node.inputs[1]][kept]
    shorter = [one.trimmed for one in dimensions]
    padding = (*(one.before for one in shorter), *(one.after for one in shorter))
    inputs = (write.now(node.inputs[0]), write.constant(node.inputs[1], weight), *map(write.now, node.inputs[2:]))
    write.add(replace(node.having(padding=padding, dilation=tuple(one.dilation for one in shorter)), inputs=inputs))
