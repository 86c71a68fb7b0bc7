from __future__ import annotations

import numpy as np
import pytest

from ansor.errors import ModelError
from ansor.graph.ir import Graph, Node, Rewriter, Value, moves_nothing, unused


def example() -> Graph:
    nodes = (
        Node("a", "relu", ("x",), (2, 3), "float32"),
        Node("lost", "exp", ("x",), (2, 3), "float32"),
        Node("b", "add", ("a", "c"), (2, 3), "float32"),
    )
    return Graph({"x": Value((2, 3), "float32")}, {"c": np.ones(3, np.float32), "d": np.ones(4, np.float32)}, nodes, ("b",))


def test_pruning_drops_what_no_output_needs() -> None:
    graph = example().pruned()
    assert [node.name for node in graph] == ["a", "b"]
    assert list(graph.constants) == ["c"]
    assert list(graph.inputs) == ["x"]


def test_a_graph_prints_itself() -> None:
    assert str(example().pruned()).splitlines() == [
        "%x: float32[2, 3] = input", "%a: float32[2, 3] = relu(%x)", "%b: float32[2, 3] = add(%a, %c)", "return %b",
    ]


def test_values_know_shapes_and_dtypes() -> None:
    values = example().values
    assert values["c"] == Value((3,), "float32") and values["b"].size == 6


def test_checking_finds_broken_graphs() -> None:
    graph = example()
    backwards = Graph(graph.inputs, graph.constants, graph.nodes[::-1], graph.outputs)
    with pytest.raises(ModelError, match="not made yet"):
        backwards.checked()
    with pytest.raises(ModelError, match="its name is taken"):
        Graph(graph.inputs, graph.constants, graph.nodes * 2, graph.outputs).checked()
    with pytest.raises(ModelError, match="outputs"):
        Graph(graph.inputs, graph.constants, (), ("b",)).checked()


def test_a_rewriter_forwards_readers() -> None:
    write = Rewriter(example())
    for node in write.graph:
        if node.op == "relu":
            write.forward(node.name, write.add(Node(write.fresh("a"), "tanh", ("x",), node.shape, node.dtype)))
        else:
            write.keep(node)
    assert [str(node) for node in write.finished()] == ["%a_1: float32[2, 3] = tanh(%x)", "%b: float32[2, 3] = add(%a_1, %c)"]


def test_moving_dimensions_of_extent_one_moves_nothing() -> None:
    assert moves_nothing((1, 5, 1, 3), (0, 2, 1, 3))
    assert not moves_nothing((1, 5, 2, 3), (0, 2, 1, 3))


def test_unused_names() -> None:
    assert unused("a", ["b"]) == "a"
    assert unused("a", ["a", "a_1"]) == "a_2"
