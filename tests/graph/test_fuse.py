from __future__ import annotations

import pytest

from ansor.graph.fuse import LARGEST, fused
from ansor.graph.ir import Graph, Node, Value

pytestmark = pytest.mark.torch
SHAPE = (4, 4)


def groups(text: str, outputs: str, shapes: dict[str, tuple[int, ...]] | None = None) -> list[str]:
    """The groups of a graph written as `name = op operand operand; …`; all arrays are 4x4 unless `shapes` says otherwise."""
    nodes = []
    for line in text.split(";"):
        name, _, right = line.partition("=")
        op, *inputs = right.split()
        nodes.append(Node(name.strip(), op, tuple(inputs), (shapes or {}).get(name.strip(), SHAPE), "float32"))
    graph = Graph({"x": Value(SHAPE, "float32"), "y": Value(SHAPE, "float32")}, {}, tuple(nodes), tuple(outputs.split()))
    return [" ".join(node.name for node in group.nodes) for group in fused(graph.checked())]


def test_a_producer_takes_the_elementwise_work_after_it() -> None:
    assert groups("a = dense x y; b = add a x; c = relu b", "c") == ["a b c"]


def test_elementwise_work_groups_with_itself() -> None:
    assert groups("a = exp x; b = add a x; c = relu b", "c") == ["a b c"]


def test_a_producer_reads_elementwise_work_that_others_do_not_redo() -> None:
    assert groups("a = exp x; b = dense a y; c = relu b", "c") == ["a", "b c"]


def test_two_producers_are_two_groups_and_the_first_operand_takes_the_sum() -> None:
    assert groups("shortcut = dense x y; main = dense x y; sum = add main shortcut; r = relu sum", "r") == ["shortcut", "main sum r"]
    assert groups("main = dense x y; shortcut = dense x y; sum = add main shortcut", "sum") == ["shortcut", "main sum"]


def test_work_that_rejoins_is_one_group() -> None:
    assert groups("a = dense x y; b = sigmoid a; c = mul a b", "c") == ["a b c"]
    assert groups("a = dense x y; b = exp a; c = tanh a; d = add b c; e = relu d", "e") == ["a b c d e"]


def test_what_the_network_returns_ends_its_group() -> None:
    assert groups("a = dense x y; b = relu a", "a b") == ["a", "b"]


def test_several_readers_end_a_group() -> None:
    assert groups("a = dense x y; b = relu a; c = dense b y; d = dense b y; e = add c d", "e") == ["a b", "d", "c e"]


def test_another_shape_ends_a_group() -> None:
    assert groups("a = mean x; b = sigmoid a; c = mul x b", "c", {"a": (4, 1), "b": (4, 1)}) == ["a b", "c"]


def test_reshapes_belong_to_no_group() -> None:
    assert groups("a = dense x y; b = reshape a; c = relu b; d = reshape x", "c d", {"b": (16,), "c": (16,)}) == ["a", "c"]


def test_look_ups_of_a_sum_are_one_group() -> None:
    assert groups("a = index x y; b = index x y; c = index x y; d = sub b a; e = mul d c; f = add e a", "f") == ["a b c d e f"]


def test_look_ups_do_not_join_other_producers() -> None:
    assert groups("a = index x y; b = dense x y; c = add b a", "c") == ["a", "b c"]
    assert groups("a = index x y; b = dense x y; c = add a b", "c") == ["b", "a c"]
    assert groups("a = index x y; b = relu a; c = index x b; d = add b c", "d") == ["a b", "c d"]


def test_long_chains_are_several_groups() -> None:
    chain = "; ".join(f"n{step} = exp {f'n{step - 1}' if step else 'x'}" for step in range(2 * LARGEST + 1))
    assert [len(names.split()) for names in groups(chain, f"n{2 * LARGEST}")] == [LARGEST, LARGEST, 1]


def test_long_chains_in_which_arrays_are_read_twice_are_cut_between_steps() -> None:
    steps = []
    for step in range(LARGEST):
        last = f"y{step - 1}" if step else "x"
        steps.append(f"s{step} = sin {last}; c{step} = cos {last}; p{step} = mul c{step} {last}; y{step} = add s{step} p{step}")
    found = [names.split() for names in groups("; ".join(steps), f"y{LARGEST - 1}")]
    assert all(len(names) <= LARGEST for names in found) and len(found) < 8
    assert sorted(name for names in found for name in names) == sorted(f"{kind}{step}" for kind in "scpy" for step in range(LARGEST))


def test_groups_know_what_they_read_and_make() -> None:
    nodes = (Node("a", "dense", ("x", "y"), SHAPE, "float32"), Node("b", "add", ("a", "x"), SHAPE, "float32"))
    (group,) = fused(Graph({"x": Value(SHAPE, "float32"), "y": Value(SHAPE, "float32")}, {}, nodes, ("b",)))
    assert group.inputs == ("x", "y") and group.outputs == ("b",)
